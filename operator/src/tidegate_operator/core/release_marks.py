"""What a release has been through, written on its ControllerRevision: a status that is lost can be made again.

The marks follow the rollout's state; they decide nothing while there is one. Only where a status was
never written, or was lost with a backup, is the state read back from them: who serves, who served
before and what was rejected, so that a restored cluster neither starts anew nor brings a bad release back.
"""

from collections.abc import Iterator, Mapping

from pydantic import ValidationError

from tidegate_api.v1alpha1.common import HistoryEntry
from tidegate_api.v1alpha1.retrievalpipeline import Rejection, RolloutStatus
from tidegate_operator.core.children import Wanted, seal
from tidegate_operator.core.kinds import Kind, Manifest, Ref, with_metadata
from tidegate_operator.core.names import Annotation, release_object_name
from tidegate_operator.core.observed import Children, Live
from tidegate_operator.core.observed_rp import PipelineWorld
from tidegate_operator.core.releases import FrozenRelease
from tidegate_operator.core.render.controllerrevision import frozen_release
from tidegate_operator.core.rollout import Phase


def release_manifest(frozen: FrozenRelease, children: Children, marks: Mapping[str, str]) -> Manifest:
    """Return a release's ControllerRevision with its marks; only these make it another one."""
    manifest = frozen_release(frozen, children.owner)
    marked = with_metadata(manifest, annotations=dict(marks))
    return seal(marked, children, inputs={"release": frozen.release.name, "marks": dict(marks)})


def marked_releases(world: PipelineWorld, state: RolloutStatus) -> Iterator[Wanted]:
    """Yield every release with the marks of a state. Its data is taken as it lies there: it never changes."""
    for name, frozen in sorted(world.frozen.items()):
        live = _live(world, name)
        if live is not None and not live.deleting:
            manifest = release_manifest(frozen, world.children, marks_of(name, state))
            yield Wanted({**manifest, "data": live.manifest["data"]})


def marks_of(name: str, state: RolloutStatus) -> dict[str, str]:
    """Return the annotations of a release in a state."""
    marks: dict[str, str] = {}
    served = next((entry for entry in state.history if entry.release == name), None)
    if served is not None:
        marks[Annotation.SERVED_FROM.value] = served.from_
        if served.until is not None:
            marks[Annotation.SERVED_UNTIL.value] = served.until
    rejection = next((entry for entry in state.rejected if entry.release == name), None)
    if rejection is not None:
        marks[Annotation.REJECTED.value] = rejection.model_dump_json(by_alias=True, exclude_none=True)
    return marks


def state_of(world: PipelineWorld) -> RolloutStatus:
    """Return the rollout's state: from status, else as far as the marks tell it."""
    if world.status.observed_generation >= 0 or world.status.rollout != RolloutStatus():
        return world.status.rollout
    history: list[HistoryEntry] = []
    rejected: list[Rejection] = []
    for name in sorted(world.frozen):
        live = _live(world, name)
        marks = live.annotations if live is not None else {}
        if (served := marks.get(Annotation.SERVED_FROM)) is not None:
            history.append(HistoryEntry(release=name, from_=served, until=marks.get(Annotation.SERVED_UNTIL)))
        rejected += _rejection(marks.get(Annotation.REJECTED))
    history.sort(key=lambda entry: entry.from_, reverse=True)
    stable = next((entry.release for entry in history if entry.until is None), "")
    if not stable:
        return RolloutStatus(rejected=rejected)
    return RolloutStatus(stable=stable, phase=str(Phase.IDLE), rejected=rejected, history=history)


def _rejection(text: str | None) -> list[Rejection]:
    try:
        return [Rejection.model_validate_json(text)] if text else []
    except ValidationError:
        return []  # written by somebody else, or by another time


def _live(world: PipelineWorld, name: str) -> Live | None:
    object_name = release_object_name(world.meta.name, name)
    return world.children.get(Ref(Kind.CONTROLLER_REVISION, world.meta.namespace, object_name))
