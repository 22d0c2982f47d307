"""The releases that a RetrievalPipeline's status lists: those that exist, and the last of those that did."""

from tidegate_api.conditions import timestamp
from tidegate_api.v1alpha1.retrievalpipeline import IndexRevision, ReleaseStatus, ReleaseVersions, RolloutStatus
from tidegate_operator.core.kinds import Kind, Ref
from tidegate_operator.core.names import release_object_name
from tidegate_operator.core.observed_rp import PipelineWorld
from tidegate_operator.core.release_retention import EXPIRED

RELEASES_SHOWN = 20


def release_entries(
    world: PipelineWorld, state: RolloutStatus, *, held: frozenset[str], warm: frozenset[str], expired: frozenset[str]
) -> list[ReleaseStatus]:
    """Return the releases that exist and those that did, newest first."""
    known = {entry.name: entry for entry in world.status.releases}
    entries = [_entry(world, name, state, held=held, warm=warm, expired=expired) for name in world.frozen]
    gone = [known[name].model_copy(update={"phase": EXPIRED}) for name in known.keys() - world.frozen.keys()]
    newest = sorted([*entries, *gone], key=lambda each: (each.phase != EXPIRED, each.created_at or "", each.name))
    shown = newest[::-1][:RELEASES_SHOWN]
    return sorted(shown, key=lambda each: (each.created_at or "", each.name), reverse=True)


def _entry(
    world: PipelineWorld,
    name: str,
    state: RolloutStatus,
    *,
    held: frozenset[str],
    warm: frozenset[str],
    expired: frozenset[str],
) -> ReleaseStatus:
    release = world.frozen[name].release
    object_name = release_object_name(world.meta.name, name)
    live = world.children.get(Ref(Kind.CONTROLLER_REVISION, world.meta.namespace, object_name))
    served = next((entry for entry in state.history if entry.release == name), None)
    created = live.created_at if live is not None else None
    return ReleaseStatus(
        name=name,
        pipeline_revision=release.pipeline.revision(),
        index_revisions=[
            IndexRevision(knowledge_base=index.knowledge_base, revision=index.revision) for index in release.indexes
        ],
        versions=ReleaseVersions(runtime=release.versions.runtime, sidecar=release.versions.sidecar),
        phase=_phase(name, state, held=held, warm=warm, expired=expired),
        created_at=timestamp(created) if created is not None else None,
        served_from=served.from_ if served is not None else None,
        served_until=served.until if served is not None else None,
    )


def _phase(
    name: str, state: RolloutStatus, *, held: frozenset[str], warm: frozenset[str], expired: frozenset[str]
) -> str:
    if name == state.stable:
        return "Serving"
    if name in expired:
        return EXPIRED
    if name in held:
        return "Warm" if name in warm else "Preparing"
    return "Cold"
