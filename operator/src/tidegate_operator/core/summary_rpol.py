"""A RoutingPolicy's status: a mirror of the pipeline's rollout, and whether this policy rules."""

from collections.abc import Iterator
from datetime import datetime

from tidegate_api.conditions import ConditionType, Reason, Statement, find, merged
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipelineStatus
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicyStatus
from tidegate_operator.core.kinds import Kind, Ref
from tidegate_operator.core.notes import transition_notes
from tidegate_operator.core.observed_rp import PipelineWorld, PolicyView
from tidegate_operator.core.plan import Decide
from tidegate_operator.core.policies import Verdict
from tidegate_operator.core.rollout import Phase
from tidegate_operator.core.ruling import Ruling


def mirror(
    world: PipelineWorld, rules: Ruling, status: RetrievalPipelineStatus, *, suspended: bool, now: datetime
) -> Decide | None:
    """Return the next policy status that has to be written, or None."""
    for view in world.policies:
        said = _status(view, rules, status, suspended=suspended, now=now)
        if said != view.status:
            return Decide(
                ref=Ref(Kind.ROUTING_POLICY, view.meta.namespace, view.meta.name),
                uid=view.meta.uid,
                resource_version=view.meta.resource_version,
                status=said.to_document(),
                notes=transition_notes(view.status.conditions, said.conditions),
            )
    return None


def _status(
    view: PolicyView, rules: Ruling, pipeline: RetrievalPipelineStatus, *, suspended: bool, now: datetime
) -> RoutingPolicyStatus:
    generation = view.meta.generation
    conditions = merged(view.status.conditions, _statements(view, rules, pipeline), generation=generation, now=now)
    if rules.view is None or view.meta.uid != rules.view.meta.uid:
        return RoutingPolicyStatus(observed_generation=generation, conditions=conditions)
    rollout, step = pipeline.rollout, pipeline.rollout.step
    return RoutingPolicyStatus(
        observed_generation=generation,
        conditions=conditions,
        stable=rollout.stable,
        candidate=rollout.candidate,
        phase="Suspended" if suspended else rollout.phase,
        step=step,
        share=f"{step.share:g}%" if step is not None else "",
        step_name=step.name if step is not None else "",
        history=rollout.history,
        routing=pipeline.routing,
        requests=pipeline.requests,
        last_request=pipeline.last_request,
    )


def _statements(view: PolicyView, rules: Ruling, pipeline: RetrievalPipelineStatus) -> Iterator[Statement]:
    if rules.view is None or view.meta.uid != rules.view.meta.uid:
        name = rules.view.meta.name if rules.view is not None else ""
        message = f"RoutingPolicy {name} is older and rules this pipeline; delete one of the two"
        yield Statement(ConditionType.READY, "False", Reason.OLDER_POLICY_RULES, message)
        yield Statement(ConditionType.ACCEPTED, "True", Reason.ACCEPTED)
        yield Statement(ConditionType.STALLED, "True", Reason.OLDER_POLICY_RULES, message)
        yield Statement(ConditionType.CONFLICTED, "True", Reason.OLDER_POLICY_RULES, message)
        return
    if rules.verdict is not None:
        yield from _unusable(rules.verdict)
        return
    yield Statement(ConditionType.ACCEPTED, "True", Reason.ACCEPTED)
    completed = pipeline.rollout.stable and not pipeline.rollout.candidate and pipeline.rollout.phase == Phase.IDLE
    yield Statement(
        ConditionType.ROLLOUT_COMPLETED,
        "True" if completed else "False",
        Reason.COMPLETED if completed else Reason.PROGRESSING,
    )
    yield from _as_the_pipeline(pipeline)


def _unusable(verdict: Verdict) -> Iterator[Statement]:
    yield Statement(ConditionType.READY, "False", verdict.reason, verdict.message)
    yield Statement(ConditionType.ACCEPTED, "False", verdict.reason, verdict.message)
    yield Statement(ConditionType.STALLED, "True", verdict.reason, verdict.message)


def _as_the_pipeline(pipeline: RetrievalPipelineStatus) -> Iterator[Statement]:
    """Yield what the pipeline says of itself: there is one truth about a rollout."""
    for kind in (ConditionType.READY, ConditionType.AVAILABLE, ConditionType.RECONCILING, ConditionType.STALLED):
        found = find(pipeline.conditions, kind)
        if found is not None:
            yield Statement(kind, found.status, found.reason, found.message)
