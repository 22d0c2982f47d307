"""BM25 over live chunks, exact: the same bits for the same live documents, however they are stored.

Lucene's form (also the default of bm25s): idf = ln(1 + (N - df + .5) / (df + .5)), and a term adds
idf * tf / (tf + k1 * (1 - b + b * length / average length)), k1 = 1.2, b = .75. N, df and lengths
are integers over live chunks. A chunk's sum runs in the order of the query's terms, which is fixed,
so it does not depend on the layout; idf is rounded because the last bit of `log` may differ between
machines. A query costs what its postings cost, whatever the size of the index.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from tidegate_runtime.ports import LexicalQuery, Rows, Scores
from tidegate_runtime.stores.embedded.format import Array
from tidegate_runtime.stores.embedded.live import LiveSegment, split_rows
from tidegate_runtime.stores.embedded.segment import term_key
from tidegate_runtime.stores.embedded.selection import RowSelection
from tidegate_runtime.stores.embedded.top_k import lower_bound

K1 = 1.2
B = 0.75
_IDF_DIGITS = 9
_REMEMBERED_TERMS = 4096


@dataclass(frozen=True, slots=True)
class _Term:
    """One term in one snapshot: its postings by segment, dead rows included, and its idf over live ones."""

    rows: tuple[NDArray[np.int32], ...]
    counts: tuple[Array, ...]
    size: int
    idf: float


class _Workspace:
    """Memory of one query at a time: taking it from the system anew costs more than the arithmetic in it."""

    def __init__(self, *, rows: int) -> None:
        self.scores = np.zeros(rows)  # all zero between queries
        self.resize(1024)

    def resize(self, postings: int) -> None:
        """Make room for `postings` postings."""
        self.rows = np.empty(postings, dtype=np.intp)
        self.values = np.empty(postings)
        self.spare = np.empty(postings)


class LexicalIndex:
    """The postings of a snapshot. Thread-safe."""

    def __init__(self, segments: Sequence[LiveSegment], *, chunks: int, terms: int) -> None:
        self._segments = tuple(segments)
        self._norms = _length_norms(segments, average=terms / chunks if chunks and terms else 1.0)
        # A function and not a method: remembering `self` here would keep a dropped snapshot, and its files, alive.
        look_up = partial(_look_up, segments=self._segments, chunks=chunks)
        self._term: Callable[[str], _Term] = lru_cache(maxsize=_REMEMBERED_TERMS)(look_up)
        self._workspaces: list[_Workspace] = []

    def candidates(self, query: LexicalQuery, selection: RowSelection, *, top_k: int) -> tuple[Rows, Scores]:
        """Return selected rows with scores above zero, in no order, the best `top_k` among them."""
        found = [(self._term(term), repeats) for term, repeats in zip(query.terms, query.counts, strict=True)]
        found = [(term, repeats) for term, repeats in found if term.size]
        size = sum(term.size for term, _ in found)
        if not size:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        # Appending and popping are atomic; after an exception a workspace is not put back.
        space = self._workspaces.pop() if self._workspaces else _Workspace(rows=len(self._norms))
        if size > len(space.rows):
            space.resize(2 * size)
        rows, values, spare = space.rows[:size], space.values[:size], space.spare[:size]
        ends = self._gather(found, rows, values)
        self._saturate(rows, values, spare, mask=selection.mask)
        _accumulate(space.scores, rows, values, spare, ends=ends, weights=[r * term.idf for term, r in found])
        if selection.rows is not None:
            best = selection.rows[space.scores[selection.rows] > 0]
        else:
            best = _reaching_top(space.scores, rows, spare, ends=ends, top_k=top_k)
        scores = space.scores[best]
        space.scores[rows] = 0
        self._workspaces.append(space)
        return best, scores

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

    def _gather(self, found: Sequence[tuple[_Term, int]], rows: Rows, counts: Scores) -> list[int]:
        """Put the postings of all terms one after the other; return where each term ends."""
        ends, end = [], 0
        for term, _ in found:
            for live, term_rows, term_counts in zip(self._segments, term.rows, term.counts, strict=True):
                start, end = end, end + len(term_rows)
                np.add(term_rows, live.first_row, out=rows[start:end])
                counts[start:end] = term_counts
            ends.append(end)
        return ends

    def _saturate(self, rows: Rows, values: Scores, spare: Scores, *, mask: NDArray[np.bool_] | None) -> None:
        """Turn counts into tf / (tf + norm), 0 where the row is not selected."""
        np.take(self._norms, rows, out=spare, mode="clip")
        np.add(values, spare, out=spare)
        np.divide(values, spare, out=values)
        if mask is not None:
            np.multiply(values, mask[rows], out=values)

    def _frequencies(self, query: LexicalQuery, rows: Rows) -> NDArray[np.float64]:
        """Return how often each of the query's terms stands in each of `rows`, shape (terms, rows)."""
        terms = [self._term(term) for term in query.terms]
        frequencies = np.zeros((len(terms), len(rows)))
        for live, positions, local in split_rows(self._segments, rows):
            wanted = local.astype(np.int32)  # the type of postings: another one would copy them all to compare
            for term, found in zip(terms, frequencies, strict=True):
                posting_rows, counts = term.rows[live.number], term.counts[live.number]
                if len(posting_rows):
                    places = posting_rows.searchsorted(wanted)
                    matches = posting_rows.take(places, mode="clip") == wanted
                    found[positions] = matches * counts.take(places, mode="clip")
        return frequencies


def _look_up(term: str, *, segments: Sequence[LiveSegment], chunks: int) -> _Term:
    key = term_key(term)
    postings = [live.segment.postings(key) for live in segments]
    frequency = sum(
        len(rows) if live.live_rows is None else int(np.count_nonzero(live.live_rows[rows]))
        for live, (rows, _) in zip(segments, postings, strict=True)
    )
    idf = math.log(1 + (chunks - frequency + 0.5) / (frequency + 0.5))
    return _Term(
        rows=tuple(rows for rows, _ in postings),
        counts=tuple(counts for _, counts in postings),
        size=sum(len(rows) for rows, _ in postings),
        idf=round(idf, _IDF_DIGITS),
    )


def _accumulate(
    scores: Scores, rows: Rows, values: Scores, spare: Scores, *, ends: Sequence[int], weights: Sequence[float]
) -> None:
    """Add each term's weighted values to `scores`, term by term. The rows of one term are distinct."""
    start = 0
    for end, weight in zip(ends, weights, strict=True):
        part, sums = values[start:end], spare[start:end]
        np.multiply(part, weight, out=part)
        np.take(scores, rows[start:end], out=sums, mode="clip")
        np.add(sums, part, out=sums)
        scores[rows[start:end]] = sums
        start = end


def _reaching_top(scores: Scores, rows: Rows, spare: Scores, *, ends: Sequence[int], top_k: int) -> Rows:
    """Return distinct rows that include the best `top_k`: those that reach what `top_k` rows of one term reach."""
    np.take(scores, rows, out=spare, mode="clip")
    starts = [0, *ends[:-1]]
    bound = max(lower_bound(spare[start:end], top_k=top_k) for start, end in zip(starts, ends, strict=True))
    return np.unique(rows[spare >= bound if bound > 0 else spare > 0])


def _length_norms(segments: Sequence[LiveSegment], *, average: float) -> Scores:
    lengths = [live.segment.lengths for live in segments]
    flat = np.concatenate(lengths, dtype=np.float64) if lengths else np.zeros(0)
    return K1 * (1 - B + B * (flat / average))
