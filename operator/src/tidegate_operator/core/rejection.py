"""What a release changed, and whether that has been rejected.

A release that failed or was rolled back is remembered by what differed from the one that was good.
Any later release that contains the same difference is held, so an unrelated change cannot bring it
back; one that changes the difference itself is a new attempt.
"""

from collections.abc import Iterable

from tidegate_api.config import ReleaseConfig
from tidegate_api.v1alpha1.retrievalpipeline import IndexRevision, RejectedChange, Rejection


def difference(release: ReleaseConfig, stable: ReleaseConfig) -> RejectedChange:
    """Return what `release` has otherwise than `stable`."""
    known = {(index.knowledge_base, index.revision) for index in stable.indexes}
    revision = release.pipeline.revision()
    return RejectedChange(
        pipeline_revision=revision if revision != stable.pipeline.revision() else None,
        index_revisions=[
            IndexRevision(knowledge_base=index.knowledge_base, revision=index.revision)
            for index in release.indexes
            if (index.knowledge_base, index.revision) not in known
        ],
    )


def rejection_of(release: ReleaseConfig, rejected: Iterable[Rejection]) -> Rejection | None:
    """Return the rejection whose difference `release` contains, if there is one."""
    indexes = {(index.knowledge_base, index.revision) for index in release.indexes}
    for rejection in rejected:
        changed = rejection.changed
        if changed.pipeline_revision is None and not changed.index_revisions:
            if rejection.release == release.name:
                return rejection
            continue
        same_pipeline = changed.pipeline_revision in (None, release.pipeline.revision())
        if same_pipeline and all(
            (index.knowledge_base, index.revision) in indexes for index in changed.index_revisions
        ):
            return rejection
    return None


def only_indexes_differ(release: ReleaseConfig, other: ReleaseConfig) -> bool:
    """Return whether two releases are of the same pipeline revision."""
    return release.pipeline.revision() == other.pipeline.revision()
