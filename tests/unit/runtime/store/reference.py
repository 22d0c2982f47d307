"""What the legs must answer, computed the slow and obvious way from the records themselves.

Nothing of the store takes part but the analyzer, whose terms are taken as given, and the names of
chunks: statistics are counted over all records, sums run in term order, sorting is Python's.
"""

import math
from collections import Counter
from collections.abc import Iterable

from tests.unit.runtime.store.samples import SCALE

from tidegate_api.shape import RevisionShape
from tidegate_runtime.ports import ChunkRecord, DocumentRecord, FloatVector
from tidegate_runtime.stores.embedded.analyzer import query_terms_of, terms_of
from tidegate_runtime.stores.embedded.chunk_ids import chunk_numbers, chunking_fingerprint, format_chunk_id

Ranking = list[tuple[str, float]]


class Reference:
    """All chunks of some documents, with both legs over those that a caller may see."""

    def __init__(self, records: Iterable[DocumentRecord], *, shape: RevisionShape) -> None:
        self._ids: list[str] = []
        self._records: list[DocumentRecord] = []
        self._chunks: list[ChunkRecord] = []
        for record in records:
            chunking = chunking_fingerprint(shape, record.key.source)
            for chunk in record.chunks:
                number = chunk_numbers(record.key, chunking=chunking, ordinals=[chunk.ordinal])[0]
                self._ids.append(format_chunk_id(int(number)))
                self._records.append(record)
                self._chunks.append(chunk)
        self._terms = [
            Counter(terms_of(f"{record.title}\n{chunk.heading}\n{chunk.content}"))
            for record, chunk in zip(self._records, self._chunks, strict=True)
        ]

    def bm25(self, query: str, *, tenant: str | None, top_k: int = 50) -> Ranking:
        asked = sorted(Counter(query_terms_of(query)).items())
        average = sum(terms.total() for terms in self._terms) / max(len(self._terms), 1)
        scores = []
        for terms in self._terms:
            score = 0.0
            for term, repeats in asked:
                frequency = sum(term in other for other in self._terms)
                idf = round(math.log(1 + (len(self._terms) - frequency + 0.5) / (frequency + 0.5)), 9)
                norm = 1.2 * (1 - 0.75 + 0.75 * (terms.total() / (average or 1)))
                score += terms[term] / (terms[term] + norm) * (repeats * idf)
            scores.append(score)
        return self._best(scores, tenant=tenant, above=0, top_k=top_k)

    def dense(self, vector: FloatVector, *, tenant: str | None, top_k: int = 50) -> Ranking:
        query = _levels(vector)
        scores = [
            sum(a * b for a, b in zip(query, _levels(chunk.vector), strict=True)) * (SCALE / 127) ** 2
            for chunk in self._chunks
            if chunk.vector is not None
        ]
        return self._best(scores, tenant=tenant, above=-math.inf, top_k=top_k)

    def _best(self, scores: list[float], *, tenant: str | None, above: float, top_k: int) -> Ranking:
        seen = [
            (identity, score)
            for identity, score, record in zip(self._ids, scores, self._records, strict=True)
            if score > above and (record.tenants is None or tenant in record.tenants)
        ]
        return sorted(seen, key=lambda item: (-item[1], item[0]))[:top_k]


def _levels(vector: FloatVector) -> list[int]:
    return [max(-127, min(127, round(float(component) * (127 / SCALE)))) for component in vector]
