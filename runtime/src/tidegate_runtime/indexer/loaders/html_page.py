"""The text of a page as it grows, with the origin of every piece.

White space and marks are wishes until the next text arrives: an empty element leaves no trace, and of
several breaks the widest is written once. What is put in stands for an empty span of the original.
"""

from tidegate_runtime.indexer.loaders.offsets import OffsetMap

SPACE, LINE, PARAGRAPH = " ", "\n", "\n\n"
_CELL = "| "
_EMPTY_CELLS_MAX = 64


class Page:
    """Collects text in reading order."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._starts: list[int] = []
        self._origins: list[int] = []
        self._origin_ends: list[int] = []
        self._gap = ""
        self._mark = ""
        self._cells = 0
        self._row_has_text = False

    @property
    def text(self) -> str:
        """Return the text so far."""
        return "".join(self._parts)

    @property
    def offsets(self) -> OffsetMap:
        """Return the way back to the original."""
        return OffsetMap(tuple(self._starts), tuple(self._origins), tuple(self._origin_ends), self._length)

    def break_with(self, gap: str) -> None:
        """Ask for white space before the next text: SPACE, LINE or PARAGRAPH, of which the widest counts."""
        if self._cells:
            return  # a cell begins: the elements inside it must not tear the row apart
        if gap.count("\n") > self._gap.count("\n") or not self._gap:
            self._gap = gap

    def mark_with(self, mark: str) -> None:
        """Ask for a mark before the next text; an empty one takes the wish back."""
        self._mark = mark

    def begin_row(self) -> None:
        """Ask for a new table row."""
        self._gap = self._gap if self._gap == PARAGRAPH else LINE
        self._mark = ""
        self._cells = 0
        self._row_has_text = False

    def begin_cell(self) -> None:
        """Ask for the mark of a cell; cells that stay empty keep theirs, within reason."""
        self._cells = min(self._cells + 1, _EMPTY_CELLS_MAX)

    def insert(self, text: str, *, at: int) -> None:
        """Put in something that the original does not have."""
        self._append(text, at, at)

    def add(self, text: str, start: int, end: int) -> None:
        """Add what stands for the span [start, end) of the original, after what was asked for."""
        gap = SPACE if self._cells and self._row_has_text else self._gap
        if gap and self._length:
            self._append(gap, start, start)
        mark = _CELL * self._cells + self._mark
        if mark:
            self._append(mark, start, start)
        self._row_has_text |= self._cells > 0
        self._gap = self._mark = ""
        self._cells = 0
        self._append(text, start, end)

    def _append(self, text: str, start: int, end: int) -> None:
        if self._continues_copy(start) and len(text) == end - start:
            self._origin_ends[-1] = end
        else:
            self._starts.append(self._length)
            self._origins.append(start)
            self._origin_ends.append(end)
        self._parts.append(text)
        self._length += len(text)

    def _continues_copy(self, start: int) -> bool:
        if not self._starts or self._origin_ends[-1] != start:
            return False
        return self._length - self._starts[-1] == self._origin_ends[-1] - self._origins[-1]
