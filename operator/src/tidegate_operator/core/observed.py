"""What a decision may look at: the world, read once, frozen.

The shell fills these and the planner reads nothing else, so a plan can be replayed from data. A live
object keeps its manifest for comparison; everything that a decision needs from it is a property here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from tidegate_operator.core.kinds import API_VERSION, FIELD_MANAGER, Manifest, Ref, ref_of
from tidegate_operator.core.names import Annotation


class Ownership(StrEnum):
    """Whose an object of a name that we want is."""

    OURS = "ours"
    LEFTOVER = "leftover"  # of a parent of this name that was deleted; the garbage collector takes it
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Owner:
    """The parent of children: what owner references are made of."""

    ref: Ref
    uid: str

    def reference(self) -> Manifest:
        """Return the controller reference that every child carries."""
        return {
            "apiVersion": API_VERSION,
            "kind": str(self.ref.kind),
            "name": self.ref.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }


@dataclass(frozen=True, slots=True)
class Live:
    """An object as the API server holds it."""

    manifest: Manifest

    @property
    def ref(self) -> Ref:
        """Return its reference."""
        return ref_of(self.manifest)

    @property
    def uid(self) -> str:
        """Return its uid."""
        return str(self.manifest["metadata"].get("uid", ""))

    @property
    def resource_version(self) -> str:
        """Return its resource version."""
        return str(self.manifest["metadata"].get("resourceVersion", ""))

    @property
    def labels(self) -> Mapping[str, str]:
        """Return its labels."""
        return self.manifest["metadata"].get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        """Return its annotations."""
        return self.manifest["metadata"].get("annotations") or {}

    @property
    def inputs(self) -> str:
        """Return the hash of what it was rendered from; empty when it has none."""
        return self.annotations.get(Annotation.INPUTS, "")

    @property
    def deleting(self) -> bool:
        """Return whether its deletion has begun."""
        return bool(self.manifest["metadata"].get("deletionTimestamp"))

    @property
    def created_at(self) -> datetime | None:
        """Return when it was made."""
        stamp = self.manifest["metadata"].get("creationTimestamp")
        return datetime.fromisoformat(stamp) if stamp else None

    def ownership(self, owner: Owner) -> Ownership:
        """Return whose it is, by its controller reference alone."""
        for reference in self.manifest["metadata"].get("ownerReferences") or []:
            if not reference.get("controller"):
                continue
            if reference.get("uid") == owner.uid:
                return Ownership.OURS
            same = (reference.get("kind"), reference.get("name")) == (str(owner.ref.kind), owner.ref.name)
            if same and str(reference.get("apiVersion", "")).startswith("tidegate.dev/"):
                return Ownership.LEFTOVER
        return Ownership.FOREIGN

    def others_own_replicas(self) -> bool:
        """Return whether somebody else, such as an autoscaler, set spec.replicas last."""
        return any(
            entry.get("manager") != FIELD_MANAGER
            and "f:replicas" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
            for entry in self.manifest["metadata"].get("managedFields") or []
        )


@dataclass(frozen=True, slots=True)
class Refusal:
    """An action that the API server refused for a reason that trying again does not cure."""

    ref: Ref
    inputs: str
    reason: str
    message: str
    retry_at: datetime
    taken: bool = False  # somebody else's object has the name


@dataclass(frozen=True, slots=True)
class Children:
    """Objects below one parent, and what happened to earlier writes of them."""

    owner: Owner
    live: Mapping[Ref, Live] = field(default_factory=dict)
    refusals: Mapping[Ref, Refusal] = field(default_factory=dict)
    # Differences that an apply has left as they were, such as a value that admission rewrites.
    settled: Mapping[Ref, tuple[str, ...]] = field(default_factory=dict)

    def get(self, ref: Ref) -> Live | None:
        """Return the live object, when there is one and it is ours."""
        found = self.live.get(ref)
        return found if found is not None and found.ownership(self.owner) is Ownership.OURS else None
