"""The releases this process holds: opened in the background, warm only after a real query ran.

`open` answers at once; a release is Loading until its revisions and encoders are open and a search
over all of its legs has come back whole, then Warm; otherwise Failed with a message, and another
`open` tries again. A step that no longer gets on fails it, too, so nothing is Loading for ever. Readers and encoders are shared between releases. A closed release stays alive for
the requests that hold a lease on it. Everything here runs on the event loop; what blocks goes to threads.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, Protocol

from tidegate_api.config import IndexRef, ReleaseConfig, ReleaseState
from tidegate_api.shape import EmbedderFingerprint
from tidegate_runtime.engine import OpenIndex, OpenRelease
from tidegate_runtime.errors import (
    InvalidPipelineError,
    ReleaseUnavailableError,
    RevisionUnavailableError,
    RuntimePlaneError,
)
from tidegate_runtime.pipeline.graph import Graph, compile_graph
from tidegate_runtime.ports import Embedder, IndexReader
from tidegate_runtime.sharing import GotOn, Shared, StalledError

_logger = logging.getLogger(__name__)

# Longer than the copying of a revision itself waits for its indexer, which then says more precisely what is wrong.
PATIENCE_SECONDS = 120.0


class RevisionSource(Protocol):
    """Brings a revision to this machine and keeps it in step until its reader is closed."""

    async def open(self, index: IndexRef, *, got_on: GotOn = lambda: None) -> IndexReader:
        """Return a reader of `index`. Copying may take long; `got_on` is called whenever a part has come.

        Raises:
            RevisionUnavailableError: it is not there yet, incomplete or damaged.
        """


class EmbedderSource(Protocol):
    """Loads encoders."""

    async def open(self, fingerprint: EmbedderFingerprint) -> Embedder:
        """Return the encoder whose vectors have this fingerprint.

        Raises:
            ModelUnavailableError: its files are missing or others than the fingerprint says.
        """


@dataclass(slots=True)
class _Entry:
    config: ReleaseConfig
    phase: Literal["Loading", "Warm", "Failed"] = "Loading"
    message: str = ""
    opened: OpenRelease | None = None
    leases: int = 0
    closed: bool = False
    resources: ExitStack = field(default_factory=ExitStack)
    loading: asyncio.Task[None] = field(init=False)


class Releases:
    """Opens, lends and closes releases. `warm_up` searches every leg of an opened one and raises if any fails."""

    def __init__(
        self,
        *,
        revisions: RevisionSource,
        embedders: EmbedderSource,
        warm_up: Callable[[OpenRelease], Awaitable[None]],
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._revisions = revisions
        self._embedders = embedders
        self._warm_up = warm_up
        self._entries: dict[str, _Entry] = {}
        self._patience_seconds = patience_seconds
        self._readers: Shared[IndexRef, IndexReader] = Shared(
            lambda reader: reader.close(), patience_seconds=patience_seconds
        )
        self._encoders: Shared[str, Embedder] = Shared(lambda _: None, patience_seconds=patience_seconds)

    def open(self, config: ReleaseConfig) -> None:
        """Begin to open a release. One that is loading or warm is left as it is; a failed one is tried again."""
        known = self._entries.get(config.name)
        if known is not None and known.phase != "Failed":
            return
        entry = self._entries[config.name] = _Entry(config)
        entry.loading = asyncio.get_running_loop().create_task(self._load(entry))

    def close(self, name: str) -> None:
        """Let go of a release; requests that run keep it until they end. An unknown name is closed already."""
        entry = self._entries.pop(name, None)
        if entry is None:
            return
        entry.closed = True
        entry.loading.cancel()
        _free_if_unused(entry)

    async def close_all(self) -> None:
        """Close everything and wait until no loading is under way."""
        loadings = [entry.loading for entry in self._entries.values()]
        for name in list(self._entries):
            self.close(name)
        await asyncio.gather(*loadings, return_exceptions=True)

    async def states(self) -> list[ReleaseState]:
        """Return every release as it is held, with the generations of content that it would answer from now."""
        return [await _state(entry) for _, entry in sorted(self._entries.items())]

    @contextmanager
    def lease(self, name: str) -> Iterator[OpenRelease]:
        """Lend a warm release.

        Raises:
            ReleaseUnavailableError: it is not open here, still loading or failed.
        """
        entry = self._entries.get(name)
        if entry is None:
            raise ReleaseUnavailableError(f"release {name} is not open in this process; open it first")
        if entry.opened is None:
            raise ReleaseUnavailableError(
                f"release {name} is {entry.phase}: {entry.message or 'ask again in a moment'}"
            )
        with _held(entry):
            yield entry.opened

    async def _load(self, entry: _Entry) -> None:
        try:
            with ExitStack() as resources:
                opened = await self._opened(entry.config, resources)
                await self._warm_up(opened)
                entry.resources = resources.pop_all()
            entry.opened, entry.phase = opened, "Warm"
            _logger.info("release warm", extra={"release": entry.config.name})
        except RuntimePlaneError as error:
            entry.phase, entry.message = "Failed", str(error)
            _logger.warning("release failed to open", extra={"release": entry.config.name, "reason": str(error)})
        except Exception:
            # A fault of ours or of a library: without this the release would stay Loading for ever.
            entry.phase, entry.message = "Failed", "the runtime could not open it; see the runtime's log"
            _logger.exception("release failed to open", extra={"release": entry.config.name})

    async def _opened(self, config: ReleaseConfig, resources: ExitStack) -> OpenRelease:
        graph = compile_graph(config.pipeline)
        missing = sorted(set(config.pipeline.knowledge_bases) - {index.knowledge_base for index in config.indexes})
        if missing or not config.indexes:
            raise InvalidPipelineError(
                f"release {config.name} has no index of knowledge base {', '.join(missing) or '(any)'}"
            )
        indexes = [await self._opened_index(index, graph, resources) for index in config.indexes]
        return OpenRelease(config=config, graph=graph, indexes=tuple(indexes))

    async def _opened_index(self, index: IndexRef, graph: Graph, resources: ExitStack) -> OpenIndex:
        with self._patient(f"copying revision {index.revision}"):
            reader = await self._readers.acquire(index, partial(self._read, index))
        resources.callback(self._readers.release, index)
        snapshot = await asyncio.to_thread(reader.snapshot)
        if not snapshot.provides & graph.kinds:
            raise RevisionUnavailableError(
                f"revision {index.revision} provides {sorted(snapshot.provides)}, the pipeline reads {sorted(graph.kinds)}; "
                "add a node that it can answer"
            )
        key, embedder = snapshot.fingerprint.model_dump_json(), None
        if "dense" in snapshot.provides & graph.kinds:
            with self._patient(f"opening encoder {snapshot.fingerprint.model}"):
                embedder = await self._encoders.acquire(key, lambda _: self._embedders.open(snapshot.fingerprint))
            resources.callback(self._encoders.release, key)
        return OpenIndex(knowledge_base=index.knowledge_base, reader=reader, embedder_key=key, embedder=embedder)

    async def _read(self, index: IndexRef, got_on: GotOn) -> IndexReader:
        """Return a reader that has read once: the first snapshot is what takes its time, and may hang, on a slow disk."""
        reader = await self._revisions.open(index, got_on=got_on)
        with ExitStack() as undo:
            undo.callback(reader.close)
            await asyncio.to_thread(reader.snapshot)
            undo.pop_all()
        return reader

    @contextmanager
    def _patient(self, step: str) -> Iterator[None]:
        try:
            yield
        except StalledError as error:
            raise ReleaseUnavailableError(
                f"{step} has got no further for {self._patience_seconds:g} s; it goes on and is looked at again. Where "
                "this stays, look at the indexer and at this pod's disk and memory, or delete the pod"
            ) from error


@contextmanager
def _held(entry: _Entry) -> Iterator[None]:
    entry.leases += 1
    try:
        yield
    finally:
        entry.leases -= 1
        _free_if_unused(entry)


def _free_if_unused(entry: _Entry) -> None:
    if entry.closed and entry.leases == 0:
        entry.resources.close()


async def _state(entry: _Entry) -> ReleaseState:
    generations = {}
    if entry.opened is not None:
        with _held(entry):
            generations = await asyncio.to_thread(_generations, entry.opened)
    return ReleaseState(
        name=entry.config.name, phase=entry.phase, message=entry.message, content_generations=generations
    )


def _generations(release: OpenRelease) -> dict[str, int]:
    """Return the content generation of each index; one that cannot be read now has none."""
    generations = {}
    for index in release.indexes:
        with suppress(RevisionUnavailableError):
            generations[index.knowledge_base] = index.reader.snapshot().content_generation
    return generations
