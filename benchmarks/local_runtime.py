"""A runtime inside this process, for measuring without sockets."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tidegate_api.config import IndexRef, PipelineConfig, ReleaseConfig, Versions
from tidegate_api.nodes import HYBRID_NODES, HYBRID_OUTPUT
from tidegate_api.shape import EmbedderFingerprint
from tidegate_api.wire import Scope, SearchRequest, SearchResponse
from tidegate_runtime.dataplane import DataPlane
from tidegate_runtime.engine import Engine
from tidegate_runtime.metrics import SearchMetrics
from tidegate_runtime.ports import Embedder
from tidegate_runtime.releases import Releases
from tidegate_runtime.revisions import LocalRevisions
from tidegate_runtime.warmup import warm_up

WARM_UP_SECONDS = 60.0
DEADLINE_MS = 60_000


def default_release(index: IndexRef, *, output: str = HYBRID_OUTPUT) -> ReleaseConfig:
    """Return a release of the preset over one index; another `output` is one of its legs alone."""
    pipeline = PipelineConfig(knowledge_bases=[index.knowledge_base], nodes=list(HYBRID_NODES), output=output)
    return ReleaseConfig.make(pipeline=pipeline, indexes=[index], versions=Versions(runtime="bench", sidecar="bench"))


def search_request(release: ReleaseConfig, query: str, *, top_k: int | None = None) -> SearchRequest:
    """Return an anonymous request."""
    return SearchRequest(
        query_id="bench", release=release.name, query=query, scope=Scope(), top_k=top_k, deadline_ms=DEADLINE_MS
    )


@dataclass(frozen=True, slots=True)
class OneEmbedder:
    """Gives the one encoder that a benchmark has."""

    embedder: Embedder

    async def open(self, fingerprint: EmbedderFingerprint) -> Embedder:
        """Return the encoder."""
        assert fingerprint == self.embedder.fingerprint, "the index was built with another encoder"
        return self.embedder


@dataclass(frozen=True, slots=True)
class LocalRuntime:
    """Warm releases and the data plane over them."""

    dataplane: DataPlane

    async def search(self, release: ReleaseConfig, query: str, *, top_k: int | None = None) -> SearchResponse:
        """Ask one release."""
        return await self.dataplane.search(search_request(release, query, top_k=top_k))


@asynccontextmanager
async def local_runtime(
    root: Path, *, embedder: Embedder, releases: Sequence[ReleaseConfig]
) -> AsyncIterator[LocalRuntime]:
    """Open `releases` over the revisions below `root` and wait until all are warm."""
    engine = Engine()
    held = Releases(
        revisions=LocalRevisions(root),
        embedders=OneEmbedder(embedder),
        warm_up=lambda opened: warm_up(engine, opened, deadline_seconds=WARM_UP_SECONDS),
    )
    try:
        for release in releases:
            held.open(release)
        while any(state.phase == "Loading" for state in await held.states()):  # noqa: ASYNC110 - they do not call back
            await asyncio.sleep(0.01)
        failed = [state.message for state in await held.states() if state.phase == "Failed"]
        assert not failed, failed
        yield LocalRuntime(DataPlane(releases=held, engine=engine, metrics=SearchMetrics()))
    finally:
        await held.close_all()
        engine.close()
