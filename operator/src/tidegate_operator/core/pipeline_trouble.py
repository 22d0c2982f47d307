"""What is wrong with a pipeline's pods, in words that say who still answers and what is awaited."""

from tidegate_api.conditions import Reason
from tidegate_operator.core.facts_rp import Facts
from tidegate_operator.core.observed_rp import PipelineWorld
from tidegate_operator.core.policies import Verdict
from tidegate_operator.core.workloads import first_trouble


def pods_trouble(world: PipelineWorld, facts: Facts, release: str) -> Verdict | None:
    """Return why pods of a release are missing, do not start or do not get ready, when it is known."""
    if release not in world.frozen:
        return None
    deployment = world.frozen[release].release.deployment
    workload = world.workload(deployment)
    trouble, what = first_trouble(workload, world.pods_of(deployment)), "run"
    if trouble is None:
        trouble, what = facts.unready.get(deployment), "get ready"
    if trouble is None:
        return None
    if workload is None or workload.ready == 0:
        told = f"pods of {release} do not {what}"
    elif release != facts.state.stable:
        told = f"some pods of {release} do not {what}"
    elif what == "run":
        told = f"new pods of {release} do not start, the earlier ones serve"
    else:
        told = f"some pods of {release} do not {what}, the others serve"
    return Verdict(trouble.reason, f"{told}: {trouble.message}")


def no_answers(world: PipelineWorld, facts: Facts) -> Verdict:
    """Return why nothing answers, given that no pod of the serving release is ready."""
    state, stable = facts.state, world.frozen.get(facts.state.stable)
    if not state.stable:
        return Verdict(Reason.PREPARING_RELEASE, "no release has served yet")
    workload = world.workload(stable.release.deployment) if stable is not None else None
    if workload is not None and workload.desired == 0:
        return Verdict(Reason.NO_READY_POD, "spec.runtime.replicas is 0; raise it to get answers")
    if facts.replacing:
        message = f"update: Replace has stopped the pods of {state.stable}; no answers until {state.candidate} is warm"
        return Verdict(Reason.REPLACING, f"{message}: {_awaited(world, facts)}")
    if workload is not None and workload.rolling and facts.spec is not None and facts.spec.runtime.update == "Replace":
        message = f"update: Replace has stopped the earlier pods of {state.stable}; no answers until new ones are ready"
        return Verdict(Reason.REPLACING, message)
    told = facts.unready.get(stable.release.deployment) if stable is not None else None
    why = f": {told.message}" if told is not None else ""
    return Verdict(Reason.NO_READY_POD, f"no pod of the serving release is ready{why}")


def _awaited(world: PipelineWorld, facts: Facts) -> str:
    """Return what a replacement waits for."""
    coming = world.frozen[facts.state.candidate].release.deployment
    if any(pod.deployment != coming for pod in world.pods):
        return "the old pods are ending"
    trouble = pods_trouble(world, facts, facts.state.candidate)
    return trouble.message if trouble is not None else "its pods start and load it"
