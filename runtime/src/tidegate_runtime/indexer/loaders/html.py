"""The readable text of an HTML page, written as plain Markdown, with the way back to the markup.

Block elements become line breaks, headings `#`, list items `-`, table rows `|`, preformatted text a
fence: so one set of chunkers serves both formats. Scripts, styles, navigation and templates are left
out, but only when they end: a forgotten closing tag must not swallow the page.
"""

import html as entities
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tidegate_runtime.indexer.loaders.document import Extract
from tidegate_runtime.indexer.loaders.html_page import LINE, PARAGRAPH, SPACE, Page
from tidegate_runtime.indexer.loaders.html_tokens import Run, Tag, tokens

_DROPPED = frozenset(
    {"script", "style", "nav", "template", "noscript", "svg", "iframe", "noembed", "noframes", "select"}
)
_PARAGRAPHS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "details", "dialog", "div", "dl", "fieldset", "figure"}
    | {"footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "ol", "p", "pre", "section"}
    | {"table", "ul"}
)
_LINES = frozenset({"br", "caption", "dd", "dt", "figcaption", "legend", "li", "summary"})
_MARKS = {**{f"h{level}": "#" * level + " " for level in range(1, 7)}, "li": "- "}
_ENTITY = r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]{1,31});?"
_PIECE = re.compile(rf"(?P<space>\s+)|(?P<entity>{_ENTITY})|[^\s&]+(?:\s[^\s&]+)*|&")
_PREFORMATTED_PIECE = re.compile(rf"(?P<entity>{_ENTITY})|[^&]+|&")
_WHITE = re.compile(r"\s")
_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)+")
_FENCE = "```"


def extract_html(original: str) -> Extract:
    """Return the readable text of a page; its title is that of the head, or its first h1."""
    reading = _Reading(original)
    for token in tokens(original):
        if isinstance(token, Tag):
            reading.take_tag(token)
        else:
            reading.take_run(token)
    reading.end_preformatted(at=len(original))
    page = reading.page
    return Extract(text=page.text, offsets=page.offsets, title=reading.title.strip() or reading.heading.strip())


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text, and the span of the original that it stands for."""

    text: str
    start: int
    end: int

    @property
    def is_copy(self) -> bool:
        return len(self.text) == self.end - self.start


class _Reading:
    """What is open at one place of a page."""

    def __init__(self, original: str) -> None:
        self.page = Page()
        self.title = ""
        self.heading = ""
        self._original = original
        self._dropped: list[str] = []
        self._last_closing: dict[str, int] = {}
        self._capturing = ""
        self._preformatted: list[_Piece] | None = None

    def take_tag(self, tag: Tag) -> None:
        """Open or close an element."""
        if self._dropped:
            if tag.name == self._dropped[-1]:
                self._dropped.pop() if tag.closes else self._dropped.append(tag.name)
        elif tag.name in _DROPPED:
            if not tag.closes and self._ends_later(tag):
                self._dropped.append(tag.name)
        elif self._preformatted is not None:
            self._take_tag_in_preformatted(tag)
        else:
            self._take_tag_in_text(tag)

    def take_run(self, run: Run) -> None:
        """Add text."""
        if self._dropped:
            return
        if self._capturing:
            text = entities.unescape(self._original[run.start : run.end])
            if self._capturing == "title":
                self.title += text
                return
            self.heading += text
        if self._preformatted is None:
            self._take_text(run)
        else:
            self._preformatted += self._pieces(_PREFORMATTED_PIECE, run)

    def end_preformatted(self, *, at: int) -> None:
        """Write out preformatted text inside a fence, blank lines around it left out."""
        pieces = _stripped(self._preformatted or [])
        self._preformatted = None
        if not pieces:
            return
        self.page.mark_with(f"{_FENCE}\n")
        for piece in pieces:
            self.page.add(piece.text, piece.start, piece.end)
        self.page.insert(f"\n{_FENCE}", at=at)
        self.page.break_with(PARAGRAPH)

    def _take_tag_in_text(self, tag: Tag) -> None:
        name = tag.name
        if name in ("table", "tr"):
            self.page.begin_row()
        if name in _PARAGRAPHS:
            self.page.break_with(PARAGRAPH)
        elif name in _LINES:
            self.page.break_with(LINE)
        elif name in ("td", "th") and not tag.closes:
            self.page.begin_cell()
        if name in _MARKS:
            self.page.mark_with("" if tag.closes else _MARKS[name])
        elif name == "pre" and not tag.closes:
            self._preformatted = []
        if name in ("title", "h1"):
            self._capture(tag)

    def _take_tag_in_preformatted(self, tag: Tag) -> None:
        if tag.name == "pre" and tag.closes:
            self.end_preformatted(at=tag.start)
        elif tag.name == "br" and self._preformatted is not None:
            self._preformatted.append(_Piece("\n", tag.start, tag.end))

    def _capture(self, tag: Tag) -> None:
        """Collect the first title and the first h1; later ones change nothing."""
        taken = self.title if tag.name == "title" else self.heading
        if tag.closes:
            self._capturing = ""
        elif not taken.strip():
            self._capturing = tag.name

    def _take_text(self, run: Run) -> None:
        for piece in self._pieces(_PIECE, run):
            if piece.text.strip():
                self.page.add(_WHITE.sub(" ", piece.text), piece.start, piece.end)
            else:
                self.page.break_with(SPACE)

    def _pieces(self, pattern: re.Pattern[str], run: Run) -> Iterator[_Piece]:
        for match in pattern.finditer(self._original, run.start, run.end):
            text = match.group()
            yield _Piece(entities.unescape(text) if match["entity"] else text, *match.span())

    def _ends_later(self, tag: Tag) -> bool:
        if self._original[tag.end - 2] == "/":
            return False
        if tag.name not in self._last_closing:
            closings = re.finditer(rf"</{tag.name}", self._original, re.IGNORECASE)
            self._last_closing[tag.name] = max((closing.start() for closing in closings), default=-1)
        return self._last_closing[tag.name] >= tag.end


def _stripped(pieces: list[_Piece]) -> list[_Piece]:
    """Leave out blank lines before and white space after preformatted text; the first line keeps its indent."""
    while pieces and not pieces[-1].text.strip():
        pieces.pop()
    first = 0
    while first < len(pieces) and not pieces[first].text.strip():
        first += 1
    if first == len(pieces):
        return []
    kept = pieces[first:]
    begin = kept[0]
    blank_lines = _BLANK_LINES.match(begin.text)
    if blank_lines and begin.is_copy:
        kept[0] = _Piece(begin.text[blank_lines.end() :], begin.start + blank_lines.end(), begin.end)
    last = kept[-1]
    text = last.text.rstrip()
    if last.is_copy:
        kept[-1] = _Piece(text, last.start, last.start + len(text))
    return kept
