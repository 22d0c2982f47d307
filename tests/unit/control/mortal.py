"""What a kill -9 leaves behind: the world as it is before some call to the outside, and nothing else.

Between two calls nothing but memory changes, and memory is lost. A death after a call has taken effect is a
death before the next one, so the worlds before each call, reads included, are all that a death can leave.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from tidegate_api.config import IndexerState, SidecarState
from tidegate_operator.core.kinds import Kind, Manifest, Ref
from tidegate_operator.core.plan import Note
from tidegate_operator.reconcile import Reconciler

from .fake_cluster import FakeCluster
from .fake_planes import FakePlanes
from .rig import Rig

Answer = TypeVar("Answer")


class Life:
    """One operator's life in a world; `left` are those that a death before any of its calls would leave.

    Args:
        rig: the world.
        known: identities of worlds that need not be kept once more; those that are, are added.
        polite: it lets others run before each of its calls.
    """

    def __init__(self, rig: Rig, *, known: set[str] | None = None, polite: bool = False) -> None:
        self.rig = rig
        self.left: list[Rig] = []
        self.operator = Reconciler(
            cluster=MortalCluster(rig.cluster, self),
            planes=MortalPlanes(rig.planes, self),
            clock=rig.clock,
            platform=rig.platform,
        )
        self._known = known
        self._polite = polite
        self._activity: tuple[int, int, int] | None = None

    async def meet(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Make a call, which may never come about."""
        if self._polite:
            await asyncio.sleep(0)
        if self._known is not None and (activity := self.rig.activity()) != self._activity:
            self._activity = activity
            self._keep(self._known)
        return await call()

    def _keep(self, known: set[str]) -> None:
        if (name := identity(self.rig)) not in known:
            known.add(name)
            self.left.append(self.rig.clone())


def identity(rig: Rig) -> str:
    """Return a text that is the same for two worlds in which operators without memory do the same."""
    generations = {str(ref): item["metadata"].get("generation") for ref, item in rig.cluster.objects.items()}
    made = {str(ref): count for ref, count in rig.cluster.created.items() if ref.kind is not Kind.POD}
    return json.dumps([rig.picture(), generations, made, rig.clock.now().isoformat()], sort_keys=True)


class MortalCluster:
    """The fake cluster, to an operator that may die."""

    def __init__(self, cluster: FakeCluster, life: Life) -> None:
        self._cluster = cluster
        self._life = life

    async def get(self, ref: Ref) -> Manifest | None:
        return await self._life.meet(lambda: self._cluster.get(ref))

    async def get_metadata(self, ref: Ref) -> Manifest | None:
        return await self._life.meet(lambda: self._cluster.get_metadata(ref))

    async def find(self, kind: Kind, namespace: str | None, *, labels: str = "", fields: str = "") -> list[Manifest]:
        return await self._life.meet(lambda: self._cluster.find(kind, namespace, labels=labels, fields=fields))

    async def create(self, manifest: Manifest) -> Manifest:
        return await self._life.meet(lambda: self._cluster.create(manifest))

    async def apply(self, manifest: Manifest) -> Manifest:
        return await self._life.meet(lambda: self._cluster.apply(manifest))

    async def delete(self, ref: Ref, *, uid: str) -> None:
        await self._life.meet(lambda: self._cluster.delete(ref, uid=uid))

    async def replace_status(self, ref: Ref, status: Manifest, *, resource_version: str) -> None:
        await self._life.meet(lambda: self._cluster.replace_status(ref, status, resource_version=resource_version))

    async def record_event(self, regarding: Ref, uid: str, note: Note, *, identity: str) -> None:
        await self._life.meet(lambda: self._cluster.record_event(regarding, uid, note, identity=identity))


class MortalPlanes:
    """The fake planes, to an operator that may die."""

    def __init__(self, planes: FakePlanes, life: Life) -> None:
        self._planes = planes
        self._life = life

    async def indexer(self, namespace: str, knowledge_base: str) -> IndexerState | None:
        return await self._life.meet(lambda: self._planes.indexer(namespace, knowledge_base))

    async def sidecars(self, addresses: Mapping[str, str]) -> Mapping[str, SidecarState]:
        return await self._life.meet(lambda: self._planes.sidecars(addresses))
