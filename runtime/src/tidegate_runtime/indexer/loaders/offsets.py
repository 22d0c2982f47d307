"""Where a position of an extracted text stands in the original.

Search folds and loaders rewrite (markup goes, entities are decoded, marks are put in), yet a citation
must point into what the author wrote. A map is a list of pieces in the order of the text; a piece as
long as its origin is a copy of it, any other stands for its origin as a whole.
"""

from bisect import bisect_right
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OffsetMap:
    """Starts of the pieces in the text, and the span of the original that each stands for."""

    text_starts: tuple[int, ...]
    original_starts: tuple[int, ...]
    original_ends: tuple[int, ...]
    text_length: int

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original that the non-empty span [start, end) of the text stands for."""
        first, last = self._piece(start), self._piece(end - 1)
        original_start = self.original_starts[first]
        if self._is_copy(first):
            original_start += start - self.text_starts[first]
        original_end = self.original_ends[last]
        if self._is_copy(last):
            original_end = self.original_starts[last] + end - self.text_starts[last]
        return original_start, max(original_start, original_end)

    def _piece(self, position: int) -> int:
        return bisect_right(self.text_starts, position) - 1

    def _is_copy(self, piece: int) -> bool:
        following = piece + 1
        end = self.text_starts[following] if following < len(self.text_starts) else self.text_length
        return end - self.text_starts[piece] == self.original_ends[piece] - self.original_starts[piece]


def shifted(length: int, *, by: int = 0) -> OffsetMap:
    """Return the map of a text that is the original without its first `by` characters."""
    return OffsetMap((0,), (by,), (by + length,), length)
