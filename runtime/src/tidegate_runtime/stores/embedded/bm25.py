"""BM25 over live chunks, exact: the same bits for the same live documents, however they are stored.

Lucene's form (also the default of bm25s): idf = ln(1 + (N - df + .5) / (df + .5)), and a term adds
idf * tf / (tf + k1 * (1 - b + b * length / average length)), k1 = 1.2, b = .75. N, df and lengths
are integers over live chunks. A chunk's sum runs in the order of the query's terms, which is fixed,
so it does not depend on the layout; idf is rounded because the last bit of `log` may differ between
machines.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tidegate_runtime.ports import LexicalQuery, Rows, Scores
from tidegate_runtime.stores.embedded.live import LiveSegment, split_rows
from tidegate_runtime.stores.embedded.segment import term_key

K1 = 1.2
B = 0.75
_IDF_DIGITS = 9
_REMEMBERED_TERMS = 4096


@dataclass(frozen=True, slots=True)
class _Term:
    """One term in one snapshot: its postings by segment, dead rows included, and its idf over live ones."""

    rows: tuple[NDArray[np.int32], ...]
    counts: tuple[NDArray[np.uint16] | NDArray[np.uint32], ...]
    idf: float


class LexicalIndex:
    """The postings of a snapshot. Thread-safe."""

    def __init__(self, segments: Sequence[LiveSegment], *, chunks: int, terms: int) -> None:
        self._segments = tuple(segments)
        self._chunks = chunks
        self._rows = sum(live.segment.rows for live in segments)
        self._norms = _length_norms(segments, average=terms / chunks if chunks and terms else 1.0)
        self._term: Callable[[str], _Term] = lru_cache(maxsize=_REMEMBERED_TERMS)(self._look_up)

    def scores(self, query: LexicalQuery) -> Scores:
        """Return the score of every row, 0 where no term matches. Scores of dead rows mean nothing."""
        rows: list[NDArray[np.int32]] = []
        counts: list[NDArray[np.uint16] | NDArray[np.uint32]] = []
        weights: list[float] = []
        for term, repeats in zip(query.terms, query.counts, strict=True):
            found = self._term(term)
            for live, segment_rows, segment_counts in zip(self._segments, found.rows, found.counts, strict=True):
                if len(segment_rows):
                    rows.append(segment_rows + np.int32(live.first_row) if live.first_row else segment_rows)
                    counts.append(segment_counts)
                    weights.append(repeats * found.idf)
        if not rows:
            return np.zeros(self._rows)
        flat = np.concatenate(rows, dtype=np.intp)
        tf = np.concatenate(counts, dtype=np.float64)
        saturated = tf / (tf + self._norms[flat]) * np.repeat(weights, [len(part) for part in rows])
        return np.bincount(flat, weights=saturated, minlength=self._rows).astype(np.float64, copy=False)

    def scores_of(self, query: LexicalQuery, rows: Rows) -> Scores:
        """Return the score of each of `rows`, 0 where no term matches."""
        tf = self._frequencies(query, rows)
        weights = [repeats * self._term(term).idf for term, repeats in zip(query.terms, query.counts, strict=True)]
        scores = np.zeros(len(rows))
        for part in tf / (tf + self._norms[rows]) * np.array(weights).reshape(-1, 1):
            scores += part
        return scores

    def coverage(self, query: LexicalQuery, rows: Rows) -> Scores:
        """Return the share of the query's idf mass that each of `rows` covers; repetitions count once."""
        mass = sum(self._term(term).idf for term in query.terms)
        covered = np.zeros(len(rows))
        for term, tf in zip(query.terms, self._frequencies(query, rows), strict=True):
            covered += (tf > 0) * self._term(term).idf
        return covered / mass if mass else covered

    def _look_up(self, term: str) -> _Term:
        key = term_key(term)
        postings = [live.segment.postings(key) for live in self._segments]
        frequency = sum(
            len(rows) if live.live_rows is None else int(np.count_nonzero(live.live_rows[rows]))
            for live, (rows, _) in zip(self._segments, postings, strict=True)
        )
        idf = math.log(1 + (self._chunks - frequency + 0.5) / (frequency + 0.5))
        return _Term(
            rows=tuple(rows for rows, _ in postings),
            counts=tuple(counts for _, counts in postings),
            idf=round(idf, _IDF_DIGITS),
        )

    def _frequencies(self, query: LexicalQuery, rows: Rows) -> NDArray[np.float64]:
        """Return how often each of the query's terms stands in each of `rows`, shape (terms, rows)."""
        numbers = {live.first_row: number for number, live in enumerate(self._segments)}
        terms = [self._term(term) for term in query.terms]
        frequencies = np.zeros((len(terms), len(rows)))
        for live, positions, local in split_rows(self._segments, rows):
            number = numbers[live.first_row]
            wanted = local.astype(np.int32)  # the type of postings: another one would copy them all to compare
            for term, found in zip(terms, frequencies, strict=True):
                posting_rows, counts = term.rows[number], term.counts[number]
                if len(posting_rows):
                    places = posting_rows.searchsorted(wanted)
                    matches = posting_rows.take(places, mode="clip") == wanted
                    found[positions] = matches * counts.take(places, mode="clip")
        return frequencies


def _length_norms(segments: Sequence[LiveSegment], *, average: float) -> NDArray[np.float64]:
    lengths = [live.segment.lengths for live in segments]
    flat = np.concatenate(lengths, dtype=np.float64) if lengths else np.zeros(0)
    return K1 * (1 - B + B * (flat / average))
