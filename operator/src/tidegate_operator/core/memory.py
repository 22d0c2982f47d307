"""Whether pods have room for one more release: what is opened beside what serves must not end both.

Releases that differ in their indexes only share pods, so a candidate is opened where stable answers. Each
index revision counts once, with the memory that its reader needs (`loadBytes` in its KnowledgeBase's
status), and the process and its encoders with what they were measured to take. What pods hold already is
not taken away from them when an index grows: only what would come is judged.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from tidegate_api.config import ReleaseConfig
from tidegate_api.nodes import REQUIRES
from tidegate_api.v1alpha1.retrievalpipeline import RolloutStatus
from tidegate_operator.core.observed_rp import PipelineWorld
from tidegate_operator.core.workloads import runtime_memory_bytes

MEBIBYTE = 2**20
# Measured, of its own memory alone: 42 MiB without an encoder, which adds 160 (minilm) or 116 (use-m3). The rest is
# for queries.
PROCESS_BYTES = 64 * MEBIBYTE
ENCODER_BYTES = 192 * MEBIBYTE
_STEP_BYTES = 64 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class Shortage:
    """Pods that hold `beside` have no room for `release`, too."""

    release: str
    beside: str
    needed_bytes: int
    limit_bytes: int

    def __str__(self) -> str:
        """Return one sentence with the figures and the next step; rounded, so that not every edit makes another one."""
        needed = f"{-(-self.needed_bytes // _STEP_BYTES) * _STEP_BYTES // MEBIBYTE}Mi"
        return (
            f"pods that hold {self.beside} have no room for {self.release}: together with the runtime itself they need "
            f"{needed} of memory, its limit is {self.limit_bytes // MEBIBYTE}Mi; "
            f"raise spec.runtime.resources.limits.memory to {needed} or more"
        )


def shortages(
    world: PipelineWorld,
    releases: Mapping[str, ReleaseConfig],
    state: RolloutStatus,
    *,
    front: str,
    bound: Collection[str],
) -> dict[str, Shortage]:
    """Return which of the releases that pods should hold they have no room for.

    What serves, and what a pin or rule is `bound` to, stays in any case; so does a candidate that pods
    hold already. Releases that are kept for going back alone make room for it.
    """
    rank = {**dict.fromkeys(bound, 1), state.candidate: 2, front: 0}
    begun = state.step is not None or state.candidate in written_releases(world)
    staying = {*bound, *({state.candidate} if begun else ())}
    kept: list[ReleaseConfig] = []
    lacks: dict[str, Shortage] = {}
    for name in sorted(releases, key=lambda each: rank.get(each, 3)):
        shortage = None if name in staying else shortage_of(world, releases[name], beside=kept)
        if shortage is None:
            kept.append(releases[name])
        else:
            lacks[name] = shortage
    return lacks


def written_releases(world: PipelineWorld) -> frozenset[str]:
    """Return the releases of the table as it is written, which pods hold or are about to."""
    return frozenset(release.name for release in world.table.releases) if world.table is not None else frozenset()


def shortage_of(world: PipelineWorld, release: ReleaseConfig, *, beside: Iterable[ReleaseConfig]) -> Shortage | None:
    """Return that pods which hold others have no room for a release; None where there is, or no limit is known."""
    sharing = [each for each in beside if each.deployment == release.deployment]
    limit = _limit_bytes(world, release.deployment) if sharing else None
    needed = _needed_bytes(world, [*sharing, release])
    if limit is None or needed <= limit:
        return None
    return Shortage(release.name, " and ".join(each.name for each in sharing), needed, limit)


def _needed_bytes(world: PipelineWorld, releases: Iterable[ReleaseConfig]) -> int:
    """Return what a runtime takes that holds these. A revision that status no longer lists counts nothing."""
    loads: dict[str, int] = {}
    encoders: set[str] = set()
    for release in releases:
        dense = any(REQUIRES.get(node.type) == "dense" for node in release.pipeline.nodes)
        for index in release.indexes:
            knowledge = world.knowledge.get(index.knowledge_base)
            revision = knowledge.revisions.get(index.revision) if knowledge is not None else None
            if revision is not None:
                loads[revision.name] = revision.load_bytes
                encoders |= {revision.embedder} if dense else set()
    return PROCESS_BYTES + ENCODER_BYTES * len(encoders) + sum(loads.values())


def _limit_bytes(world: PipelineWorld, deployment: str) -> int | None:
    """Return the smallest limit of the pods that are there, those that are ending included: all obey one table."""
    limits = [pod.memory_bytes for pod in world.pods if pod.deployment == deployment and pod.memory_bytes is not None]
    live = world.deployment(deployment)
    if live is not None and not limits:
        template = runtime_memory_bytes(live.manifest["spec"]["template"]["spec"])
        limits = [template] if template is not None else []
    return min(limits, default=None)
