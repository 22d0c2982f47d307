"""The tables of `kubectl rag`: releases, revisions, differences. Pure: typed objects in, text out."""

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


def revisions_table(base: KnowledgeBase) -> str:
    """Return the revisions of a knowledge base, newest first."""
    desired = base.status.desired_revision

    def row(revision: RevisionStatus) -> tuple[str, ...]:
        mark = "desired" if revision.name == desired else ""
        used = ", ".join(revision.referenced_by) or NONE
        return (
            *(revision.name, revision.phase, mark, str(revision.documents), str(revision.chunks)),
            *(revision.embedder, "+".join(revision.provides), str(revision.content_generation), used),
        )

    header = ("REVISION", "PHASE", "", "DOCS", "CHUNKS", "EMBEDDER", "LEGS", "GENERATION", "USED BY")
    return table(header, [row(revision) for revision in base.status.revisions])


def releases_table(pipeline: RetrievalPipeline) -> str:
    """Return the releases of a pipeline, newest first, with what they are made of."""

    def row(release: ReleaseStatus) -> tuple[str, ...]:
        indexes = ", ".join(index.revision for index in release.index_revisions)
        served = " - ".join(part for part in (release.served_from, release.served_until) if part)
        return release.name, release.phase, release.pipeline_revision, indexes, served, release.versions.runtime

    header = ("RELEASE", "PHASE", "PIPELINE REVISION", "INDEXES", "SERVED", "VERSION")
    return table(header, [row(release) for release in pipeline.status.releases])


def release_difference(first: ReleaseStatus, second: ReleaseStatus) -> str:
    """Return what differs between two releases, one line each; equal parts are left out."""
    lines = []
    if first.pipeline_revision != second.pipeline_revision:
        lines.append(f"pipeline revision: {first.pipeline_revision} -> {second.pipeline_revision}")
    before = {index.knowledge_base: index.revision for index in first.index_revisions}
    after = {index.knowledge_base: index.revision for index in second.index_revisions}
    lines.extend(
        f"index of {base}: {before.get(base, NONE)} -> {after.get(base, NONE)}"
        for base in sorted(before.keys() | after.keys())
        if before.get(base) != after.get(base)
    )
    for plane in ("runtime", "sidecar"):
        old, new = getattr(first.versions, plane), getattr(second.versions, plane)
        if old != new:
            lines.append(f"{plane} version: {old or NONE} -> {new or NONE}")
    return "\n".join(lines) or "no difference"
