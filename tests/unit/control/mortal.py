"""A cluster port that kills its user: at the n-th call, before or after the call takes effect."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from tidegate_api.config import IndexerState, SidecarState
from tidegate_operator.core.kinds import Kind, Manifest, Ref
from tidegate_operator.core.plan import Note

from .fake_cluster import FakeCluster
from .fake_planes import FakePlanes

Answer = TypeVar("Answer")


class Killed(BaseException):
    """kill -9: nothing in the code may catch it."""


class Fate:
    """Counts calls and kills at one of them.

    Between two writes nothing but memory changes, and memory is lost at any death; so a death at a
    write, before or after it takes effect, stands for all reads around it. `reads` counts them too.
    `polite` lets others run before each call.
    """

    def __init__(
        self, *, at: int | None = None, after: bool = False, reads: bool = False, polite: bool = False
    ) -> None:
        self.calls = 0
        self._at = at
        self._after = after
        self._reads = reads
        self._polite = polite

    async def read(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        await self._give_way()
        return await (self.meet(call) if self._reads else call())

    async def _give_way(self) -> None:
        if self._polite:
            await asyncio.sleep(0)

    async def meet(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        await self._give_way()
        self.calls += 1
        if self.calls == self._at and not self._after:
            raise Killed
        answer = await call()
        if self.calls == self._at:
            raise Killed
        return answer


class MortalCluster:
    """The fake cluster, with a fate."""

    def __init__(self, cluster: FakeCluster, fate: Fate) -> None:
        self._cluster = cluster
        self._fate = fate

    async def get(self, ref: Ref) -> Manifest | None:
        return await self._fate.read(lambda: self._cluster.get(ref))

    async def get_metadata(self, ref: Ref) -> Manifest | None:
        return await self._fate.read(lambda: self._cluster.get_metadata(ref))

    async def find(self, kind: Kind, namespace: str | None, *, labels: str = "", fields: str = "") -> list[Manifest]:
        return await self._fate.read(lambda: self._cluster.find(kind, namespace, labels=labels, fields=fields))

    async def create(self, manifest: Manifest) -> Manifest:
        return await self._fate.meet(lambda: self._cluster.create(manifest))

    async def apply(self, manifest: Manifest) -> Manifest:
        return await self._fate.meet(lambda: self._cluster.apply(manifest))

    async def delete(self, ref: Ref, *, uid: str) -> None:
        await self._fate.meet(lambda: self._cluster.delete(ref, uid=uid))

    async def replace_status(self, ref: Ref, status: Manifest, *, resource_version: str) -> None:
        await self._fate.meet(lambda: self._cluster.replace_status(ref, status, resource_version=resource_version))

    async def record_event(self, regarding: Ref, uid: str, note: Note, *, identity: str) -> None:
        await self._fate.meet(lambda: self._cluster.record_event(regarding, uid, note, identity=identity))


class MortalPlanes:
    """The fake planes, with the same fate."""

    def __init__(self, planes: FakePlanes, fate: Fate) -> None:
        self._planes = planes
        self._fate = fate

    async def indexer(self, namespace: str, knowledge_base: str) -> IndexerState | None:
        return await self._fate.read(lambda: self._planes.indexer(namespace, knowledge_base))

    async def sidecars(self, addresses: Mapping[str, str]) -> Mapping[str, SidecarState]:
        return await self._fate.read(lambda: self._planes.sidecars(addresses))
