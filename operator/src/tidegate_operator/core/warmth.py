"""Which releases could serve at once, and whether all pods obey the newest table and settings.

A release is warm when the pods that are to serve it say so themselves; a probe on a port says nothing
about models and indexes. In a Deployment that serves already every ready pod must have it, so that no
request meets one that has not; a Deployment of its own must have all its pods, and Kubernetes must count
them as ready too: its peer Service knows no others, and refuses every hop.
"""

from collections.abc import Iterable

from tidegate_api.config import ReleaseConfig, SidecarState
from tidegate_operator.core.observed_rp import PipelineWorld
from tidegate_operator.core.workloads import Pod


def warm_releases(world: PipelineWorld, releases: Iterable[ReleaseConfig]) -> frozenset[str]:
    """Return the names of those that could serve all traffic at once."""
    return frozenset(release.name for release in releases if _warm(world, release))


def failures(world: PipelineWorld, release: ReleaseConfig) -> str:
    """Return why a release cannot be opened, when a pod says so; the same text while nothing changes."""
    told = [
        held.message or "the runtime gave no reason"
        for _, state in _answers(world, world.pods_of(release.deployment))
        for held in state.releases
        if held.name == release.name and held.phase == "Failed"
    ]
    return min(told, default="")


def _warm(world: PipelineWorld, release: ReleaseConfig) -> bool:
    workload = world.workload(release.deployment)
    if workload is None:
        return False
    if workload.desired == 0:
        return True  # nobody is to answer, so nobody has to be waited for
    pods = world.pods_of(release.deployment)
    holding = {pod.name for pod, state in _answers(world, pods) if _holds(state, release.name)}
    stable = world.frozen.get(world.status.rollout.stable)
    if stable is None or stable.release.deployment == release.deployment:
        # Ready pods get traffic, so all of them must have it; where none is ready, one that has it is better than none.
        return bool(holding) and {pod.name for pod in pods if pod.ready} <= holding
    return len(holding & {pod.name for pod in pods if pod.ready}) >= workload.desired


def _holds(state: SidecarState, release: str) -> bool:
    return any(held.name == release and held.phase == "Warm" for held in state.releases)


def _answers(world: PipelineWorld, pods: Iterable[Pod]) -> list[tuple[Pod, SidecarState]]:
    return [(pod, world.sidecars[pod.name]) for pod in pods if pod.name in world.sidecars]


def behind_table(world: PipelineWorld) -> tuple[str, ...]:
    """Return the ready pods that do not say that they obey the table as it is written."""
    wanted = (world.table.version, world.table_hash) if world.table is not None else None
    told = {name: (state.table_version, state.table_hash) for name, state in world.sidecars.items()}
    return tuple(pod.name for pod in world.pods if pod.ready and not pod.deleting and told.get(pod.name) != wanted)


def behind_settings(world: PipelineWorld, config_hash: str) -> bool:
    """Return whether a ready pod does not say that it obeys the newest settings."""
    ready = [pod for pod in world.pods if pod.ready and not pod.deleting]
    return any(pod.name not in world.sidecars or world.sidecars[pod.name].config_hash != config_hash for pod in ready)
