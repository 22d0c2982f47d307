"""What `kubectl rag` shows: status as somebody on call at night can read it.

Pure: typed objects in, lines out. Each view answers three questions in this order: what serves, what
waits and why, what to type next.
"""

from collections.abc import Iterable, Iterator, Sequence

from tidegate_api.conditions import ConditionType, find
from tidegate_api.v1alpha1.common import Condition, RequestOutcome
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBase, RevisionStatus
from tidegate_api.v1alpha1.retrievalpipeline import ReleaseStatus, RetrievalPipeline
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicy

NONE = "-"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return columns as kubectl lays them: upper-case header, three spaces between."""
    cells = [tuple(header), *(tuple(cell or NONE for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def pipeline_status(
    pipeline: RetrievalPipeline, policy: RoutingPolicy | None, knowledge: Iterable[KnowledgeBase]
) -> str:
    """Return the status of one pipeline with everything that it depends on."""
    status, name = pipeline.status, pipeline.metadata.name
    lines = [
        f"pipeline {name}: {_ready(status.conditions)}; pods {status.pods or NONE}; {status.endpoint or 'no endpoint yet'}"
    ]
    lines.append(f"  serves      {status.serving_release or 'nothing yet'}")
    lines.extend(f"  {line}" for line in _candidate(pipeline, policy))
    lines.extend(f"  rejected    {entry.release}: {entry.reason}" for entry in status.rollout.rejected[:3])
    if status.rollback.target:
        lines.append(f"  rollback    would go to {status.rollback.target} ({_readiness(status.rollback.readiness)})")
    routing = status.routing
    if routing.pending:
        lines.append(
            f"  routing     {routing.summary} pods obey table {routing.version}; waiting for {', '.join(routing.pending)}"
        )
    requests = policy.status.last_request if policy is not None else status.last_request
    lines.extend(_request(requests))
    lines.extend(f"  {line}" for line in _troubles([*status.conditions, *(policy.status.conditions if policy else [])]))
    lines.extend(f"  {line}" for line in _knowledge(knowledge))
    lines.extend(f"  next        {hint}" for hint in _hints(pipeline, policy))
    return "\n".join(lines)


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


def _ready(conditions: Sequence[Condition]) -> str:
    ready = find(conditions, ConditionType.READY)
    if ready is None:
        return "not looked at yet; is the operator running?"
    return "Ready" if ready.status == "True" else f"not ready ({ready.reason})"


def _candidate(pipeline: RetrievalPipeline, policy: RoutingPolicy | None) -> Iterator[str]:
    rollout = pipeline.status.rollout
    if rollout.candidate:
        where = ""
        if rollout.step is not None:
            unit = policy.spec.unit if policy is not None else "user"
            where = f", step {rollout.step.name}, {rollout.step.share:g} % by {unit}"
        yield f"candidate   {rollout.candidate} ({rollout.phase or NONE}{where})"
    if rollout.queued:
        yield f"queued      {rollout.queued}, starts when the present rollout has ended"


def _readiness(readiness: str) -> str:
    return {"Warm": "warm: under a second", "Cold": "cold: it has to load first"}.get(readiness, readiness or NONE)


def _request(outcome: RequestOutcome | None) -> Iterator[str]:
    if outcome is not None:
        yield f"  last order  {outcome.verb} by {outcome.by or 'somebody'} at {outcome.at}: {outcome.result}; {outcome.message}"


def _troubles(conditions: Iterable[Condition]) -> Iterator[str]:
    """Yield what a person should know: everything that is not as it should be, each message once."""
    seen = set()
    for condition in conditions:
        good_when_true = condition.type in ("Ready", "Accepted", "Available", "RevisionReady", "RolloutCompleted")
        trouble = condition.status != "True" if good_when_true else condition.status == "True"
        if trouble and condition.message and condition.message not in seen:
            seen.add(condition.message)
            yield f"{condition.reason}: {condition.message}"


def _knowledge(bases: Iterable[KnowledgeBase]) -> Iterator[str]:
    for base in bases:
        status = base.status
        building = f", builds {status.desired_revision} {status.building}" if status.building else ""
        counted = f"{status.documents} documents, {status.chunks} chunks"
        failed = f", {status.sync.failed} documents failed" if status.sync.failed else ""
        yield f"knowledge   {base.metadata.name}: {_ready(status.conditions)}; {status.latest_revision or 'no revision yet'}, {counted}{building}{failed}"


def _hints(pipeline: RetrievalPipeline, policy: RoutingPolicy | None) -> Iterator[str]:
    name, rollout = pipeline.metadata.name, pipeline.status.rollout
    if rollout.candidate and rollout.phase == "Paused" and policy is not None:
        yield f"kubectl rag promote {name}   goes on; kubectl rag abort {name} takes the candidate back"
    elif rollout.candidate and rollout.phase == "Progressing":
        yield f"kubectl rag abort {name}   takes the candidate back"
    if rollout.rejected:
        yield f"kubectl rag retry {name}   lets the rejected change try again; another change tries by itself"
    if pipeline.status.rollback.target and not rollout.candidate:
        yield f"kubectl rag rollback {name}   serves {pipeline.status.rollback.target} again"
