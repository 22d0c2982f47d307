"""Places where a text may be cut, from the best (paragraphs) to the least (between two tokens).

A break is the position at which something begins. Sentences end with Latin or CJK punctuation; a line
that goes on in lower case is the wrapped middle of a paragraph and no place to cut. Inside a word a
cut keeps combining marks and joined emoji with the character that they belong to.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
_LINE = re.compile(r"\n[^\S\n]*")
_SENTENCE = re.compile(r"[.!?؟।۔]+[\"'”’)\]]*\s++(?![a-z])|[。！？；…]+[”’」』）》】]*\s*")
# Scripts without spaces: a cut is possible at every character.
_IDEOGRAPH = re.compile(r"[\u2e80-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef\U00020000-\U000323af]")
_NOT_AT_START = frozenset("，。！？；：、…）》」』】”’〉〕％·ー々")
_JOINER = "\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)


def paragraph_breaks(text: str) -> list[int]:
    """Return where paragraphs begin."""
    return [match.end() for match in _PARAGRAPH.finditer(text)]


def line_breaks(text: str) -> list[int]:
    """Return where lines begin."""
    return [match.end() for match in _LINE.finditer(text)]


def unwrapped_line_breaks(text: str) -> list[int]:
    """Return where lines begin that do not go on in lower case."""
    return [place for place in line_breaks(text) if not text[place : place + 1].islower()]


def sentence_breaks(text: str) -> list[int]:
    """Return where sentences begin."""
    return [match.end() for match in _SENTENCE.finditer(text)]


def nested(*levels: Iterable[int]) -> list[Sequence[int]]:
    """Return the levels, the best first, so that each holds the breaks of the better ones too."""
    known: set[int] = set()
    result: list[Sequence[int]] = []
    for level in levels:
        known.update(level)
        result.append(sorted(known))
    return result


def begins_word(text: str, position: int) -> bool:
    """Whether a word, or an ideograph that is no closing punctuation, begins at `position`."""
    if position == 0 or text[position - 1].isspace():
        return True
    if text[position] in _NOT_AT_START or not begins_cluster(text, position):
        return False
    return bool(_IDEOGRAPH.match(text[position]) or _IDEOGRAPH.match(text[position - 1]))


def begins_cluster(text: str, position: int) -> bool:
    """Whether what readers take for one character begins at `position`."""
    character = text[position]
    if character == _JOINER or (position > 0 and text[position - 1] == _JOINER):
        return False
    return not unicodedata.category(character).startswith("M") and ord(character) not in _SKIN_TONES
