"""Splits HTML into tags and text, with positions, in time proportional to its length.

The parser of the standard library takes time in the square of a broken document's length (24 KB of
`<a ` for ten seconds), which lets one file stop an indexer. This one knows only what extraction
needs: tags without their attributes, comments, and elements whose content is not markup. What is
malformed is read as browsers do where that loses no text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_OPENING = re.compile(r"<(?:(?P<close>/)?(?P<name>[a-zA-Z][^\s/>]*)|(?P<comment>!--)|[!?/])")
_QUOTE_OR_END = re.compile(r"=\s*(?P<quote>[\"'])|(?P<end>>)")
# Elements whose content holds no tags; it ends at their own closing tag.
_OPAQUE = frozenset({"script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes"})


@dataclass(frozen=True, slots=True)
class Tag:
    """An opening or closing tag; `name` is in lower case."""

    name: str
    closes: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Run:
    """Text between tags, entities not yet decoded."""

    start: int
    end: int


def tokens(html: str) -> Iterator[Tag | Run]:
    """Yield tags and text in their order; comments and declarations are left out."""
    scanner = _Scanner(html)
    position = text_start = 0
    while True:
        opening = _OPENING.search(html, position)
        if opening is None:
            break
        end = scanner.end_of(opening)
        if end is None:
            position = opening.end()  # not a tag after all: stays part of the text
            continue
        if opening.start() > text_start:
            yield Run(text_start, opening.start())
        position = text_start = end
        if opening["name"]:
            tag = Tag(opening["name"].lower(), bool(opening["close"]), opening.start(), end)
            yield tag
            if tag.name in _OPAQUE and not tag.closes:
                position = text_start = scanner.end_of_opaque(tag)
                if position > end:
                    yield Run(end, position)
    if text_start < len(html):
        yield Run(text_start, len(html))


class _Scanner:
    """Finds ends. Every search either moves on or is known to be in vain, which keeps the whole linear."""

    def __init__(self, html: str) -> None:
        self._html = html
        self._last_end = html.rfind(">")
        self._quotes_count = True

    def end_of(self, opening: re.Match[str]) -> int | None:
        """Return where a tag, comment or declaration ends; None when nothing ends it."""
        if opening["comment"]:
            return self._end_of_comment(opening)
        if opening.end() > self._last_end:
            return None
        if self._quotes_count and opening["name"] and not opening["close"]:
            end = self._end_outside_quotes(opening.end())
            if end is not None:
                return end
            self._quotes_count = False  # a quote that never ends; from here on they are plain characters
        return self._html.index(">", opening.end()) + 1

    def _end_of_comment(self, opening: re.Match[str]) -> int:
        for empty in (">", "->"):
            if self._html.startswith(empty, opening.end()):
                return opening.end() + len(empty)
        end = self._html.find("-->", opening.end())
        return len(self._html) if end < 0 else end + len("-->")

    def _end_outside_quotes(self, position: int) -> int | None:
        while True:
            found = _QUOTE_OR_END.search(self._html, position)
            if found is None:
                return None
            if found["end"]:
                return found.end()
            closing = self._html.find(found["quote"], found.end())
            if closing < 0:
                return None
            position = closing + 1

    def end_of_opaque(self, tag: Tag) -> int:
        """Return where the content of `tag` ends: at its closing tag, or with the document."""
        closing = re.compile(rf"</{re.escape(tag.name)}(?=[\s/>])", re.IGNORECASE).search(self._html, tag.end)
        return closing.start() if closing else len(self._html)
