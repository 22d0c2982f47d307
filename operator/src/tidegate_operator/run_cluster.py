"""The cluster during one run of a key: each child is read once, and is after our own write what the API server answered.

A run takes several passes, each of which would read some fifteen objects again that it, a moment ago, has found
as they are. What other people change meanwhile comes as an event and is the next run's. Our own kinds are
read anew in every pass: status is what decisions rest on, and another operator may be at work on it.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from tidegate_operator.core.kinds import OWN_KINDS, Kind, Manifest, Ref, ref_of
from tidegate_operator.core.plan import Note
from tidegate_operator.ports import ClusterReader, ClusterWriter


class Cluster(ClusterReader, ClusterWriter, Protocol):
    """Reads and writes."""


class RunCluster:
    """Implements `ClusterReader` and `ClusterWriter` for one run."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._objects: dict[Ref, Manifest | None] = {}
        self._metadata: dict[Ref, Manifest | None] = {}
        self._lists: dict[tuple[Kind, str | None, str, str], list[Manifest]] = {}

    async def get(self, ref: Ref) -> Manifest | None:
        """Return the object, or None when there is none."""
        if ref.kind in OWN_KINDS:
            return await self._cluster.get(ref)
        if ref not in self._objects:
            self._objects[ref] = await self._cluster.get(ref)
        return self._objects[ref]

    async def get_metadata(self, ref: Ref) -> Manifest | None:
        """Return the object without its content, or None."""
        if ref not in self._metadata:
            self._metadata[ref] = await self._cluster.get_metadata(ref)
        return self._metadata[ref]

    async def find(self, kind: Kind, namespace: str | None, *, labels: str = "", fields: str = "") -> list[Manifest]:
        """Return the objects that the selectors accept."""
        if kind in OWN_KINDS:
            return await self._cluster.find(kind, namespace, labels=labels, fields=fields)
        asked = (kind, namespace, labels, fields)
        if asked not in self._lists:
            self._lists[asked] = await self._cluster.find(kind, namespace, labels=labels, fields=fields)
        return self._lists[asked]

    async def create(self, manifest: Manifest) -> Manifest:
        """Make an object, and know it from then on."""
        return await self._written(manifest, self._cluster.create)

    async def apply(self, manifest: Manifest) -> Manifest:
        """Bring our own object to `manifest`, and know it from then on."""
        return await self._written(manifest, self._cluster.apply)

    async def delete(self, ref: Ref, *, uid: str) -> None:
        """Delete that very object."""
        self._forget(ref)
        await self._cluster.delete(ref, uid=uid)

    async def replace_status(self, ref: Ref, status: Manifest, *, resource_version: str) -> None:
        """Replace the status of an object of our own kinds, which is never remembered."""
        await self._cluster.replace_status(ref, status, resource_version=resource_version)

    async def record_event(self, regarding: Ref, uid: str, note: Note, *, identity: str) -> None:
        """Write an Event."""
        await self._cluster.record_event(regarding, uid, note, identity=identity)

    async def _written(self, manifest: Manifest, write: Callable[[Manifest], Awaitable[Manifest]]) -> Manifest:
        ref = ref_of(manifest)
        self._forget(ref)  # first: a write that fails leaves its object in doubt
        live = await write(manifest)
        self._objects[ref] = live
        self._metadata[ref] = {member: live[member] for member in ("apiVersion", "kind", "metadata")}
        return live

    def _forget(self, ref: Ref) -> None:
        self._objects.pop(ref, None)
        self._metadata.pop(ref, None)
        for asked in [asked for asked in self._lists if asked[0] is ref.kind]:
            del self._lists[asked]
