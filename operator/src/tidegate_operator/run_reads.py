"""What one run of a key reads: each child once, and after our own write what the API server answered.

A run takes several passes, each of which would read some fifteen objects again that it, a moment ago, has found
as they are. What other people change meanwhile comes as an event and is the next run's. Our own kinds are
read anew in every pass: status is what decisions rest on, and another operator may be at work on it.
"""

from tidegate_operator.core.kinds import OWN_KINDS, Kind, Manifest, Ref
from tidegate_operator.ports import ClusterReader


class RunReads:
    """A `ClusterReader` for one run. Whoever writes says so."""

    def __init__(self, cluster: ClusterReader) -> None:
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

    def written(self, ref: Ref, live: Manifest) -> None:
        """An object is now as the API server has answered."""
        self.doubtful(ref)
        self._objects[ref] = live
        self._metadata[ref] = {member: live[member] for member in ("apiVersion", "kind", "metadata")}

    def doubtful(self, ref: Ref) -> None:
        """An object is gone, or a write to it has failed: it is read again."""
        self._objects.pop(ref, None)
        self._metadata.pop(ref, None)
        for asked in [asked for asked in self._lists if asked[0] is ref.kind]:
            del self._lists[asked]
