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


class VectorIndex:
    """The vectors of a snapshot. Thread-safe."""

    def __init__(self, segments: Sequence[LiveSegment], *, dimension: int, scale: float) -> None:
        self._segments = tuple(segments)
        self._dimension = dimension
        self._scale = scale
        self._rows = sum(live.segment.rows for live in segments)
        complete = all(live.segment.has_vector.all() for live in segments)
        self.rows_with_vector: NDArray[np.bool_] | None = (
            None if complete else np.concatenate([live.segment.has_vector for live in segments])
        )

    def scores(self, vector: FloatVector) -> Scores:
        """Return the cosine of every row, 0 for rows without a vector."""
        query = self._quantised(vector)
        dots = np.zeros((1, self._rows))
        for live in self._segments:
            _dots_into(dots[:, live.rows], query, live.segment.vectors)
        return cosine_of_dots(dots[0], scale=self._scale)

    def scores_of(self, vector: FloatVector, rows: Rows) -> Scores:
        """Return the cosine of each of `rows`, 0 for rows without a vector."""
        query = self._quantised(vector)
        dots = np.zeros(len(rows))
        for live, positions, local in split_rows(self._segments, rows):
            if len(live.segment.vectors):
                part = np.zeros((1, len(local)))
                _dots_into(part, query, live.segment.vectors[local])
                dots[positions] = part[0]
        return cosine_of_dots(dots, scale=self._scale)

    def _quantised(self, vector: FloatVector) -> NDArray[np.int8]:
        if vector.shape != (self._dimension,):
            raise InvalidQueryError(
                f"the query vector has shape {vector.shape}, the index holds {self._dimension} components"
            )
        if not np.isfinite(vector).all():
            raise UnusableVectorError("the query vector is not finite")
        return quantise(vector[np.newaxis], scale=self._scale)


def _dots_into(out: NDArray[np.float64], query: NDArray[np.int8], vectors: NDArray[np.int8]) -> None:
    if len(vectors):
        numkong.cdist(query, vectors, "dot", out=out)
