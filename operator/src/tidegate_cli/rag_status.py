"""`kubectl rag status`: one pipeline as somebody on call at night reads it.

Pure: typed objects in, lines out, in this order: what serves, what waits and why, what to type next.
There is always a next line, also when it says that there is nothing to do.
"""

from collections.abc import Iterable, Iterator, Sequence

from tidegate_api.conditions import ConditionType, Reason, find
from tidegate_api.v1alpha1.common import Condition, RequestOutcome
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBase
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipeline
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicy, Step

NONE = "-"
REJECTED_SHOWN = 3
# Good when true; every other condition is good news only while it is absent.
GOOD = frozenset({"Ready", "Accepted", "Available", "RevisionReady", "RolloutCompleted"})
# What helps, where the condition's own message cannot know it.
REMEDIES = {
    Reason.INSUFFICIENT_GPU: "free a GPU or add a node; `spec.runtime.update: Replace` stops the old pods first, with a downtime",
    Reason.UNSCHEDULABLE: "add a node or ask for less in spec.runtime; `kubectl describe pod` names every node's reason",
    Reason.IMAGE_PULL_FAILED: "push the image or correct the registry's credentials; the pods try again by themselves",
    Reason.CONTAINER_FAILED: "kubectl logs -p of that container says why it ended",
    Reason.POD_CREATION_FAILED: "a quota or an admission policy refuses the pods; see the message",
    Reason.RELEASE_FAILED: "put the earlier spec back; what serves goes on meanwhile",
}


def pipeline_status(
    pipeline: RetrievalPipeline, policy: RoutingPolicy | None, knowledge: Iterable[KnowledgeBase]
) -> str:
    """Return the status of one pipeline with everything that it depends on."""
    status, bases = pipeline.status, list(knowledge)
    lines = [
        f"pipeline {pipeline.metadata.name}: {_ready(status.conditions)}; pods {status.pods or NONE}; "
        f"{status.endpoint or 'no endpoint yet'}"
    ]
    told = [
        *_serving(pipeline),
        *_candidate(pipeline, policy),
        *(("rejected", f"{entry.release}: {entry.reason}") for entry in status.rollout.rejected[:REJECTED_SHOWN]),
        *_way_back(pipeline),
        *_routing(pipeline),
        *_troubles([*status.conditions, *(policy.status.conditions if policy else [])]),
        *_knowledge(bases),
        *_last_order(policy.status.last_request if policy is not None else status.last_request),
        *(("next", hint) for hint in _hints(pipeline, policy, bases)),
    ]
    return "\n".join([*lines, *(f"  {label:<11} {text}" for label, text in told)])


def _ready(conditions: Sequence[Condition]) -> str:
    ready = find(conditions, ConditionType.READY)
    if ready is None:
        return "not looked at yet; is the operator running?"
    if ready.status == "True":
        return "Ready"
    return f"not ready ({ready.reason})" if ready.status == "False" else f"not ready yet ({ready.reason})"


def _serving(pipeline: RetrievalPipeline) -> Iterator[tuple[str, str]]:
    status = pipeline.status
    available = find(status.conditions, ConditionType.AVAILABLE)
    if not status.serving_release:
        yield "serves", "nothing yet"
        return
    since = next((entry.from_ for entry in status.rollout.history if entry.release == status.serving_release), "")
    when = f" since {since}" if since else ""
    if available is not None and available.status != "True":
        yield "serves", f"NOBODY: {available.message or available.reason} (it would be {status.serving_release})"
    else:
        yield "serves", f"{status.serving_release}{when}"


def _candidate(pipeline: RetrievalPipeline, policy: RoutingPolicy | None) -> Iterator[tuple[str, str]]:
    rollout = pipeline.status.rollout
    if rollout.candidate and rollout.phase == "RollingBack":
        yield (
            "going back",
            f"to {rollout.candidate} as soon as its pods are warm; {rollout.stable} serves until then",
        )
    elif rollout.candidate:
        where = ""
        if rollout.step is not None:
            unit = policy.spec.unit if policy is not None else "user"
            where = f", step {rollout.step.name}, {rollout.step.share:g} % by {unit}"
        yield "candidate", f"{rollout.candidate} ({rollout.phase or NONE}{where})"
    if rollout.candidate and policy is not None and policy.spec.rollout.steps:
        present = rollout.step.name if rollout.step is not None else ""
        yield "steps", " > ".join(_step(step, present) for step in policy.spec.rollout.steps)
    if rollout.queued:
        yield "queued", f"{rollout.queued}, starts when the present rollout has ended"


def _step(step: Step, present: str) -> str:
    what = f"{step.name} {step.percent:g} %" if step.percent is not None else f"{step.name} (waits)"
    return f"[{what}]" if step.name == present else what


def _way_back(pipeline: RetrievalPipeline) -> Iterator[tuple[str, str]]:
    rollback = pipeline.status.rollback
    if rollback.target:
        readiness = {"Warm": "warm: under a second", "Cold": "cold: it has to load first"}
        yield (
            "rollback",
            f"would go to {rollback.target} ({readiness.get(rollback.readiness, rollback.readiness or NONE)})",
        )


def _routing(pipeline: RetrievalPipeline) -> Iterator[tuple[str, str]]:
    routing = pipeline.status.routing
    if routing.pending:
        pods = ", ".join(routing.pending)
        yield "routing", f"{routing.summary} pods obey table {routing.version}; waiting for {pods}"


def _troubles(conditions: Iterable[Condition]) -> Iterator[tuple[str, str]]:
    """Yield what a person should know, each message once: what is wrong, and what only takes its time."""
    seen = set()
    for condition in conditions:
        wrong = condition.status != "True" if condition.type in GOOD else condition.status == "True"
        if wrong and condition.message and condition.message not in seen:
            seen.add(condition.message)
            waits = condition.status == "Unknown" or condition.type == ConditionType.RECONCILING
            yield "waits" if waits else "trouble", f"{condition.reason}: {condition.message}"


def _knowledge(bases: Iterable[KnowledgeBase]) -> Iterator[tuple[str, str]]:
    for base in bases:
        status = base.status
        building = f", builds {status.desired_revision} {status.building}" if status.building else ""
        counted = f"{status.documents} documents, {status.chunks} chunks"
        failed = f", {status.sync.failed} documents failed" if status.sync.failed else ""
        revision = status.latest_revision or "no revision yet"
        yield "knowledge", f"{base.metadata.name}: {_ready(status.conditions)}; {revision}, {counted}{building}{failed}"
        ready = find(status.conditions, ConditionType.READY)
        if ready is not None and ready.status == "False" and ready.message:
            yield "", f"{ready.reason}: {ready.message}"


def _last_order(outcome: RequestOutcome | None) -> Iterator[tuple[str, str]]:
    if outcome is not None:
        who = outcome.by or "somebody"
        yield "last order", f"{outcome.verb} by {who} at {outcome.at}: {outcome.result}; {outcome.message}"


# --- what to do ------------------------------------------------------------------------------------


def _hints(
    pipeline: RetrievalPipeline, policy: RoutingPolicy | None, knowledge: Sequence[KnowledgeBase]
) -> Iterator[str]:
    hints = [*_about_trouble(pipeline, knowledge), *_about_rollout(pipeline, policy), *_about_the_way_back(pipeline)]
    yield from hints or [_when_nothing_is_asked(pipeline)]


def _about_trouble(pipeline: RetrievalPipeline, knowledge: Sequence[KnowledgeBase]) -> Iterator[str]:
    conditions = pipeline.status.conditions
    ready, accepted = find(conditions, ConditionType.READY), find(conditions, ConditionType.ACCEPTED)
    if ready is None:
        yield "kubectl get pods -A -l app.kubernetes.io/name=tidegate   shows the operator"
        return
    if accepted is not None and accepted.status == "False":
        serving = "the last accepted one stays in force" if pipeline.status.serving_release else "nothing serves yet"
        yield f"correct the spec as the trouble above says; {serving}"
    for reason in dict.fromkeys(each.reason for each in conditions if each.type in ("Ready", "Degraded", "Stalled")):
        if reason in REMEDIES:
            yield REMEDIES[Reason(reason)]
    for base in knowledge:
        found = find(base.status.conditions, ConditionType.READY)
        if found is not None and found.status == "False":
            yield f"kubectl describe kb {base.metadata.name}   its index is not as the spec asks"
    if pipeline.spec.suspend:
        yield "set spec.suspend: false   changes are held back until then"


def _about_rollout(pipeline: RetrievalPipeline, policy: RoutingPolicy | None) -> Iterator[str]:
    name, rollout = pipeline.metadata.name, pipeline.status.rollout
    if rollout.candidate and rollout.phase == "Paused" and policy is not None:
        names = [step.name for step in policy.spec.rollout.steps]
        if rollout.step is not None and rollout.step.name not in names:
            yield f"step {rollout.step.name} is no longer in the policy, so the rollout waits"
        yield f"kubectl rag promote {name}   goes on; kubectl rag abort {name} takes the candidate back"
    elif rollout.candidate and rollout.phase in ("Progressing", "Preparing") and rollout.stable:
        yield f"kubectl rag abort {name}   takes the candidate back; else it goes on by itself"
    ready = find(pipeline.status.conditions, ConditionType.READY)
    held = ready is not None and ready.reason in (Reason.ROLLED_BACK, Reason.CONTAINS_REJECTED)
    if rollout.rejected and (held or rollout.phase == "Failed"):
        yield f"kubectl rag retry {name}   lets the rejected change try again; another change tries by itself"


def _about_the_way_back(pipeline: RetrievalPipeline) -> Iterator[str]:
    target, rollout = pipeline.status.rollback.target, pipeline.status.rollout
    if target and not rollout.candidate:
        yield f"kubectl rag rollback {pipeline.metadata.name}   serves {target} again"


def _when_nothing_is_asked(pipeline: RetrievalPipeline) -> str:
    ready = find(pipeline.status.conditions, ConditionType.READY)
    if ready is not None and ready.status == "Unknown":
        return "nothing to do: it goes on by itself; kubectl rag status --watch shows how"
    return "nothing to do"
