"""The conditions of a RetrievalPipeline."""

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate_api.conditions import ConditionType, Reason, Statement, Truth
from tidegate_operator.core.facts_rp import Facts
from tidegate_operator.core.observed_rp import PipelineWorld
from tidegate_operator.core.pipeline_trouble import no_answers, pods_trouble
from tidegate_operator.core.policies import Verdict, of_refusals
from tidegate_operator.core.rejection import rejection_of
from tidegate_operator.core.releases import Desired, Waits
from tidegate_operator.core.rollout import Phase
from tidegate_operator.core.workloads import Workload


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the newest generation is in force."""

    ready: Truth
    reason: str
    message: str = ""
    stalled: bool = False


def statements(world: PipelineWorld, facts: Facts) -> Iterator[Statement]:
    """Yield every condition that holds."""
    standing = _standing(world, facts)
    verdict = facts.verdict or of_refusals(facts.refusals)
    yield Statement(ConditionType.READY, standing.ready, standing.reason, standing.message)
    yield (
        Statement(ConditionType.ACCEPTED, "True", Reason.ACCEPTED)
        if verdict is None
        else Statement(ConditionType.ACCEPTED, "False", verdict.reason, verdict.message)
    )
    yield _available(world, facts)
    if standing.stalled:
        yield Statement(ConditionType.STALLED, "True", standing.reason, standing.message)
    elif standing.ready != "True":
        yield Statement(ConditionType.RECONCILING, "True", standing.reason, standing.message)
    done = bool(facts.desired) and facts.desired == facts.state.stable
    yield Statement(
        ConditionType.ROLLOUT_COMPLETED, "True" if done else "False", Reason.COMPLETED if done else Reason.PROGRESSING
    )
    if (worse := _degraded(world, facts)) is not None:
        yield Statement(ConditionType.DEGRADED, "True", worse.reason, worse.message)


def _standing(world: PipelineWorld, facts: Facts) -> Standing:
    for judge in (_blocked, _no_room, _held_back, _in_force, _early_enough, _candidate_in_trouble, _policy_decides):
        if (standing := judge(world, facts)) is not None:
            return standing
    return _under_way(world, facts)


def _blocked(_: PipelineWorld, facts: Facts) -> Standing | None:
    """Somebody has to act before anything can move."""
    if (verdict := facts.verdict or of_refusals(facts.refusals)) is not None:
        return Standing("False", verdict.reason, verdict.message, stalled=True)
    if facts.conflicts:
        message = f"{facts.conflicts[0]} exists and is not ours; rename or remove it, nothing of it was changed"
        return Standing("False", Reason.NAME_CONFLICT, message, stalled=True)
    if facts.suspended:
        return Standing("True", Reason.SUSPENDED, "spec.suspend is set: nothing changes, what serves goes on")
    if isinstance(facts.wanted, Waits) and facts.wanted.blocked:
        return Standing("False", facts.wanted.reason, facts.wanted.message, stalled=True)
    return None


def _no_room(_: PipelineWorld, facts: Facts) -> Standing | None:
    """What comes next would end the pods that serve."""
    if facts.shortage is None:
        return None
    return Standing("False", Reason.INSUFFICIENT_MEMORY, str(facts.shortage), stalled=True)


def _held_back(_: PipelineWorld, facts: Facts) -> Standing | None:
    """What the spec asks for was rejected."""
    if not isinstance(facts.wanted, Desired) or facts.desired == facts.state.stable:
        return None
    rejection = rejection_of(facts.wanted.frozen.release, facts.state.rejected)
    if rejection is None:
        return None
    own = rejection.release == facts.desired
    what = facts.desired if own else f"{facts.desired} contains what was rejected with {rejection.release}: it"
    message = f"{what} was rejected ({rejection.reason}); change the spec, or ask for a retry"
    return Standing("False", Reason.ROLLED_BACK if own else Reason.CONTAINS_REJECTED, message, stalled=True)


def _in_force(world: PipelineWorld, facts: Facts) -> Standing | None:
    if not facts.desired or facts.desired != facts.state.stable or facts.state.candidate:
        return None
    workload = _serving(world, facts)
    if workload is None or (workload.ready == 0 and workload.desired > 0):
        return None
    return Standing("True", Reason.IN_FORCE) if facts.settled and workload.current else None


def _policy_decides(world: PipelineWorld, facts: Facts) -> Standing | None:
    """A rollout that gathers evidence or waits for a person is where its policy lets it be."""
    state, workload = facts.state, _serving(world, facts)
    if state.step is None or workload is None or workload.ready == 0:
        return None
    if facts.spec is not None and facts.spec.ready_policy == "Completed":
        return None
    if state.phase == Phase.PAUSED and facts.step_removed:
        message = f"step {state.step.name} is no longer in the policy; {state.candidate} keeps {state.step.share:g} % until it is promoted or aborted"
        return Standing("True", Reason.STEP_REMOVED, message)
    if state.phase == Phase.PAUSED:
        return Standing(
            "True", Reason.PAUSED, f"{state.candidate} waits at step {state.step.name} until it is promoted"
        )
    return Standing("True", Reason.PROGRESSING, f"{state.candidate} is at step {state.step.name}")


def _early_enough(world: PipelineWorld, facts: Facts) -> Standing | None:
    workload = _serving(world, facts)
    if facts.spec is None or facts.spec.ready_policy != "Serving" or workload is None or workload.ready == 0:
        return None
    return Standing("True", Reason.SERVING, "an accepted release serves; the newest one is being prepared")


def _candidate_in_trouble(world: PipelineWorld, facts: Facts) -> Standing | None:
    """Pods that should become ready do not; the ones that serve go on."""
    if facts.candidate_failure:
        message = f"{facts.state.candidate or facts.state.stable} cannot be opened: {facts.candidate_failure}"
        return Standing("False", Reason.RELEASE_FAILED, message, stalled=True)
    for name in (facts.state.candidate, facts.state.stable):
        if (trouble := pods_trouble(world, facts, name)) is not None:
            return Standing("False", trouble.reason, trouble.message, stalled=True)
    return None


def _under_way(world: PipelineWorld, facts: Facts) -> Standing:
    if isinstance(facts.wanted, Waits):
        return Standing("Unknown", facts.wanted.reason, facts.wanted.message)
    if facts.state.candidate:
        return Standing("Unknown", Reason.PREPARING_RELEASE, f"{facts.state.candidate} is being loaded by its pods")
    if facts.desired != facts.state.stable:
        message = "a RoutingPolicy is required for a new release; apply one, or unset spec.releases.requirePolicy"
        return Standing("Unknown", Reason.POLICY_MISSING, message)
    workload = _serving(world, facts)
    if workload is None or workload.ready < workload.desired:
        return Standing("Unknown", Reason.STARTING, "pods are starting")
    return Standing("Unknown", Reason.NOT_ACKNOWLEDGED, "pods have not taken over the newest table and settings yet")


def _available(world: PipelineWorld, facts: Facts) -> Statement:
    workload = _serving(world, facts)
    if facts.state.stable and workload is not None and workload.ready > 0:
        return Statement(ConditionType.AVAILABLE, "True", Reason.SERVING)
    verdict = no_answers(world, facts)
    return Statement(ConditionType.AVAILABLE, "False", verdict.reason, verdict.message)


def _degraded(world: PipelineWorld, facts: Facts) -> Verdict | None:
    if isinstance(facts.wanted, Desired) and facts.wanted.fell_back:
        names = ", ".join(facts.wanted.fell_back)
        message = f"the newest index of {names} could not be built, an earlier one serves; see its status"
        return Verdict(Reason.REVISION_FAILED, message)
    workload = _serving(world, facts)
    if workload is None or workload.ready < workload.desired:
        return pods_trouble(world, facts, facts.state.stable)
    return None  # what does not start is to replace pods that serve as many as they should


def _serving(world: PipelineWorld, facts: Facts) -> Workload | None:
    stable = world.frozen.get(facts.state.stable)
    return world.workload(stable.release.deployment) if stable is not None else None
