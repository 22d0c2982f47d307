"""A RetrievalPipeline with its RoutingPolicies: from their specs and the world to one thing to do.

Steps, in this order: is the spec usable (else the last accepted one stays in force); which release it
asks for, frozen before anything refers to it; which policy rules; how the rollout moves; what pods
hold and the table says; what the cluster should hold; what is true.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from tidegate_api.conditions import Reason
from tidegate_api.v1alpha1.common import RequestOutcome, Status
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipelineSpec, RetrievalPipelineStatus, RolloutStatus
from tidegate_operator.core.children import ChildrenPlan, Upkeep, Wanted, plan_children
from tidegate_operator.core.desired import pipeline_config
from tidegate_operator.core.exposure import position
from tidegate_operator.core.facts_rp import Facts
from tidegate_operator.core.names import Annotation
from tidegate_operator.core.observed_rp import PipelineWorld, acceptance
from tidegate_operator.core.plan import ON_REQUEST, Gauge, Note, Plan, Reading, Rest
from tidegate_operator.core.platform import Platform
from tidegate_operator.core.policies import Verdict
from tidegate_operator.core.release_marks import marked_releases, release_manifest, state_of
from tidegate_operator.core.release_retention import deletions, expired_releases
from tidegate_operator.core.releases import Desired, Waits, desire
from tidegate_operator.core.requests import Request, read_request
from tidegate_operator.core.rollout import RolloutFacts, advance, replaces_stable
from tidegate_operator.core.rollout_requests import answer
from tidegate_operator.core.ruling import Ruling, ruling
from tidegate_operator.core.serving import Front, acknowledged, front_of, held_by, table_for
from tidegate_operator.core.settle import Outcome, settle
from tidegate_operator.core.summary_rp import pipeline_status, wake_after
from tidegate_operator.core.summary_rpol import mirror
from tidegate_operator.core.unready import unready_pods
from tidegate_operator.core.warmth import behind_settings, failures, warm_releases


@dataclass(frozen=True, slots=True)
class Intent:
    """What the specs come to, as far as it is known now."""

    spec: RetrievalPipelineSpec | None  # in force
    verdict: Verdict | None  # why the newest one is not
    suspended: bool
    wanted: Desired | Waits | None
    rules: Ruling


@dataclass(frozen=True, slots=True)
class Rolled:
    """The rollout's state after at most one transition, and what came with it."""

    state: RolloutStatus
    facts: RolloutFacts
    notes: tuple[Note, ...] = ()
    outcome: RequestOutcome | None = None


def plan_pipeline(world: PipelineWorld, platform: Platform, now: datetime) -> Plan:
    """Return the one thing to do for a RetrievalPipeline and its policies now."""
    if world.meta.deletion_timestamp is not None:
        return Rest()  # owner references take the children along
    intent = _intend(world, platform)
    rolled = _roll(world, intent, now)
    front = None
    if intent.spec is not None:
        front = front_of(
            world, intent.spec, rolled.state, facts=rolled.facts, rules=intent.rules, platform=platform, now=now
        )
    freeze = plan_children(world.children, _freeze(world, intent.wanted), now=now)
    wanted = [*(front.children if front is not None else ()), *marked_releases(world, rolled.state)]
    children = plan_children(world.children, wanted, now=now)
    blocked = ChildrenPlan(
        conflicts=(*freeze.conflicts, *children.conflicts),
        leftovers=(*freeze.leftovers, *children.leftovers),
        refusals=(*freeze.refusals, *children.refusals),
    )
    facts = _facts(world, intent, rolled, front, blocked, at_rest=not children.actions, now=now)
    held = front.held_names if front is not None else frozenset()
    expired = expired_releases(world, rolled.state, held=held, desired=facts.desired)
    status = pipeline_status(
        world, facts, front, rollout=rolled.facts, outcome=rolled.outcome, expired=expired, now=now
    )
    outcome = Outcome(
        status=status,
        prepare=freeze.actions,
        actions=(*children.actions, *(front.removals if front is not None else ()), *deletions(world)),
        notes=rolled.notes,
        rollbacks=(ON_REQUEST,) if any(note.reason == Reason.ROLLED_BACK for note in rolled.notes) else (),
        readings=_readings(world, rolled.state),
        wake_after_seconds=wake_after(world, facts, blocked, now),
    )
    plan = settle(world.children.owner.ref, world.meta, world.status, outcome, decisions=_decisions)
    if isinstance(plan, Rest):
        return mirror(world, intent.rules, status, suspended=intent.suspended, now=now) or plan
    return plan


def _readings(world: PipelineWorld, state: RolloutStatus) -> tuple[Reading, ...]:
    share = state.step.share if state.step is not None else 0.0
    return (Reading(Gauge.ROLLOUT_SHARE, (world.meta.namespace, world.meta.name), share),)


def _decisions(status: Status) -> object:
    """Return the part of a status that actions rest on, and which generation it speaks of."""
    assert isinstance(status, RetrievalPipelineStatus)  # noqa: S101 - narrows the shared signature
    fates = tuple(sorted((entry.name, entry.phase == "Expired") for entry in status.releases))
    return status.observed_generation, status.rollout, status.requests, fates


def _intend(world: PipelineWorld, platform: Platform) -> Intent:
    verdict = acceptance(world)
    suspended = world.asked is not None and world.asked.suspend and world.accepted is not None
    spec = world.asked if verdict is None and not suspended else world.accepted
    rules = ruling(world, releases=world.frozen.keys())
    if spec is None:
        return Intent(None, verdict, suspended, None, rules)
    wanted = desire(
        pipeline_config(spec),
        world.knowledge,
        existing=world.frozen,
        platform=platform,
        version=spec.runtime.version,
        wait_for_builds=spec.releases.wait_for_builds,
    )
    return Intent(spec, verdict, suspended, wanted, rules)


def _freeze(world: PipelineWorld, wanted: Desired | Waits | None) -> list[Wanted]:
    if not isinstance(wanted, Desired) or wanted.name in world.frozen:
        return []
    return [Wanted(release_manifest(wanted.frozen, world.children, {}), Upkeep.ONCE)]


def _roll(world: PipelineWorld, intent: Intent, now: datetime) -> Rolled:
    """Move the rollout by at most one transition: a person's request first, then what the spec asks for."""
    facts, state = _rollout_facts(world, intent, now), state_of(world)
    request = _request(world, intent, now)
    if request is not None:
        answered = answer(request, state, facts, now)
        return Rolled(answered.state, facts, answered.notes, answered.outcome)
    if intent.suspended or intent.spec is None:
        return Rolled(state, facts)
    moved = advance(state, facts, now)
    return Rolled(moved.state, facts, moved.notes)


def _request(world: PipelineWorld, intent: Intent, now: datetime) -> Request | None:
    """Return a request that waits for its answer: on the policy that rules, else on the pipeline."""
    ruling_policy = intent.rules.view
    for meta in [world.meta] if ruling_policy is None else [ruling_policy.meta, world.meta]:
        found = read_request(
            meta.annotations.get(Annotation.REQUEST), uid=meta.uid, outcomes=world.status.requests, now=now
        )
        if found is None:
            continue
        if ruling_policy is not None and meta is world.meta:
            return replace(found, refusal=f"RoutingPolicy {ruling_policy.meta.name} rules this pipeline; ask there")
        return found
    return None


def _rollout_facts(world: PipelineWorld, intent: Intent, now: datetime) -> RolloutFacts:
    spec, rules = intent.spec, intent.rules
    releases = {name: frozen.release for name, frozen in world.frozen.items()}
    wanted = intent.wanted.name if isinstance(intent.wanted, Desired) else ""
    required = spec is not None and spec.releases.require_policy and rules.view is None
    count, duration = rules.window
    facts = RolloutFacts(
        desired=wanted if wanted in releases else "",
        releases=releases,
        warm=warm_releases(world, releases.values()),
        has_policy=rules.view is not None,
        steps=tuple(rules.in_force.rollout.steps) if rules.in_force is not None else (),
        may_start=not required and not rules.holds_everything,
        replaces=spec is not None and spec.runtime.update == "Replace",
        window_releases=count,
        window=duration,
    )
    state = state_of(world)
    table = table_for(world, held_by(world, state, facts, rules, now), state, rules)
    return replace(facts, acknowledged=acknowledged(world, table))


def _facts(
    world: PipelineWorld,
    intent: Intent,
    rolled: Rolled,
    front: Front | None,
    blocked: ChildrenPlan,
    *,
    at_rest: bool,
    now: datetime,
) -> Facts:
    state = rolled.state
    next_up = world.frozen.get(state.candidate or state.stable)
    steps = intent.rules.in_force.rollout.steps if intent.rules.in_force is not None else ()
    settled = at_rest and front is not None and not behind_settings(world, front.sidecar.config_hash())
    return Facts(
        spec=intent.spec,
        verdict=intent.verdict,
        conflicts=blocked.conflicts,
        refusals=blocked.refusals,
        wanted=intent.wanted,
        state=state,
        settled=settled and acknowledged(world, front.table if front is not None else None),
        candidate_failure=failures(world, next_up.release) if next_up is not None else "",
        suspended=intent.suspended,
        shortage=front.shortage(state.candidate) if front is not None else None,
        step_removed=state.step is not None and position(steps, state.step.name) is None,
        unready=unready_pods(world, now),
        replacing=_replacing(world, state, rolled.facts),
    )


def _replacing(world: PipelineWorld, state: RolloutStatus, facts: RolloutFacts) -> bool:
    """Return whether the candidate waits until stable's pods have gone."""
    coming, serving = world.frozen.get(state.candidate), world.frozen.get(state.stable)
    if coming is None or serving is None or coming.release.deployment == serving.release.deployment:
        return False
    return state.step is None and replaces_stable(state, facts)
