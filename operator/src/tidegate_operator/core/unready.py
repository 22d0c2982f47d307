"""Why pods that run do not get ready, in their own words: what Kubernetes knows of them is a refused probe.

A pod that gives a reason cannot mend itself, so it is believed at once. One that gives none may be on
its way: it is given the time that a start may take, and as long as it says that it loads something.
"""

from datetime import datetime, timedelta

from tidegate_api.conditions import Reason
from tidegate_api.config import SidecarState
from tidegate_operator.core.observed_rp import PipelineWorld
from tidegate_operator.core.workloads import Pod, Trouble

# As long as the startup probe of a runtime allows.
STARTING_FOR = timedelta(seconds=120)


def unready_pods(world: PipelineWorld, now: datetime) -> dict[str, Trouble]:
    """Return, by Deployment, why a pod of it does not get ready; the same one while nothing changes."""
    told: dict[str, list[Trouble]] = {}
    for pod in world.pods:
        state = world.sidecars.get(pod.name)
        trouble = _trouble(pod, state, now) if state is not None else None
        if trouble is not None:
            told.setdefault(pod.deployment, []).append(trouble)
    return {
        deployment: min(each, key=lambda trouble: (trouble.reason, trouble.message))
        for deployment, each in told.items()
    }


def _trouble(pod: Pod, state: SidecarState, now: datetime) -> Trouble | None:
    if pod.ready or pod.deleting or state.ready or not state.message:
        return None
    if state.reason:
        return Trouble(state.reason, state.message)
    starts = pod.unready_since is None or now - pod.unready_since < STARTING_FOR
    if starts or any(release.phase == "Loading" for release in state.releases):
        return None
    return Trouble(Reason.POD_NOT_READY, state.message)
