"""Where the tokens of a text start: sizes by two look-ups instead of a tokenizer call per candidate.

A text is tokenised once, in windows that end at white space, which bounds memory. Only starts are
kept; what lies between two starts belongs to the token before. A token or gap longer than 32
characters (a word that the encoder does not know, a run of invisible characters) counts once per 32,
so that a bound in tokens is also one in characters.
"""

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator

from tidegate_runtime.ports import Tokenizer

TOKEN_CHARACTERS_MAX = 32
_WINDOW_CHARACTERS = 4096
_NO_SPACE = re.compile(r"\S")


class TokenGrid:
    """The starts of all tokens of one text, in order; several tokens may start at one character."""

    def __init__(self, text: str, tokenizer: Tokenizer) -> None:
        self._end = len(text)
        self.starts = _with_gaps_filled(_starts(text, tokenizer), self._end)

    def index(self, position: int) -> int:
        """Return how many tokens start before `position`."""
        return bisect_left(self.starts, position)

    def count(self, start: int, end: int) -> int:
        """Return how many tokens start in [start, end)."""
        return max(0, self.index(end) - self.index(start))

    def reach(self, start: int, tokens: int) -> int:
        """Return the furthest position up to which there are at most `tokens` tokens from `start` on."""
        following = self.index(start) + tokens
        return self.starts[following] if following < len(self.starts) else self._end


def _starts(text: str, tokenizer: Tokenizer) -> "array[int]":
    """Return the starts of all tokens; one that begins with white space, or is nothing else, starts at what follows."""
    starts = array("q")
    for begin, end in _windows(text):
        window = text[begin:end]
        spans = tokenizer.offsets(window)
        starts.extend([begin + (start if not window[start].isspace() else _solid(window, start)) for start, _ in spans])
    return starts


def _solid(text: str, position: int) -> int:
    found = _NO_SPACE.search(text, position)
    return found.start() if found else len(text)


def _windows(text: str) -> Iterator[tuple[int, int]]:
    begin = 0
    while begin < len(text):
        end = min(begin + _WINDOW_CHARACTERS, len(text))
        if end < len(text):
            space = max(text.rfind("\n", begin + 1, end), text.rfind(" ", begin + 1, end))
            end = space if space > 0 else end
        yield begin, end
        begin = end


def _with_gaps_filled(starts: "array[int]", end: int) -> "array[int]":
    bounds = [0, *starts, end]
    wide = [index for index in range(1, len(bounds)) if bounds[index] - bounds[index - 1] > TOKEN_CHARACTERS_MAX]
    filled = array("q")
    copied = 0
    for index in wide:
        filled.extend(starts[copied : index - 1])
        filled.extend(range(bounds[index - 1] + TOKEN_CHARACTERS_MAX, bounds[index], TOKEN_CHARACTERS_MAX))
        copied = index - 1
    filled.extend(starts[copied:])
    return filled
