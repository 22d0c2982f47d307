"""One immutable view of a revision: the legs, the selections and the stored chunks behind rows.

Everything here is read-only after construction, apart from caches that guard themselves, so any
number of threads may ask at once and all see one content generation.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tidegate_api.shape import EmbedderFingerprint
from tidegate_api.wire import Filter, Scalar
from tidegate_runtime.ports import (
    Candidates,
    FloatVector,
    LexicalQuery,
    Permission,
    Rows,
    Scores,
    Selection,
    SourceRules,
    StoredChunk,
)
from tidegate_runtime.stores.embedded.analyzer import query_terms_of
from tidegate_runtime.stores.embedded.bm25 import LexicalIndex
from tidegate_runtime.stores.embedded.chunk_ids import format_chunk_id
from tidegate_runtime.stores.embedded.dense import VectorIndex
from tidegate_runtime.stores.embedded.live import split_rows, stack
from tidegate_runtime.stores.embedded.manifest import Manifest
from tidegate_runtime.stores.embedded.segment import Segment
from tidegate_runtime.stores.embedded.selection import RowSelection, Selector
from tidegate_runtime.stores.embedded.top_k import order_best


class EmbeddedSnapshot:
    """Implements `IndexSnapshot`."""

    def __init__(
        self,
        manifest: Manifest,
        segments: Sequence[tuple[Segment, NDArray[np.bool_] | None]],
    ) -> None:
        shape = manifest.shape
        self._manifest = manifest
        self._segments = stack(segments)
        self._lexical = LexicalIndex(self._segments, chunks=manifest.totals.chunks, terms=manifest.totals.terms)
        self._vectors = VectorIndex(self._segments, dimension=shape.embedder.dimension, scale=shape.embedder.scale)
        self._rules = {
            source: SourceRules(tenants=tuple(rules.tenants), metadata=dict(rules.metadata))
            for source, rules in manifest.rules.items()
        }
        self._selector = Selector(self._segments, rules=self._rules, metadata_schema=shape.metadata_schema)

    @property
    def revision(self) -> str:
        return self._manifest.revision

    @property
    def content_generation(self) -> int:
        return self._manifest.content_generation

    @property
    def provides(self) -> frozenset[str]:
        return frozenset({"bm25", "dense"} if self._manifest.dense else {"bm25"})

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        return self._manifest.shape.embedder

    def select(self, permission: Permission, filters: Filter | None) -> Selection:
        return self._selector.select(permission, filters)

    def analyse(self, query: str) -> LexicalQuery:
        counts = sorted(Counter(query_terms_of(query)).items())
        return LexicalQuery(terms=tuple(term for term, _ in counts), counts=tuple(count for _, count in counts))

    def lexical(self, query: LexicalQuery, selection: Selection, *, top_k: int) -> Candidates:
        return self._ordered(self._lexical.candidates(query, _own(selection), top_k=top_k), top_k=top_k)

    def dense(self, vector: FloatVector, selection: Selection, *, top_k: int) -> Candidates:
        return self._ordered(self._vectors.candidates(vector, _own(selection), top_k=top_k), top_k=top_k)

    def lexical_scores(self, query: LexicalQuery, rows: Rows) -> Scores:
        return self._lexical.scores_of(query, rows)

    def dense_scores(self, vector: FloatVector, rows: Rows) -> Scores:
        return self._vectors.scores_of(vector, rows)

    def idf_coverage(self, query: LexicalQuery, rows: Rows) -> Scores:
        return self._lexical.coverage(query, rows)

    def chunk_ids(self, rows: Rows) -> list[str]:
        return [format_chunk_id(int(number)) for number in self._chunk_numbers(rows)]

    def chunks(self, rows: Rows) -> list[StoredChunk]:
        found: list[StoredChunk | None] = [None] * len(rows)
        for live, positions, local in split_rows(self._segments, rows):
            for position, row in zip(positions.tolist(), local.tolist(), strict=True):
                found[position] = self._chunk(live.segment, row)
        return [chunk for chunk in found if chunk is not None]

    def _chunk(self, segment: Segment, row: int) -> StoredChunk:
        document = int(segment.row_documents[row])
        key = segment.key(document)
        rules = self._rules.get(key.source)
        constants: Mapping[str, Scalar] = rules.metadata if rules else {}
        return StoredChunk(
            chunk_id=format_chunk_id(int(segment.chunk_numbers[row])),
            document_id=key.document_id,
            source=key.source,
            title=segment.titles[document],
            content=segment.contents[row],
            start=int(segment.starts[row]),
            end=int(segment.ends[row]),
            metadata={**constants, **json.loads(segment.metadata.raw(document))},
        )

    def _ordered(self, candidates: tuple[Rows, Scores], *, top_k: int) -> Candidates:
        rows, scores = candidates
        best_rows, best_scores = order_best(rows, scores, tie_breakers=self._chunk_numbers, top_k=top_k)
        return Candidates(rows=best_rows, scores=best_scores)

    def _chunk_numbers(self, rows: Rows) -> NDArray[np.uint64]:
        numbers = np.zeros(len(rows), dtype=np.uint64)
        for live, positions, local in split_rows(self._segments, rows):
            numbers[positions] = live.segment.chunk_numbers[local]
        return numbers


def _own(selection: Selection) -> RowSelection:
    if not isinstance(selection, RowSelection):
        raise TypeError(f"a selection of this store is needed, not {type(selection).__name__}")
    return selection
