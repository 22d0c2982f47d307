"""What a KnowledgeBase's status says, from the world and the intent: revisions, figures, conditions.

Figures of the indexer are copied when they change what a reader would do; a look at the sources that
found nothing new is not written. While the indexer does not answer, what it said last stays.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tidegate_api.conditions import ConditionType, Reason, Statement, Truth, find, timestamp
from tidegate_api.config import IndexerState, RevisionConfig, RevisionState, SyncState
from tidegate_api.v1alpha1.knowledgebase import RevisionStatus, SyncFailure, SyncStatus
from tidegate_operator.core.indexer_trouble import degraded, no_room, pod_trouble
from tidegate_operator.core.kinds import Ref
from tidegate_operator.core.observed import Refusal
from tidegate_operator.core.observed_kb import KnowledgeWorld
from tidegate_operator.core.policies import Verdict, of_refusals
from tidegate_operator.core.revisions import READY, RETIRING

REVISIONS_SHOWN = 10
LEGS = ["bm25", "dense"]


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the newest generation is in force."""

    ready: Truth
    reason: str
    message: str
    stalled: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What the planner has found out beside the world itself."""

    verdict: Verdict | None
    conflicts: tuple[Ref, ...]
    refusals: tuple[Refusal, ...]
    desired: RevisionStatus | None
    latest: str
    acknowledged: bool  # the indexer obeys the config of this generation


# --- revisions and figures ------------------------------------------------------------------------


def new_revision(wanted: RevisionConfig, created_at: datetime | None) -> RevisionStatus:
    """Return the entry of a frozen revision of which nothing else is known."""
    shape = wanted.shape
    return RevisionStatus(
        name=wanted.name,
        phase="Pending",
        language=shape.language,
        embedder=shape.embedder.summary(),
        provides=LEGS,
        created_at=timestamp(created_at) if created_at is not None else None,
    )


def observe_revision(
    known: RevisionStatus, state: RevisionState | None, references: Mapping[str, tuple[str, ...]]
) -> RevisionStatus:
    """Return an entry with what the indexer and the references say of it now."""
    holders = sorted(references.get(known.name, ()))
    entry = known.model_copy(update={"references": len(holders), "referenced_by": holders[:10]})
    if state is None:
        return entry
    return entry.model_copy(
        update={
            "phase": state.phase if known.phase != RETIRING else RETIRING,
            "documents": state.documents,
            "chunks": state.chunks,
            "size_bytes": state.size_bytes,
            "load_bytes": state.load_bytes,
            "provides": list(state.provides) or known.provides,
            "ready_at": state.ready_at or known.ready_at,
            "content_generation": state.content_generation,
            "truncated_chunks": state.truncated_chunks,
        }
    )


def mark_retiring(entry: RevisionStatus, *, retire: bool, now: datetime) -> RevisionStatus:
    """Return the entry marked as one that may go, or taken back."""
    if retire:
        if entry.phase == RETIRING:
            return entry
        return entry.model_copy(update={"phase": RETIRING, "retiring_since": timestamp(now)})
    if entry.phase != RETIRING:
        return entry
    return entry.model_copy(update={"phase": READY if entry.ready_at else "Pending", "retiring_since": None})


def shown(revisions: Sequence[RevisionStatus], *, always: frozenset[str]) -> list[RevisionStatus]:
    """Return at most ten, newest first; those that a decision rests on are never among the left out."""
    newest = sorted(revisions, key=lambda each: (each.created_at or "", each.name), reverse=True)
    needed = [each for each in newest if each.name in always or each.phase == RETIRING]
    others = [each for each in newest if each not in needed]
    kept = {each.name for each in [*needed, *others][:REVISIONS_SHOWN]}
    return [each for each in newest if each.name in kept]


def building(desired: RevisionStatus | None, state: RevisionState | None) -> str:
    """Return the progress of a build, such as `64%`; empty when nothing builds."""
    if desired is None or desired.phase not in ("Pending", "Building"):
        return ""
    if state is None or not state.documents_total:
        return "0%"
    return f"{100 * state.documents_done // state.documents_total}%"


def sync_status(before: SyncStatus, state: SyncState | None) -> SyncStatus:
    """Return the last look at the sources that changed something or was asked for."""
    if state is None:
        return before
    failures = [SyncFailure(document=each.document[:512], reason=each.reason[:1024]) for each in state.failures[:20]]
    moved = state.added or state.changed or state.deleted
    same = (state.failed, failures, state.last_handled) == (before.failed, before.failures, before.last_handled)
    if same and not moved:
        return before
    return SyncStatus(
        last_at=state.last_at,
        last_handled=state.last_handled,
        added=state.added,
        changed=state.changed,
        deleted=state.deleted,
        failed=state.failed,
        failures=failures,
    )


# --- conditions -----------------------------------------------------------------------------------


def statements(world: KnowledgeWorld, facts: Facts) -> Iterator[Statement]:
    """Yield every condition that holds."""
    standing = _standing(world, facts)
    verdict = facts.verdict or of_refusals(facts.refusals)
    yield Statement(ConditionType.READY, standing.ready, standing.reason, standing.message)
    yield (
        Statement(ConditionType.ACCEPTED, "True", Reason.ACCEPTED)
        if verdict is None
        else Statement(ConditionType.ACCEPTED, "False", verdict.reason, verdict.message)
    )
    yield (
        Statement(ConditionType.AVAILABLE, "True", Reason.SERVING)
        if facts.latest
        else Statement(ConditionType.AVAILABLE, "False", Reason.BUILDING, "no revision has been built yet")
    )
    if standing.stalled:
        yield Statement(ConditionType.STALLED, "True", standing.reason, standing.message)
    elif standing.ready != "True":
        yield Statement(ConditionType.RECONCILING, "True", standing.reason, standing.message)
    yield _revision_ready(facts)
    if (worse := degraded(world, desired=facts.desired, serves=bool(facts.latest))) is not None:
        yield Statement(ConditionType.DEGRADED, "True", worse.reason, worse.message)
    if (drift := _language_drift(world)) is not None:
        yield drift


def _standing(world: KnowledgeWorld, facts: Facts) -> Standing:
    if (verdict := facts.verdict or of_refusals(facts.refusals)) is not None:
        return Standing("False", verdict.reason, verdict.message, stalled=True)
    if facts.conflicts:
        message = f"{facts.conflicts[0]} exists and is not ours; rename or remove it, nothing of it was changed"
        return Standing("False", Reason.NAME_CONFLICT, message, stalled=True)
    desired = facts.desired
    if desired is not None and desired.phase == "Failed":
        return Standing("False", Reason.REVISION_FAILED, _failure(world, desired.name), stalled=True)
    if desired is not None and desired.phase == READY and facts.acknowledged:
        return Standing("True", Reason.IN_FORCE, "")
    if (trouble := pod_trouble(world)) is not None:
        return Standing("False", trouble.reason, f"the indexer's pod does not run: {trouble.message}", stalled=True)
    if (full := no_room(world)) is not None:
        return Standing("False", full.reason, full.message, stalled=True)
    if world.asked is not None and world.asked.ready_policy == "Serving" and facts.latest:
        return Standing("True", Reason.SERVING, "an earlier revision serves while this one is being built")
    if world.workload is None or world.workload.ready == 0:
        return Standing("Unknown", Reason.STARTING, "the indexer's pod is starting")
    if desired is None:
        return Standing("Unknown", Reason.LANGUAGE_UNKNOWN, "the indexer is finding out the language of the documents")
    return Standing("Unknown", Reason.BUILDING, "the index revision of this generation is being built")


def _failure(world: KnowledgeWorld, revision: str) -> str:
    states = world.indexer.revisions if world.indexer is not None else []
    said = next((state.message for state in states if state.name == revision), "")
    return said or _said_before(world) or "the index could not be built; see the indexer's log"


def _said_before(world: KnowledgeWorld) -> str:
    ready = find(world.status.conditions, ConditionType.READY)
    return ready.message if ready is not None and ready.reason == Reason.REVISION_FAILED else ""


def _revision_ready(facts: Facts) -> Statement:
    desired = facts.desired
    if desired is None:
        return Statement(ConditionType.REVISION_READY, "Unknown", Reason.LANGUAGE_UNKNOWN)
    match desired.phase:
        case "Ready":
            return Statement(ConditionType.REVISION_READY, "True", Reason.COMPLETED)
        case "Failed":
            return Statement(ConditionType.REVISION_READY, "False", Reason.REVISION_FAILED)
        case _:
            return Statement(ConditionType.REVISION_READY, "False", Reason.BUILDING)


def _language_drift(world: KnowledgeWorld) -> Statement | None:
    census = world.indexer.census if world.indexer is not None else None
    if census is None:
        found = find(world.status.conditions, ConditionType.LANGUAGE_DRIFT)
        return (
            Statement(ConditionType.LANGUAGE_DRIFT, "True", found.reason, found.message) if found is not None else None
        )
    if world.asked is None or world.asked.language != "auto" or not census.documents:
        return None
    if census.language == world.status.language or not world.status.language:
        return None
    message = (
        f"the documents are now {census.language}, the index was built for {world.status.language}; "
        f"set spec.language to {census.language} to rebuild it"
    )
    return Statement(ConditionType.LANGUAGE_DRIFT, "True", Reason.LANGUAGE_DRIFT, message)


def state_of(indexer: IndexerState | None, revision: str) -> RevisionState | None:
    """Return what the indexer says of a revision."""
    revisions = indexer.revisions if indexer is not None else []
    return next((state for state in revisions if state.name == revision), None)
