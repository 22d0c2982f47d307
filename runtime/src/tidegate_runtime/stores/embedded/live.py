"""A segment as one snapshot sees it: where its rows begin, and which of them are alive."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate_runtime.ports import Rows
from tidegate_runtime.stores.embedded.segment import Segment


@dataclass(frozen=True, slots=True)
class LiveSegment:
    """`live_documents` and `live_rows` are None while nothing of the segment is deleted."""

    segment: Segment
    number: int
    first_row: int
    live_documents: NDArray[np.bool_] | None
    live_rows: NDArray[np.bool_] | None

    @property
    def rows(self) -> slice:
        """Return the segment's rows in the snapshot."""
        return slice(self.first_row, self.first_row + self.segment.rows)


def stack(segments: Sequence[tuple[Segment, NDArray[np.bool_] | None]]) -> tuple[LiveSegment, ...]:
    """Number the rows of segments one after the other; with each comes which documents are alive."""
    stacked: list[LiveSegment] = []
    first_row = 0
    for number, (segment, live) in enumerate(segments):
        live_rows = None if live is None else live[segment.row_documents]
        stacked.append(LiveSegment(segment, number, first_row, live, live_rows))
        first_row += segment.rows
    return tuple(stacked)


def split_rows(
    segments: Sequence[LiveSegment], rows: Rows
) -> Iterator[tuple[LiveSegment, NDArray[np.intp], NDArray[np.int64]]]:
    """Yield, for each segment that holds some of `rows`, their positions in `rows` and their rows in the segment."""
    if not len(rows):
        return
    if len(segments) == 1:
        yield segments[0], np.arange(len(rows)), rows
        return
    bounds = np.array([live.first_row for live in segments], dtype=np.int64)
    owners = np.searchsorted(bounds, rows, side="right") - 1
    for number in np.flatnonzero(np.bincount(owners)).tolist():
        positions = np.flatnonzero(owners == number)
        yield segments[number], positions, rows[positions] - segments[number].first_row
