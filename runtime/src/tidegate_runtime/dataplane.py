"""What can be asked of a runtime, whatever protocol it is asked by.

`DataPlane.search` turns a request into an answer: the release by name, the knowledge bases it may
read, how many results, and then one search by the engine. Everything that depends on HTTP is in
`http.py`. Raw scores of legs tell about documents that a caller may not see, so they are given only
when the sidecar says `explain`.
"""

import time
from collections.abc import Callable, Sequence
from typing import Literal

from tidegate_api.wire import DEFAULT_TOP_K, Degraded, Location, Result, SearchRequest, SearchResponse
from tidegate_runtime.engine import Ask, Engine, Found, OpenIndex, OpenRelease, Outcome
from tidegate_runtime.errors import (
    DeadlineExceededError,
    InvalidQueryError,
    ModelUnavailableError,
    RevisionUnavailableError,
    RuntimePlaneError,
)
from tidegate_runtime.metrics import SearchMetrics
from tidegate_runtime.pipeline.graph import Graph
from tidegate_runtime.ports import Permission
from tidegate_runtime.releases import Releases

MAX_TOP_K = 1000


class DataPlane:
    """Answers searches over open releases. Holds no state of a request."""

    def __init__(
        self,
        *,
        releases: Releases,
        engine: Engine,
        metrics: SearchMetrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._releases = releases
        self._engine = engine
        self._metrics = metrics
        self._clock = clock

    async def search(self, request: SearchRequest) -> SearchResponse:
        """Answer `request`.

        Raises:
            InvalidQueryError: the request names a knowledge base that the release does not have, or a wrong top_k.
            InvalidFilterError: the filter does not fit an index.
            ReleaseUnavailableError: the release is not warm in this process.
            DeadlineExceededError: the deadline passed first.
        """
        try:
            response = await self._answer(request)
        except RuntimePlaneError as error:
            self._metrics.refused(error.code)
            raise
        self._metrics.answered(response)
        return response

    async def _answer(self, request: SearchRequest) -> SearchResponse:
        started = self._clock()
        with self._releases.lease(request.release) as release:
            ask = Ask(
                query=request.query,
                permission=Permission(tenant=request.scope.tenant, groups=frozenset(request.scope.groups)),
                top_k=_top_k(request),
                deadline=started + request.deadline_ms / 1000,
                filters=request.filters,
                explain=request.explain,
            )
            outcome = await self._engine.search(release, _chosen(release, request.knowledge_bases), ask)
        return _response(release.graph, outcome, total_seconds=self._clock() - started)


def _top_k(request: SearchRequest) -> int:
    if request.top_k is None:
        return DEFAULT_TOP_K
    if not 1 <= request.top_k <= MAX_TOP_K:
        raise InvalidQueryError(f"top_k is {request.top_k}; ask for 1 to {MAX_TOP_K}")
    return request.top_k


def _chosen(release: OpenRelease, names: Sequence[str] | None) -> Sequence[OpenIndex]:
    """Return the indexes that the request wants; None = all of the release's."""
    if names is None:
        return release.indexes
    known = [index.knowledge_base for index in release.indexes]
    unknown = sorted(set(names) - set(known))
    if unknown or not names:
        raise InvalidQueryError(
            f"knowledge_bases names {', '.join(unknown) or 'nothing'}; this release has {', '.join(known)}"
        )
    return [index for index in release.indexes if index.knowledge_base in names]


def _response(graph: Graph, outcome: Outcome, *, total_seconds: float) -> SearchResponse:
    timings = {**outcome.seconds, "total": total_seconds}
    return SearchResponse(
        results=[_result(graph, found) for found in outcome.found],
        degraded=_degraded(outcome),
        timings_ms={name: round(seconds * 1000, 3) for name, seconds in timings.items()},
    )


def _degraded(outcome: Outcome) -> list[Degraded]:
    """Return the nodes that did not do their part. What failed is worth more to know than what was never there."""
    by_node = {node: Degraded(node=node, reason="language_mismatch", after_ms=0.0) for node in outcome.mismatched}
    for node, failure in outcome.failures.items():
        after_ms = round(failure.after_seconds * 1000, 3)
        by_node[node] = Degraded(node=node, reason=_reason(failure.error), after_ms=after_ms)
    return [by_node[node] for node in sorted(by_node)]


def _result(graph: Graph, found: Found) -> Result:
    chunk, view = found.chunk, found.view
    kind = graph.output_kind
    return Result(
        chunk_id=chunk.chunk_id,
        document_id=chunk.document_id,
        title=chunk.title,
        content=chunk.content,
        score=found.score,
        score_kind=kind,
        scores={**found.leg_scores, kind: found.score} if found.leg_scores else None,
        source=chunk.source,
        knowledge_base=view.knowledge_base,
        revision=view.snapshot.revision,
        content_generation=view.snapshot.content_generation,
        location=Location(start=chunk.start, end=chunk.end),
        metadata=dict(chunk.metadata),
    )


def _reason(error: RuntimePlaneError) -> Literal["timeout", "error", "unavailable"]:
    match error:
        case DeadlineExceededError():
            return "timeout"
        case ModelUnavailableError() | RevisionUnavailableError():
            return "unavailable"
        case _:
            return "error"
