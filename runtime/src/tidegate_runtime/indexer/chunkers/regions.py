"""How each strategy divides a text: regions that chunks never cross, and the breaks inside them.

Markdown is divided by its headings; a section without text, or with very little, is joined with what
follows while both belong together, so that no chunk is a lone heading. The path of headings goes with
each region, because a chunk from the middle of a section does not show it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidegate_runtime.indexer.chunkers.breaks import (
    line_breaks,
    nested,
    paragraph_breaks,
    sentence_breaks,
    unwrapped_line_breaks,
)
from tidegate_runtime.indexer.chunkers.token_grid import TokenGrid
from tidegate_runtime.indexer.loaders.outline import Block, Kind, blocks

# Sections of less than this part of a chunk are joined with the next.
_SMALL_PART = 4
_ITEM = re.compile(r"[-*+>|]|\d+[.)]\s")


@dataclass(frozen=True, slots=True)
class Region:
    """A span that is cut by itself, and the headings that it stands under."""

    start: int
    end: int
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Division:
    """Regions that cover a text, and nested breaks for all of them."""

    regions: Sequence[Region]
    levels: Sequence[Sequence[int]]


def fixed(text: str) -> Division:
    """Divide by nothing: windows of tokens."""
    return Division([Region(0, len(text))], [])


def recursive(text: str) -> Division:
    """Divide by paragraphs, then lines, then sentences."""
    levels = nested(paragraph_breaks(text), unwrapped_line_breaks(text), sentence_breaks(text))
    return Division([Region(0, len(text))], levels)


def markdown(text: str, grid: TokenGrid, *, size: int) -> Division:
    """Divide by headings, then blocks (fences and tables whole), then lines of lists, code and tables, then sentences."""
    found = list(blocks(text))
    sections = list(_sections(found, len(text)))
    levels = nested(_unit_starts(found), _hard_lines(text, found), sentence_breaks(text))
    return Division(list(_joined(sections, grid, size=size)), levels)


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading (level 0 = none) and what stands below it."""

    start: int
    end: int
    level: int
    headings: tuple[str, ...]
    has_text: bool


def _sections(found: Sequence[Block], text_end: int) -> Iterator[_Section]:
    path: list[tuple[int, str]] = []
    start, level, has_text = 0, 0, False
    for block in found:
        if block.kind is not Kind.HEADING:
            has_text = True
            continue
        if level or has_text:
            yield _Section(start, block.start, level, _titles(path), has_text)
            start = block.start
        path = [(above, title) for above, title in path if above < block.level] + [(block.level, block.title)]
        level, has_text = block.level, False
    yield _Section(start, text_end, level, _titles(path), has_text)


def _titles(path: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(title for _, title in path if title)


def _joined(sections: Sequence[_Section], grid: TokenGrid, *, size: int) -> Iterator[Region]:
    current = sections[0]
    for section in sections[1:]:
        small = grid.count(current.start, current.end) * _SMALL_PART < size
        both_fit = grid.count(current.start, section.end) <= size
        if not current.has_text or (small and both_fit and section.level >= current.level):
            headings = section.headings if not current.has_text else _common(current.headings, section.headings)
            current = _Section(
                current.start, section.end, current.level, headings, current.has_text or section.has_text
            )
        else:
            yield Region(current.start, current.end, current.headings)
            current = section
    yield Region(current.start, current.end, current.headings)


def _common(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    length = 0
    while length < min(len(left), len(right)) and left[length] == right[length]:
        length += 1
    return left[:length]


def _unit_starts(found: Sequence[Block]) -> list[int]:
    """Return where blocks begin, except below a heading: it stays with the first block of its section."""
    return [block.start for index, block in enumerate(found) if index == 0 or found[index - 1].kind is not Kind.HEADING]


def _hard_lines(text: str, found: Sequence[Block]) -> list[int]:
    """Return the lines inside blocks at which something new begins; wrapped lines of prose are not among them."""
    lines: list[int] = []
    for block in found:
        if block.kind is not Kind.HEADING:
            places = [block.start + place for place in line_breaks(text[block.start : block.end])]
            inside = [place for place in places if place < block.end]
            lines += [place for place in inside if block.kind is not Kind.PARAGRAPH or _ITEM.match(text, place)]
    return lines
