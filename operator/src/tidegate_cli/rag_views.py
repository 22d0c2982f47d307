"""The tables of `kubectl rag`: releases and revisions. Pure: typed objects in, text out."""

from collections.abc import Iterable, Sequence

from tidegate_api.v1alpha1.knowledgebase import KnowledgeBase, RevisionStatus
from tidegate_api.v1alpha1.retrievalpipeline import ReleaseStatus, RetrievalPipeline

NONE = "-"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return columns as kubectl lays them: upper-case header, three spaces between."""
    cells = [tuple(header), *(tuple(cell or NONE for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def revisions_table(base: KnowledgeBase, *, wide: bool = False) -> str:
    """Return the revisions of a knowledge base, newest first; `wide` adds size, language, times and references."""
    desired = base.status.desired_revision

    def row(revision: RevisionStatus) -> tuple[str, ...]:
        mark = "desired" if revision.name == desired else ""
        used = ", ".join(revision.referenced_by) or NONE
        ordinary = (
            *(revision.name, revision.phase, mark, str(revision.documents), str(revision.chunks)),
            *(revision.embedder, "+".join(revision.provides), str(revision.content_generation), used),
        )
        return (*ordinary, *_more_of_revision(revision)) if wide else ordinary

    header = ("REVISION", "PHASE", "", "DOCS", "CHUNKS", "EMBEDDER", "LEGS", "GENERATION", "USED BY")
    more = ("REFERENCES", "LANGUAGE", "SIZE BYTES", "LOAD BYTES", "TRUNCATED", "CREATED", "READY", "RETIRING SINCE")
    return table((*header, *more) if wide else header, [row(revision) for revision in base.status.revisions])


def _more_of_revision(revision: RevisionStatus) -> tuple[str, ...]:
    return (
        *(str(revision.references), revision.language, str(revision.size_bytes), str(revision.load_bytes)),
        *(str(revision.truncated_chunks), revision.created_at or "", revision.ready_at or ""),
        revision.retiring_since or "",
    )


def releases_table(pipeline: RetrievalPipeline, *, wide: bool = False) -> str:
    """Return the releases of a pipeline, newest first; `wide` splits when they served and adds what they were made with."""

    def row(release: ReleaseStatus) -> tuple[str, ...]:
        indexes = ", ".join(index.revision for index in release.index_revisions)
        made_of = (release.name, release.phase, release.pipeline_revision, indexes)
        since, until, versions = release.served_from or "", release.served_until or "", release.versions
        if wide:
            return (*made_of, since, until, release.created_at or "", versions.runtime, versions.sidecar)
        return (*made_of, " - ".join(part for part in (since, until) if part), versions.runtime)

    header = ("RELEASE", "PHASE", "PIPELINE REVISION", "INDEXES")
    more = ("SERVED FROM", "SERVED UNTIL", "CREATED", "RUNTIME", "SIDECAR") if wide else ("SERVED", "VERSION")
    return table((*header, *more), [row(release) for release in pipeline.status.releases])
