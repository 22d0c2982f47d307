"""An API server in memory behind our ports: the parts of its behaviour that decisions rest on.

Server-side apply keeps what each manager applied last, so a member that is left out of the next apply
goes away; an apply that changes nothing keeps the resource version; a status is replaced only at the
version that was read; the data of a ControllerRevision never changes; a claim never shrinks; deleting
a parent takes its children along. `calls` lists every request, `writes` those that may change something.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from tidegate_operator.core.drift import differences
from tidegate_operator.core.kinds import FIELD_MANAGER, Kind, Manifest, Ref, ref_of
from tidegate_operator.core.ownership import labels_kept, same_controller
from tidegate_operator.core.plan import Note
from tidegate_operator.errors import NameConflictError, RefusedError, StaleError

BORN = datetime(2026, 1, 1, tzinfo=UTC)


def copied(value: Any) -> Any:
    """Return a copy of plain JSON, much faster than the general way."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


class FakeCluster:
    """Implements `ClusterReader` and `ClusterWriter`."""

    def __init__(self) -> None:
        self.objects: dict[Ref, Manifest] = {}
        self.calls: list[tuple[str, Ref | None]] = []
        self.created: Counter[Ref] = Counter()
        self.events: dict[str, tuple[Ref, Note]] = {}
        # Returns why a manifest is refused, as admission or quota would.
        self.refuse: Callable[[Manifest], str | None] = lambda _: None
        self._applied: dict[tuple[Ref, str], Manifest] = {}
        self.version = 0
        self._uid = 0

    def clone(self) -> "FakeCluster":
        """Return a world of its own in the same state."""
        twin = FakeCluster()
        twin.objects = copied(self.objects)
        twin.created = Counter(self.created)
        twin.events = dict(self.events)
        twin.refuse = self.refuse
        twin.version = self.version
        twin._applied = copied(self._applied)
        twin._uid = self._uid
        return twin

    @property
    def writes(self) -> list[tuple[str, Ref | None]]:
        """Return the requests that may change something."""
        return [call for call in self.calls if call[0] not in ("get", "find")]

    # --- ports ----------------------------------------------------------------------------------

    async def get(self, ref: Ref) -> Manifest | None:
        self.calls.append(("get", ref))
        found = self.objects.get(ref)
        return copied(found)

    async def get_metadata(self, ref: Ref) -> Manifest | None:
        found = await self.get(ref)
        return None if found is None else {key: found[key] for key in ("apiVersion", "kind", "metadata")}

    async def find(self, kind: Kind, namespace: str | None, *, labels: str = "", fields: str = "") -> list[Manifest]:
        self.calls.append(("find", None))
        return [
            copied(item)
            for ref, item in sorted(self.objects.items())
            if ref.kind is kind and namespace in (None, ref.namespace)
            if _labels_match(item, labels) and _fields_match(item, fields)
        ]

    async def create(self, manifest: Manifest) -> Manifest:
        ref = ref_of(manifest)
        self.calls.append(("create", ref))
        live = self.objects.get(ref)
        if live is not None and not same_controller(live, manifest):
            raise NameConflictError(f"{ref} exists and belongs to somebody else")
        if live is not None and labels_kept(live, manifest):
            raise StaleError(f"{ref} has been made by another operator a moment ago")
        return self._apply(manifest, FIELD_MANAGER)

    async def apply(self, manifest: Manifest) -> Manifest:
        ref = ref_of(manifest)
        self.calls.append(("apply", ref))
        uid = manifest["metadata"].get("uid")
        if uid is not None and (ref not in self.objects or self.objects[ref]["metadata"]["uid"] != uid):
            raise StaleError(f"{ref} has changed since it was read")
        return self._apply(manifest, FIELD_MANAGER)

    async def delete(self, ref: Ref, *, uid: str) -> None:
        self.calls.append(("delete", ref))
        if ref in self.objects and self.objects[ref]["metadata"]["uid"] == uid:
            self.remove(ref)

    async def replace_status(self, ref: Ref, status: Manifest, *, resource_version: str) -> None:
        self.calls.append(("status", ref))
        live = self.objects.get(ref)
        if live is None or live["metadata"]["resourceVersion"] != resource_version:
            raise StaleError(f"{ref} has changed since it was read")
        live["status"] = copied(status)
        self._touch(live)

    async def record_event(self, regarding: Ref, uid: str, note: Note, *, identity: str) -> None:
        self.calls.append(("event", regarding))
        self.events.setdefault(f"{uid}/{identity}", (regarding, note))

    # --- what others do -------------------------------------------------------------------------

    def put(self, manifest: Manifest, *, manager: str = "kubectl") -> Manifest:
        """Apply as somebody else: a user, a GitOps tool, a controller."""
        return self._apply(manifest, manager)

    def set_status(self, ref: Ref, status: Mapping[str, object]) -> None:
        """Write a status as a controller of Kubernetes would."""
        self.objects[ref]["status"] = {**(self.objects[ref].get("status") or {}), **status}
        self._touch(self.objects[ref])

    def remove(self, ref: Ref) -> None:
        """Delete an object and, by owner references, its children."""
        gone = self.objects.pop(ref)
        self._applied = {key: value for key, value in self._applied.items() if key[0] != ref}
        uid = gone["metadata"]["uid"]
        for child in [
            child
            for child, item in self.objects.items()
            if any(owner["uid"] == uid for owner in item["metadata"].get("ownerReferences") or [])
        ]:
            self.remove(child)

    def of_kind(self, kind: Kind) -> list[Manifest]:
        """Return the live objects of a kind."""
        return [item for ref, item in sorted(self.objects.items()) if ref.kind is kind]

    # --- server-side apply ----------------------------------------------------------------------

    def _apply(self, manifest: Manifest, manager: str) -> Manifest:
        if (why := self.refuse(manifest)) is not None:
            raise RefusedError(why, reason="Forbidden")
        ref = ref_of(manifest)
        live = self.objects.get(ref)
        if live is None:
            return self._insert(ref, manifest, manager)
        before = copied(live)
        earlier = self._applied.get((ref, manager), {})
        merged = _merge(_without(live, earlier, manifest), manifest)
        _check_immutable(ref, before, merged)
        merged["metadata"].update(
            {key: before["metadata"][key] for key in ("uid", "creationTimestamp", "resourceVersion", "generation")}
        )
        merged["metadata"]["managedFields"] = _managers(before, manager)
        if "status" in before:
            merged["status"] = before["status"]
        self._applied[ref, manager] = copied(manifest)
        self.objects[ref] = merged
        if merged != before:
            if merged.get("spec") != before.get("spec"):
                merged["metadata"]["generation"] += 1
            self._touch(merged)
        return copied(merged)

    def _insert(self, ref: Ref, manifest: Manifest, manager: str) -> Manifest:
        self._uid += 1
        made = copied(manifest)
        made["metadata"].update(
            uid=f"uid-{self._uid}",
            generation=1,
            creationTimestamp=BORN.isoformat(),
            managedFields=[{"manager": manager}],
        )
        self._applied[ref, manager] = copied(manifest)
        self.objects[ref] = made
        self.created[ref] += 1
        self._touch(made)
        return copied(made)

    def _touch(self, manifest: Manifest) -> None:
        self.version += 1
        manifest["metadata"]["resourceVersion"] = str(self.version)


def _managers(before: Manifest, manager: str) -> list[Manifest]:
    entries: list[Manifest] = before["metadata"]["managedFields"]
    return entries if any(entry["manager"] == manager for entry in entries) else [*entries, {"manager": manager}]


def _check_immutable(ref: Ref, before: Manifest, after: Manifest) -> None:
    if ref.kind is Kind.CONTROLLER_REVISION and differences(before.get("data"), after.get("data")):
        raise RefusedError("data: Invalid value: field is immutable", reason="Invalid")


def _without(live: Manifest, earlier: Manifest, manifest: Manifest) -> Manifest:
    """Drop what this manager applied before and leaves out now."""
    kept: Manifest = {}
    for key, value in live.items():
        if key in earlier and key not in manifest:
            continue
        if isinstance(value, dict) and isinstance(earlier.get(key), dict) and isinstance(manifest.get(key), dict):
            kept[key] = _without(value, earlier[key], manifest[key])
        else:
            kept[key] = copied(value)
    return kept


def _merge(live: Manifest, manifest: Manifest) -> Manifest:
    merged = dict(live)
    for key, value in manifest.items():
        there = merged.get(key)
        merged[key] = _merge(there, value) if isinstance(value, dict) and isinstance(there, dict) else copied(value)
    return merged


def _labels_match(item: Manifest, selector: str) -> bool:
    labels = item["metadata"].get("labels") or {}
    for term in filter(None, selector.split(",")):
        key, equals, value = term.partition("=")
        if key not in labels or (equals and labels[key] != value):
            return False
    return True


def _fields_match(item: Manifest, selector: str) -> bool:
    for term in filter(None, selector.split(",")):
        path, _, wanted = term.partition("=")
        value: object = item
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value != wanted:
            return False
    return True
