"""From rendered manifests to the writes they need.

The rules, in one place for all kinds: an object of that name that is not ours is never touched; what
a deleted parent of the same name left behind is waited for; an object that is as rendered costs no
write; what the API server refused is not sent again unchanged before its time; create-only objects
are never rewritten; a claim only grows; replicas belong to whoever set them last. A write names the
object that was looked at, so one that has taken its place since is not written to.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tidegate_api.hashing import content_hash
from tidegate_api.v1alpha1.common import quantity_value
from tidegate_operator.core.drift import differences
from tidegate_operator.core.kinds import Kind, Manifest, Ref, ref_of, with_metadata
from tidegate_operator.core.names import Annotation
from tidegate_operator.core.observed import (
    Children,
    Live,
    Ownership,
    Refusal,
)
from tidegate_operator.core.plan import Action, Apply, Create, inputs_of


class Upkeep(StrEnum):
    """How an object is treated once it exists."""

    CURRENT = "current"  # kept as rendered
    ONCE = "once"  # made once; its content is never rewritten
    GROW = "grow"  # a claim: made once, its size may grow


@dataclass(frozen=True, slots=True)
class Wanted:
    """A rendered child, complete with owner reference and inputs hash."""

    manifest: Manifest
    upkeep: Upkeep = Upkeep.CURRENT

    @property
    def ref(self) -> Ref:
        """Return its reference."""
        return ref_of(self.manifest)


@dataclass(frozen=True, slots=True)
class ChildrenPlan:
    """Writes that are needed, names that are taken, and refusals that still hold."""

    actions: tuple[Action, ...] = ()
    conflicts: tuple[Ref, ...] = ()
    leftovers: tuple[Ref, ...] = ()
    refusals: tuple[Refusal, ...] = ()


def seal(manifest: Manifest, children: Children, *, inputs: object = None) -> Manifest:
    """Return `manifest` with the owner reference and the hash of what it was rendered from.

    `inputs` names what the object depends on where that is less than its whole text: a pod template
    that a newer operator renders otherwise is not rolled while its inputs are the same.
    """
    digest = content_hash(manifest if inputs is None else inputs)  # type: ignore[arg-type]
    metadata = manifest["metadata"]
    return {
        **manifest,
        "metadata": {
            **metadata,
            "annotations": {**(metadata.get("annotations") or {}), Annotation.INPUTS.value: digest},
            "ownerReferences": [children.owner.reference()],
        },
    }


def plan_children(children: Children, wanted: Iterable[Wanted], *, now: datetime) -> ChildrenPlan:
    """Return what it takes to bring the live objects to what is wanted."""
    actions: list[Action] = []
    conflicts: list[Ref] = []
    leftovers: list[Ref] = []
    refusals: list[Refusal] = []
    for child in wanted:
        live = children.live.get(child.ref)
        if live is not None and (ownership := live.ownership(children.owner)) is not Ownership.OURS:
            (leftovers if ownership is Ownership.LEFTOVER else conflicts).append(child.ref)
            continue
        action = _write(child, live, settled=children.settled.get(child.ref, ()))
        if action is None:
            continue
        refusal = children.refusals.get(child.ref)
        if refusal is not None and refusal.inputs == action.inputs:
            if refusal.taken:
                conflicts.append(child.ref)
            else:
                refusals.append(refusal)
            if now < refusal.retry_at:
                continue
        actions.append(action)
    return ChildrenPlan(tuple(actions), tuple(conflicts), tuple(leftovers), tuple(refusals))


def _write(child: Wanted, live: Live | None, *, settled: tuple[str, ...]) -> Create | Apply | None:
    if live is None:
        return Create(child.manifest)
    if live.deleting:
        return None
    match child.upkeep:
        case Upkeep.ONCE:
            return None
        case Upkeep.GROW:
            return _growth(child.manifest, live)
        case Upkeep.CURRENT:
            return _refresh(child.manifest, live, settled=settled)


def _refresh(manifest: Manifest, live: Live, *, settled: tuple[str, ...]) -> Apply | None:
    manifest = _without_foreign_replicas(manifest, live)
    if inputs_of(manifest) != live.inputs:
        return _apply(manifest, live)
    template = (manifest["metadata"].get("annotations") or {}).get(Annotation.TEMPLATE)
    if template is not None and template != live.annotations.get(Annotation.TEMPLATE):
        return None  # rendered by another template from the same inputs: not ours to roll
    drift = tuple(path for path in differences(manifest, live.manifest) if path not in settled)
    return _apply(manifest, live) if drift else None


def _apply(manifest: Manifest, live: Live) -> Apply:
    return Apply(with_metadata(manifest, uid=live.uid))


def _without_foreign_replicas(manifest: Manifest, live: Live) -> Manifest:
    if live.ref.kind is not Kind.DEPLOYMENT or not live.others_own_replicas():
        return manifest
    return {**manifest, "spec": {key: value for key, value in manifest["spec"].items() if key != "replicas"}}


def _growth(manifest: Manifest, live: Live) -> Apply | None:
    def size(claim: Manifest) -> str:
        return str(claim["spec"]["resources"]["requests"]["storage"])

    return _apply(manifest, live) if quantity_value(size(manifest)) > quantity_value(size(live.manifest)) else None
