"""Fakes of the runtime's ports, and a runtime made of them.

`FakeIndex` is a snapshot and its reader: scores are scripted per chunk id, or computed from the query
by a function. `FakeEncoder` gives a vector that names the query. Neither knows the other's insides.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
import pytest

from tidegate_api.config import IndexRef, NodeConfig, PipelineConfig, ReleaseConfig, Versions
from tidegate_api.shape import EmbedderFingerprint
from tidegate_api.wire import Comparison, Filter, Scope, SearchRequest, SearchResponse
from tidegate_runtime.dataplane import DataPlane
from tidegate_runtime.engine import Engine
from tidegate_runtime.errors import (
    InvalidFilterError,
    ModelUnavailableError,
    RevisionUnavailableError,
    RuntimePlaneError,
)
from tidegate_runtime.metrics import SearchMetrics
from tidegate_runtime.ports import Candidates, LexicalQuery, Permission, StoredChunk
from tidegate_runtime.releases import Releases
from tidegate_runtime.sharing import GotOn
from tidegate_runtime.warmup import warm_up

Scripted = Mapping[str, float] | Callable[[str], Mapping[str, float]]

HYBRID = (
    NodeConfig(name="lexical", type="bm25"),
    NodeConfig(name="dense", type="dense"),
    NodeConfig(
        name="fused", type="fuse", inputs=["lexical", "dense"], settings={"weights": {"lexical": 0.4, "dense": 0.6}}
    ),
)


def fingerprint(model: str = "fake") -> EmbedderFingerprint:
    return EmbedderFingerprint(model=model, digest="0" * 64, dimension=1, max_tokens=8, scale=1, languages=["*"])


@dataclass
class FakeIndex:
    """One revision. Rows are the sorted chunk ids of both legs; a document is visible to its tenant or to all."""

    lexical_hits: Scripted = field(default_factory=dict)
    dense_hits: Scripted = field(default_factory=dict)
    coverage: float = 1.0
    revision: str = "docs-1"
    content_generation: int = 1
    provides: frozenset[str] = frozenset({"bm25", "dense"})
    fingerprint: EmbedderFingerprint = field(default_factory=fingerprint)
    universe: tuple[str, ...] = ()
    tenants: Mapping[str, str] = field(default_factory=dict)
    lexical_error: RuntimePlaneError | None = None
    dense_error: RuntimePlaneError | None = None
    snapshot_error: RuntimePlaneError | None = None
    closed: bool = False
    snapshots: int = 0

    def snapshot(self) -> "FakeIndex":
        assert not self.closed, "a reader is used after it was closed"
        if self.snapshot_error is not None:
            raise self.snapshot_error
        self.snapshots += 1
        return replace(self)

    def close(self) -> None:
        self.closed = True

    @property
    def ids(self) -> list[str]:
        hits = [hits for hits in (self.lexical_hits, self.dense_hits) if not callable(hits)]
        return sorted({*self.universe, *(chunk_id for each in hits for chunk_id in each)})

    def select(self, permission: Permission, filters: Filter | None) -> set[str]:
        if isinstance(filters, Comparison) and filters.key == "undeclared":
            raise InvalidFilterError("filters names the key undeclared; declare it in metadataSchema")
        return {each for each in self.ids if self.tenants.get(each, permission.tenant) == permission.tenant}

    def analyse(self, query: str) -> LexicalQuery:
        return LexicalQuery(terms=(query,), counts=(1,))

    def lexical(self, query: LexicalQuery, selection: set[str], *, top_k: int) -> Candidates:
        if self.lexical_error is not None:
            raise self.lexical_error
        positive = {each: score for each, score in _script(self.lexical_hits, query.terms[0]).items() if not score <= 0}
        return self._best(positive, selection, top_k)

    def dense(self, vector: np.ndarray, selection: set[str], *, top_k: int) -> Candidates:
        if self.dense_error is not None:
            raise self.dense_error
        return self._best(_script(self.dense_hits, _text(vector)), selection, top_k)

    def lexical_scores(self, query: LexicalQuery, rows: np.ndarray) -> np.ndarray:
        return self._scores(_script(self.lexical_hits, query.terms[0]), rows)

    def dense_scores(self, vector: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return self._scores(_script(self.dense_hits, _text(vector)), rows)

    def idf_coverage(self, query: LexicalQuery, rows: np.ndarray) -> np.ndarray:
        return np.full(len(rows), self.coverage)

    def chunk_ids(self, rows: np.ndarray) -> list[str]:
        return [self.ids[row] for row in rows]

    def chunks(self, rows: np.ndarray) -> list[StoredChunk]:
        return [
            StoredChunk(
                chunk_id=chunk_id,
                document_id=f"{chunk_id}.md",
                source="policies",
                title=f"title of {chunk_id}",
                content=f"text of {chunk_id}",
                start=0,
                end=10,
                metadata={"year": 2026},
            )
            for chunk_id in self.chunk_ids(rows)
        ]

    def _best(self, hits: Mapping[str, float], selection: set[str], top_k: int) -> Candidates:
        visible = [(each, score) for each, score in hits.items() if each in selection]
        ranked = sorted(visible, key=lambda hit: (-hit[1], hit[0]))[:top_k]
        rows = np.array([self.ids.index(each) for each, _ in ranked], dtype=np.int64)
        return Candidates(rows=rows, scores=np.array([score for _, score in ranked], dtype=np.float64))

    def _scores(self, hits: Mapping[str, float], rows: np.ndarray) -> np.ndarray:
        return np.array([hits.get(each, 0.0) for each in self.chunk_ids(rows)])


def _script(hits: Scripted, query: str) -> Mapping[str, float]:
    return hits(query) if callable(hits) else hits


def _text(vector: np.ndarray) -> str:
    return vector.astype(np.uint8).tobytes().decode()


@dataclass
class FakeEncoder:
    """Vectors that spell the query. `gate`, where given, holds the encoder until it is set."""

    fingerprint: EmbedderFingerprint = field(default_factory=fingerprint)
    error: Exception | None = None
    gate: threading.Event | None = None
    started: list[str] = field(default_factory=list)

    def embed_query(self, text: str) -> np.ndarray:
        self.started.append(text)
        if self.gate is not None:
            assert self.gate.wait(30)
        if self.error is not None:
            raise self.error
        return np.frombuffer(text.encode(), dtype=np.uint8).astype(np.float32)


@dataclass
class FakeRevisions:
    """Readers by revision; an unknown one is not there yet.

    `gate`, where given, holds an opening; `copying_seconds` is how long one takes, piece by piece.
    """

    indexes: dict[str, FakeIndex] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)
    gate: asyncio.Event | None = None
    copying_seconds: float = 0.0

    async def open(self, index: IndexRef, *, got_on: GotOn = lambda: None) -> FakeIndex:
        self.opened.append(index.revision)
        if self.gate is not None:
            await self.gate.wait()
        started = time.monotonic()
        while time.monotonic() < started + self.copying_seconds:
            got_on()
            await asyncio.sleep(0)
        if index.revision not in self.indexes:
            raise RevisionUnavailableError(f"revision {index.revision} is not there yet; wait for the indexer")
        return self.indexes[index.revision]


@dataclass
class FakeEncoders:
    """Encoders by model name. `gate`, where given, holds an opening."""

    encoders: dict[str, FakeEncoder] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)
    gate: asyncio.Event | None = None

    async def open(self, fingerprint: EmbedderFingerprint) -> FakeEncoder:
        self.opened.append(fingerprint.model)
        if self.gate is not None:
            await self.gate.wait()
        if fingerprint.model not in self.encoders:
            raise ModelUnavailableError(f"model {fingerprint.model} is not installed; install it")
        return self.encoders[fingerprint.model]


def release(*revisions: str, nodes: tuple[NodeConfig, ...] = HYBRID, output: str | None = None) -> ReleaseConfig:
    """Return a release of revisions named `<knowledge base>-<n>`."""
    refs = [IndexRef(knowledge_base=name.rsplit("-", 1)[0], revision=name) for name in revisions]
    pipeline = PipelineConfig(
        knowledge_bases=[ref.knowledge_base for ref in refs], nodes=list(nodes), output=output or nodes[-1].name
    )
    return ReleaseConfig.make(pipeline=pipeline, indexes=refs, versions=Versions(runtime="0", sidecar="0"))


@dataclass
class Runtime:
    """A runtime on fakes, and shortcuts that tests read well with."""

    engine: Engine
    metrics: SearchMetrics
    revisions: FakeRevisions
    encoders: FakeEncoders
    releases: Releases
    dataplane: DataPlane

    async def serve(self, *indexes: FakeIndex, **graph: object) -> str:
        """Open a release of `indexes`, wait until it is warm, return its name."""
        for index in indexes:
            self.revisions.indexes[index.revision] = index
            self.encoders.encoders.setdefault(index.fingerprint.model, FakeEncoder(index.fingerprint))
        config = release(*(index.revision for index in indexes), **graph)  # type: ignore[arg-type]
        self.releases.open(config)
        state = await self.settled(config.name)
        assert state == ("Warm", ""), state
        return config.name

    async def settled(self, name: str) -> tuple[str, str]:
        """Wait until a release is no longer loading; return its phase and message."""
        async with asyncio.timeout(30):
            while True:
                state = next(each for each in await self.releases.states() if each.name == name)
                if state.phase != "Loading":
                    return state.phase, state.message
                await asyncio.sleep(0)

    async def ask(self, name: str, query: str = "q", **members: object) -> SearchResponse:
        """Search a release."""
        request = {"query_id": "1", "scope": Scope(), "deadline_ms": 30_000, "release": name, "query": query, **members}
        return await self.dataplane.search(SearchRequest.model_validate(request))


@pytest.fixture
def fakes() -> SimpleNamespace:
    return SimpleNamespace(Index=FakeIndex, Encoder=FakeEncoder, fingerprint=fingerprint, release=release)


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    engine, metrics = Engine(search_threads=2), SearchMetrics()
    revisions, encoders = FakeRevisions(), FakeEncoders()
    releases = Releases(
        revisions=revisions, embedders=encoders, warm_up=lambda opened: warm_up(engine, opened, deadline_seconds=30)
    )
    dataplane = DataPlane(releases=releases, engine=engine, metrics=metrics)
    yield Runtime(engine, metrics, revisions, encoders, releases, dataplane)
    await releases.close_all()
    engine.close()
