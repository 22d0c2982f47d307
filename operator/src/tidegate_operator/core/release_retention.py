"""Releases that nobody needs any more, so that the index revisions they refer to may go.

Kept are: what pods hold, what is asked for or queued, and the newest few others, to go back to. The
rest is called Expired in status first, so that nothing chooses it, and deleted in a later pass.
"""

from tidegate_api.v1alpha1.retrievalpipeline import RolloutStatus
from tidegate_operator.core.kinds import Kind, Ref
from tidegate_operator.core.names import release_object_name
from tidegate_operator.core.observed_rp import PipelineWorld
from tidegate_operator.core.plan import Delete

COLD_RELEASES_KEPT = 5
EXPIRED = "Expired"


def expired_releases(
    world: PipelineWorld, state: RolloutStatus, *, held: frozenset[str], desired: str
) -> frozenset[str]:
    """Return the releases that may be deleted. Those that served last are the last to go."""
    needed = {*held, desired, state.stable, state.candidate, state.queued}
    served = {entry.release: entry.from_ for entry in reversed(state.history)}
    loose = sorted(world.frozen.keys() - needed, key=lambda name: (served.get(name, ""), name), reverse=True)
    return frozenset(loose[COLD_RELEASES_KEPT:])


def deletions(world: PipelineWorld) -> tuple[Delete, ...]:
    """Return the deletions of releases that status calls Expired and that are still there."""
    gone = {entry.name for entry in world.status.releases if entry.phase == EXPIRED}
    found = []
    for name in sorted(gone & world.frozen.keys()):
        ref = Ref(Kind.CONTROLLER_REVISION, world.meta.namespace, release_object_name(world.meta.name, name))
        live = world.children.get(ref)
        if live is not None and not live.deleting:
            found.append(Delete(ref, live.uid))
    return tuple(found)
