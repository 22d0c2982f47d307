"""The whole status of a pipeline, and when to look again without an event."""

from datetime import datetime

from tidegate_api.conditions import ConditionType, Reason, find, merged
from tidegate_api.config import RoutingTable
from tidegate_api.v1alpha1.common import RequestOutcome, RoutingStatus
from tidegate_api.v1alpha1.retrievalpipeline import (
    AuthStatus,
    RetrievalPipelineStatus,
    RollbackStatus,
    RuntimeStatus,
)
from tidegate_operator.core.children import ChildrenPlan
from tidegate_operator.core.facts_rp import Facts
from tidegate_operator.core.names import Label
from tidegate_operator.core.observed_rp import PipelineWorld
from tidegate_operator.core.pacing import slower, soonest, until_retry, until_told
from tidegate_operator.core.pipeline_trouble import pods_trouble
from tidegate_operator.core.release_entries import release_entries
from tidegate_operator.core.render.networkpolicy import PUBLIC_PORT
from tidegate_operator.core.requests import OUTCOMES_KEPT
from tidegate_operator.core.rollout import Phase, RolloutFacts, rollback_target
from tidegate_operator.core.routing import SWITCH_SECONDS, switched_for
from tidegate_operator.core.serving import Front
from tidegate_operator.core.status_rp import statements
from tidegate_operator.core.warmth import behind_table
from tidegate_operator.core.workloads import Workload

POLL_SECONDS = 1.0
POLL_SECONDS_MAX = 15.0
MISSING_SECONDS = 15.0
PENDING_NAMED = 10


def pipeline_status(
    world: PipelineWorld,
    facts: Facts,
    front: Front | None,
    *,
    rollout: RolloutFacts,
    outcome: RequestOutcome | None,
    expired: frozenset[str],
    now: datetime,
) -> RetrievalPipelineStatus:
    """Return what is true now."""
    before, generation, state = world.status, world.meta.generation, facts.state
    workload = _workload(world, facts)
    held = front.held_names if front is not None else frozenset()
    requests = before.requests if outcome is None else [outcome, *before.requests][:OUTCOMES_KEPT]
    target = rollback_target(state, rollout)
    return RetrievalPipelineStatus(
        observed_generation=generation,
        conditions=merged(before.conditions, statements(world, facts), generation=generation, now=now),
        endpoint=_endpoint(world),
        serving_release=state.stable,
        candidate=state.candidate,
        pods=f"{workload.ready}/{workload.desired}" if workload is not None else "",
        releases=release_entries(world, state, held=held, warm=rollout.warm, expired=expired),
        rollout=state,
        rollback=RollbackStatus(target=target, readiness=_readiness(target, rollout.warm)),
        auth=AuthStatus(keys=max((each.api_keys for each in world.sidecars.values()), default=before.auth.keys)),
        runtime=RuntimeStatus(
            desired=workload.desired if workload is not None else 0,
            ready=workload.ready if workload is not None else 0,
            selector=f"{Label.PIPELINE}={world.meta.name}",
        ),
        routing=routing_status(world, front.table if front is not None else None),
        requests=requests,
        last_request=requests[0] if requests else None,
    )


def routing_status(world: PipelineWorld, table: RoutingTable | None) -> RoutingStatus:
    """Return which table is written and which pods obey it."""
    if table is None or world.table is None:
        return world.status.routing
    written = world.table
    ready = [pod for pod in world.pods if pod.ready and not pod.deleting]
    pending = sorted(behind_table(world))
    return RoutingStatus(
        version=written.version,
        hash=world.table_hash,
        applied_pods=len(ready) - len(pending),
        total_pods=len(ready),
        pending=pending[:PENDING_NAMED],
        summary=f"{len(ready) - len(pending)}/{len(ready)}",
    )


def wake_after(world: PipelineWorld, facts: Facts, blocked: ChildrenPlan, now: datetime) -> float | None:
    """Return after how many seconds to look again."""
    switching = SWITCH_SECONDS - switched_for(facts.state, now).total_seconds()
    return soonest(
        [
            _until_asked(world, facts, now),
            until_told(world.pods, now),
            until_retry(blocked.refusals, now),
            MISSING_SECONDS if world.missing or blocked.conflicts or blocked.leftovers else None,
            max(switching, POLL_SECONDS) if facts.state.stable and switching > 0 else None,
        ]
    )


def _until_asked(world: PipelineWorld, facts: Facts, now: datetime) -> float | None:
    """Return how long until pods are asked again: often while something moves, the slower the longer nothing does.

    That a pod gets ready is told by an event; what it says before that, only by asking.
    """
    if not any(pod.address and not pod.deleting for pod in world.pods):
        return None
    ready = find(world.status.conditions, ConditionType.READY)
    if ready is None or world.status.routing.pending:
        return POLL_SECONDS
    stuck = ready.status == "False" and _needs_help(world, facts)
    starts = ready.status == "Unknown" and ready.reason == Reason.STARTING and not facts.state.candidate
    if stuck or starts:
        return slower(POLL_SECONDS, POLL_SECONDS_MAX, since=ready.last_transition_time, now=now)
    moves = ready.status == "Unknown" or (facts.state.candidate and facts.state.phase != Phase.PAUSED)
    return POLL_SECONDS if moves else None


def _needs_help(world: PipelineWorld, facts: Facts) -> bool:
    """Return whether what comes next, or what serves, cannot get on by itself."""
    if facts.candidate_failure or facts.shortage is not None:
        return True
    return any(pods_trouble(world, facts, name) is not None for name in (facts.state.candidate, facts.state.stable))


def _workload(world: PipelineWorld, facts: Facts) -> Workload | None:
    front = world.frozen.get(facts.state.stable or facts.state.candidate)
    return world.workload(front.release.deployment) if front is not None else None


def _endpoint(world: PipelineWorld) -> str:
    return f"http://{world.meta.name}.{world.meta.namespace}.svc:{PUBLIC_PORT.number}"


def _readiness(target: str, warm: frozenset[str]) -> str:
    if not target:
        return ""
    return "Warm" if target in warm else "Cold"
