"""BM25 over live chunks, exact: the same bits for the same live documents, however they are stored.

Lucene's form (also the default of bm25s): idf = ln(1 + (N - df + .5) / (df + .5)), and a term adds
idf * tf / (tf + k1 * (1 - b + b * length / average length)), k1 = 1.2, b = .75. N, df and lengths
are integers over live chunks. A chunk's sum runs in the order of the query's terms, which is fixed,
so it does not depend on the layout; idf is rounded because the last bit of `log` may differ between
machines. A query costs what its postings cost, whatever the size of the index.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise

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
_KEPT_POSTINGS = 1 << 20  # what a workspace keeps room for; a query with more pays for its memory


@dataclass(frozen=True, slots=True)
class _Term:
    """One term in one snapshot: its postings by segment, dead rows included, and its idf over live ones."""

    rows: tuple[NDArray[np.int32], ...]
    counts: tuple[Array, ...]
    size: int
    idf: float


@dataclass(slots=True)
class _Gathered:
    """The postings of a query's terms, one term after the other; within a term rows are distinct."""

    rows: NDArray[np.intp]
    values: Scores
    spare: Scores
    ends: list[int]

    def parts(self) -> Iterator[slice]:
        """Yield where each term's postings stand."""
        return (slice(start, end) for start, end in pairwise([0, *self.ends]))


class _Workspace:
    """Memory of one query at a time: taking it from the system anew costs more than the arithmetic in it."""

    def __init__(self, *, rows: int) -> None:
        self.scores = np.zeros(rows)  # all zero between queries
        self._postings = _fresh_postings(0)

    def room_for(self, postings: int) -> _Gathered:
        """Return room for `postings` postings, what it holds being left over from before."""
        if postings > _KEPT_POSTINGS:
            return _Gathered(*_fresh_postings(postings), ends=[])
        if postings > len(self._postings[0]):
            self._postings = _fresh_postings(2 * postings)
        rows, values, spare = self._postings
        return _Gathered(rows[:postings], values[:postings], spare[:postings], ends=[])


def _fresh_postings(count: int) -> tuple[NDArray[np.intp], Scores, Scores]:
    return np.empty(count, dtype=np.intp), np.empty(count), np.empty(count)


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
        terms = [self._term(term) for term in query.terms]
        size = sum(term.size for term in terms)
        if not size:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        space = self._borrow_workspace()
        gathered = space.room_for(size)
        self._gather(terms, gathered)
        self._saturate(gathered, mask=selection.mask)
        weights = [repeats * term.idf for repeats, term in zip(query.counts, terms, strict=True)]
        _accumulate(space.scores, gathered, weights=weights)
        if selection.rows is not None:
            rows = selection.rows[space.scores[selection.rows] > 0]
        else:
            rows = _reaching_top(space.scores, gathered, top_k=top_k)
        scores = space.scores[rows]
        space.scores[gathered.rows] = 0
        self._workspaces.append(space)  # not after an exception: what is borrowed is always clean
        return rows, scores

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

    def _borrow_workspace(self) -> _Workspace:
        try:
            return self._workspaces.pop()
        except IndexError:
            return _Workspace(rows=len(self._norms))

    def _gather(self, terms: Sequence[_Term], gathered: _Gathered) -> None:
        """Put the postings of all terms one after the other, counts as values."""
        end = 0
        for term in terms:
            for live, rows, counts in zip(self._segments, term.rows, term.counts, strict=True):
                if len(rows):
                    start, end = end, end + len(rows)
                    np.add(rows, live.first_row, out=gathered.rows[start:end])
                    gathered.values[start:end] = counts
            gathered.ends.append(end)

    def _saturate(self, gathered: _Gathered, *, mask: NDArray[np.bool_] | None) -> None:
        """Turn counts into tf / (tf + norm), 0 where the row is not selected."""
        values, sums = gathered.values, gathered.spare
        np.take(self._norms, gathered.rows, out=sums, mode="clip")
        np.add(values, sums, out=sums)
        np.divide(values, sums, out=values)
        if mask is not None:
            np.multiply(values, mask[gathered.rows], out=values)

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


def _accumulate(scores: Scores, gathered: _Gathered, *, weights: Sequence[float]) -> None:
    """Add the weighted values to `scores`, one posting after the other: a row's sum runs in term order."""
    for part, weight in zip(gathered.parts(), weights, strict=True):
        np.multiply(gathered.values[part], weight, out=gathered.values[part])
    np.add.at(scores, gathered.rows, gathered.values)


def _reaching_top(scores: Scores, gathered: _Gathered, *, top_k: int) -> Rows:
    """Return distinct rows that include the best `top_k`: those that reach what `top_k` rows of one term reach."""
    reached = gathered.spare
    np.take(scores, gathered.rows, out=reached, mode="clip")
    bound = max(lower_bound(reached[part], top_k=top_k) for part in gathered.parts())
    # Sorted by hand: `np.unique` hashes integers, which takes ten times as long.
    rows = np.sort(gathered.rows[reached >= bound if bound > 0 else reached > 0])
    return rows[np.diff(rows, prepend=-1) > 0]


def _length_norms(segments: Sequence[LiveSegment], *, average: float) -> Scores:
    lengths = [live.segment.lengths for live in segments]
    flat = np.concatenate(lengths, dtype=np.float64) if lengths else np.zeros(0)
    return K1 * (1 - B + B * (flat / average))
