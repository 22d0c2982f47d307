"""The blocks of a Markdown text: headings, fenced code, tables and the paragraphs between them.

Only what cutting and titles need is recognised; inline markup stays as it is. Blocks are spans of the
text in its order and cover everything that is not a blank line. One pass over the lines, no
look-ahead beyond the next line, so a text of any size or shape takes time in proportion.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

_FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})(?P<info>[^\n]*)")
_HEADING = re.compile(r" {0,3}(?P<marks>#{1,6})(?:[ \t]+(?P<title>[^\n]*))?$")
_UNDERLINE = re.compile(r" {0,3}(?:(?P<one>=+)|-{3,})[ \t\r]*$")
_TABLE_ROW = re.compile(r"[ \t]*\|")
_CLOSING_MARKS = re.compile(r"[ \t]+#+$")
_ATTRIBUTES = re.compile(r"[ \t]*\{[^{}]*\}$")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_EMPHASIS = re.compile(r"\*\*|__|`")


class Kind(Enum):
    """What a block is."""

    HEADING = auto()
    FENCE = auto()
    TABLE = auto()
    PARAGRAPH = auto()


@dataclass(frozen=True, slots=True)
class Block:
    """A span of whole lines. `level` (1-6) and `title` are of headings alone."""

    kind: Kind
    start: int
    end: int
    level: int = 0
    title: str = ""


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a Markdown text."""
    waiting: list[_Line] = []
    waiting_kind = Kind.PARAGRAPH
    fence: tuple[int, str] | None = None
    end = 0
    for line in _lines(text):
        end = line.end
        if fence is not None:
            if _closes(line.text, fence[1]):
                yield Block(Kind.FENCE, fence[0], line.end)
                fence = None
            continue
        found = _special(line, waiting if waiting_kind is Kind.PARAGRAPH else [])
        kind = Kind.TABLE if _TABLE_ROW.match(line.text) else Kind.PARAGRAPH
        if waiting and (found is not None or kind is not waiting_kind or not line.text.strip()):
            if found is None or found.start != waiting[0].start:
                yield Block(waiting_kind, waiting[0].start, waiting[-1].end)
            waiting = []
        if found is None:
            if line.text.strip():
                waiting.append(line)
                waiting_kind = kind
        elif found.kind is Kind.FENCE:
            fence = (line.start, found.title)
        else:
            yield found
    if fence is not None:
        yield Block(Kind.FENCE, fence[0], end)
    elif waiting:
        yield Block(waiting_kind, waiting[0].start, waiting[-1].end)


def first_heading(text: str) -> str:
    """Return the title of the first heading that has one, or an empty string."""
    return next((block.title for block in blocks(text) if block.title), "")


def _special(line: _Line, paragraph: list[_Line]) -> Block | None:
    """Return the heading that `line` is or completes, or the fence that it opens (its mark as title)."""
    fence = _FENCE.match(line.text)
    if fence and not (fence["mark"][0] == "`" and "`" in fence["info"]):
        return Block(Kind.FENCE, line.start, line.end, title=fence["mark"])
    heading = _HEADING.match(line.text)
    if heading:
        title = _plain(_CLOSING_MARKS.sub("", (heading["title"] or "").strip()))
        return Block(Kind.HEADING, line.start, line.end, len(heading["marks"]), title)
    underline = _UNDERLINE.match(line.text)
    if underline and len(paragraph) == 1:
        level = 1 if underline["one"] else 2
        return Block(Kind.HEADING, paragraph[0].start, line.end, level, _plain(paragraph[0].text.strip()))
    return None


def _closes(line: str, mark: str) -> bool:
    stripped = line.strip()
    return len(stripped) >= len(mark) and not stripped.strip(mark[0])


def _plain(title: str) -> str:
    return _EMPHASIS.sub("", _LINK.sub(r"\1", _ATTRIBUTES.sub("", title))).strip()


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    while start < len(text):
        newline = text.find("\n", start)
        end = len(text) if newline < 0 else newline + 1
        yield _Line(start, end, text[start:end].removesuffix("\n"))
        start = end
