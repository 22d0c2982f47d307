"""The threads that searches run on, and one search from a query to stored chunks.

The event loop only waits: encoding has one thread, everything else a small pool. Work that is still
queued when its request is cancelled or out of time is dropped before it starts. A request takes one
snapshot per index and uses it for every leg, so an answer never mixes generations of content.

The encoder gets a share of the deadline, not all of it: a request whose dense leg is late can then
still be answered from words, and says so.
"""

import asyncio
import functools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from tidegate_api.config import ReleaseConfig
from tidegate_api.wire import Filter
from tidegate_runtime.errors import DeadlineExceededError, RevisionUnavailableError, RuntimePlaneError
from tidegate_runtime.pipeline.execution import Execution, Failure
from tidegate_runtime.pipeline.graph import Graph
from tidegate_runtime.pipeline.panel import Hits, Panel, View
from tidegate_runtime.ports import Embedder, FloatVector, IndexReader, IndexSnapshot, Permission, StoredChunk

ENCODER_SHARE = 0.75

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """One index revision, held open. `embedder` is None where no leg of the release needs it."""

    knowledge_base: str
    reader: IndexReader
    embedder_key: str
    embedder: Embedder | None


@dataclass(frozen=True, slots=True)
class OpenRelease:
    """A release that can be searched."""

    config: ReleaseConfig
    graph: Graph
    indexes: tuple[OpenIndex, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """What is wanted of a release, apart from the release."""

    query: str
    permission: Permission
    top_k: int
    deadline: float
    filters: Filter | None = None
    explain: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """One result, with its raw score in each leg where these were asked for."""

    view: View
    chunk: StoredChunk
    score: float
    leg_scores: dict[str, float]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search came to. Seconds are by node, plus `embed`.

    `mismatched` names the dense legs, where an index has none because of the language of its documents.
    """

    found: tuple[Found, ...]
    failures: dict[str, Failure]
    mismatched: tuple[str, ...]
    seconds: dict[str, float]


class Engine:
    """Owns the threads. `close` waits for what runs and drops what is queued."""

    def __init__(self, *, search_threads: int = 1, clock: Callable[[], float] = time.monotonic) -> None:
        self._encoders = ThreadPoolExecutor(max_workers=1, thread_name_prefix="encode")
        self._searchers = ThreadPoolExecutor(max_workers=search_threads, thread_name_prefix="search")
        self._clock = clock

    def close(self) -> None:
        """Stop the threads."""
        self._encoders.shutdown(cancel_futures=True)
        self._searchers.shutdown(cancel_futures=True)

    async def run(self, work: Callable[[], T]) -> T:
        """Run something short that may touch an index off the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._searchers, work)

    async def search(self, release: OpenRelease, indexes: Sequence[OpenIndex], ask: Ask) -> Outcome:
        """Search `indexes` of `release`.

        Raises:
            InvalidFilterError: the filter does not fit an index.
            DeadlineExceededError: there was no answer in time.
            RuntimePlaneError: an index is unavailable, or no leg could do its part.
        """
        try:
            async with asyncio.timeout_at(ask.deadline):
                return await self._search(release, indexes, ask)
        except TimeoutError as error:
            raise DeadlineExceededError(
                "there was no answer before the deadline; allow more in deadline_ms or ask again"
            ) from error

    async def _search(self, release: OpenRelease, indexes: Sequence[OpenIndex], ask: Ask) -> Outcome:
        started = self._clock()
        embeddings = self._embed(indexes, ask.query)
        try:
            execution = await self.run(functools.partial(_begin, release.graph, indexes, ask, self._clock))
            if embeddings:
                latest = started + (ask.deadline - started) * ENCODER_SHARE
                await asyncio.wait(embeddings.values(), timeout=max(0.0, latest - self._clock()))
                execution.seconds["embed"] = self._clock() - started
        finally:
            for embedding in embeddings.values():
                _drop(embedding)
        vectors, error = _collect(embeddings)
        if error is not None:
            execution.fail_dense(Failure(error, self._clock() - started))
        return await self.run(functools.partial(_finish, execution, vectors, ask))

    def _embed(self, indexes: Sequence[OpenIndex], query: str) -> dict[str, asyncio.Future[FloatVector]]:
        """Queue the query once per encoder."""
        encoders = {index.embedder_key: index.embedder for index in indexes if index.embedder is not None}
        loop = asyncio.get_running_loop()
        return {
            key: loop.run_in_executor(self._encoders, embedder.embed_query, query) for key, embedder in encoders.items()
        }


def _drop(embedding: asyncio.Future[FloatVector]) -> None:
    """Take queued work back; of finished work, mark the error as seen, whether it is used or not."""
    if not embedding.cancel() and not embedding.cancelled():
        embedding.exception()


def _collect(
    embeddings: dict[str, asyncio.Future[FloatVector]],
) -> tuple[dict[str, FloatVector], RuntimePlaneError | None]:
    """Return the vectors that came in time, and why another did not."""
    vectors: dict[str, FloatVector] = {}
    failure: RuntimePlaneError | None = None
    for key, embedding in embeddings.items():
        if embedding.cancelled():
            failure = DeadlineExceededError("the encoder was not done in time; ask again or give it more threads")
        elif (error := embedding.exception()) is None:
            vectors[key] = embedding.result()
        elif isinstance(error, RuntimePlaneError):
            failure = error
        else:
            raise error
    return vectors, failure


def _begin(graph: Graph, indexes: Sequence[OpenIndex], ask: Ask, clock: Callable[[], float]) -> Execution:
    """Take the snapshots and run what needs words only."""
    panel = Panel([_view(index, index.reader.snapshot(), ask) for index in indexes])
    execution = Execution(graph=graph, panel=panel, depth=2 * ask.top_k, clock=clock)
    execution.run_lexical()
    return execution


def _view(index: OpenIndex, snapshot: IndexSnapshot, ask: Ask) -> View:
    return View(
        knowledge_base=index.knowledge_base,
        snapshot=snapshot,
        selection=snapshot.select(ask.permission, ask.filters),
        query=snapshot.analyse(ask.query),
        embedder=index.embedder_key,
    )


def _finish(execution: Execution, vectors: dict[str, FloatVector], ask: Ask) -> Outcome:
    """Run the rest of the graph and read the chunks of the answer."""
    execution.run_rest(vectors)
    if execution.output is None:
        raise _no_answer(execution)
    top = Hits(execution.output.members[: ask.top_k], execution.output.scores[: ask.top_k])
    kinds = sorted(execution.graph.kinds) if ask.explain else []
    found = tuple(
        Found(view=view, chunk=chunk, score=score, leg_scores=leg_scores)
        for (view, chunk), score, leg_scores in zip(
            execution.panel.chunks(top.members),
            top.scores.tolist(),
            execution.panel.leg_scores(kinds, top.members),
            strict=True,
        )
    )
    return Outcome(found=found, failures=execution.failures, mismatched=execution.mismatched, seconds=execution.seconds)


def _no_answer(execution: Execution) -> RuntimePlaneError:
    """Choose the error of a search none of whose legs came to anything."""
    errors = [failure.error for _, failure in sorted(execution.failures.items())]
    others = [error for error in errors if not isinstance(error, DeadlineExceededError)]
    if errors:
        return (others or errors)[0]
    return RevisionUnavailableError(
        "the indexes of this request have no leg that the pipeline reads; rebuild them or change its nodes"
    )
