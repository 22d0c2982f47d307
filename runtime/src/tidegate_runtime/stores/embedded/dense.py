"""The dense leg: an exact scan of the stored bytes.

Dot products of bytes are integers below 2^53, so the float64 that the SIMD kernel returns is exact
whichever kernel this processor gets. A small selection is gathered first and costs what it holds.
"""

from collections.abc import Sequence

import numkong
import numpy as np
from numpy.typing import NDArray

from tidegate_runtime.errors import InvalidQueryError, UnusableVectorError
from tidegate_runtime.ports import FloatVector, Rows, Scores
from tidegate_runtime.stores.embedded.live import LiveSegment, split_rows
from tidegate_runtime.stores.embedded.quantise import cosine_of_dots, quantise
from tidegate_runtime.stores.embedded.selection import RowSelection
from tidegate_runtime.stores.embedded.top_k import lower_bound


class VectorIndex:
    """The vectors of a snapshot. Thread-safe."""

    def __init__(self, segments: Sequence[LiveSegment], *, dimension: int, scale: float) -> None:
        self._segments = tuple(segments)
        self._dimension = dimension
        self._scale = scale
        self._rows = sum(live.segment.rows for live in segments)
        complete = all(live.segment.has_vector.all() for live in segments)
        self._eligible: NDArray[np.bool_] | None = (
            None if complete else np.concatenate([live.segment.has_vector for live in segments])
        )
        self._buffers: list[Scores] = []

    def candidates(self, vector: FloatVector, selection: RowSelection, *, top_k: int) -> tuple[Rows, Scores]:
        """Return selected rows that have a vector with their cosines, in no order, the best `top_k` among them."""
        query = self._quantised(vector)
        if selection.rows is not None:
            rows = selection.rows if self._eligible is None else selection.rows[self._eligible[selection.rows]]
            dots = self._dots_of(query, rows)
            return rows, self._cosines(dots)
        dots = self._borrow_buffer()
        for live in self._segments:
            _dots_into(dots[live.rows], query, live.segment.vectors)
        for mask in (selection.mask, self._eligible):
            if mask is not None:
                np.putmask(dots, ~mask, -np.inf)
        bound = lower_bound(dots, top_k=top_k)
        rows = np.flatnonzero(dots >= bound if bound > -np.inf else dots > -np.inf)
        cosines = self._cosines(dots[rows])
        self._buffers.append(dots)
        return rows, cosines

    def scores_of(self, vector: FloatVector, rows: Rows) -> Scores:
        """Return the cosine of each of `rows`, 0 for rows without a vector."""
        return self._cosines(self._dots_of(self._quantised(vector), rows))

    def _borrow_buffer(self) -> Scores:
        """Return memory for all scores: taking it from the system anew costs more than selecting in it."""
        try:
            return self._buffers.pop()
        except IndexError:
            return np.zeros(self._rows)

    def _dots_of(self, query: NDArray[np.int8], rows: Rows) -> Scores:
        dots = np.zeros(len(rows))
        for live, positions, local in split_rows(self._segments, rows):
            vectors = live.segment.vectors
            if len(vectors):
                part = np.zeros(len(local))
                _dots_into(part, query, vectors[local])
                dots[positions] = part
        return dots

    def _cosines(self, dots: Scores) -> Scores:
        return cosine_of_dots(dots, scale=self._scale)

    def _quantised(self, vector: FloatVector) -> NDArray[np.int8]:
        if vector.shape != (self._dimension,):
            raise InvalidQueryError(
                f"the query vector has shape {vector.shape}, the index holds {self._dimension} components: "
                "embed the query with the index's model"
            )
        if not np.isfinite(vector).all():
            raise UnusableVectorError("the query vector is not finite")
        return quantise(vector[np.newaxis], scale=self._scale)


def _dots_into(out: Scores, query: NDArray[np.int8], vectors: NDArray[np.int8]) -> None:
    if len(vectors):
        numkong.cdist(query, vectors, "dot", out=out[np.newaxis])
