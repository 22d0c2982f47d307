"""Documents to chunks.

Holds for every strategy: a chunk's content equals the slice of the document's text at its offsets; no
chunk is empty or larger than the shape allows; every character that is not white space lies in some
chunk; equal input gives equal chunks. Changing a strategy's result means another number in
`tidegate_api.shape.ALGORITHMS`.
"""

from dataclasses import dataclass

from tidegate_api.shape import ChunkingShape
from tidegate_runtime.indexer.chunkers.cutting import Cutter
from tidegate_runtime.indexer.chunkers.regions import Division, fixed, markdown, recursive
from tidegate_runtime.indexer.chunkers.token_grid import TokenGrid
from tidegate_runtime.indexer.loaders import SourceDocument
from tidegate_runtime.ports import Tokenizer

HEADING_SEPARATOR = " > "


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document. `heading` is the path of headings above it; `tokens` are those of its content."""

    ordinal: int
    start: int
    end: int
    content: str
    heading: str
    tokens: int


def chunk(document: SourceDocument, shape: ChunkingShape, tokenizer: Tokenizer) -> list[Chunk]:
    """Cut a document; offsets are in its text (`document.offsets` leads on to the original)."""
    text = document.text
    grid = TokenGrid(text, tokenizer)
    division = _divide(text, grid, shape)
    cutter = Cutter(
        text,
        grid,
        tokenizer,
        division.levels,
        size=shape.size_tokens,
        overlap=min(shape.overlap_tokens, shape.size_tokens // 2),
    )
    chunks: list[Chunk] = []
    for region in division.regions:
        heading = HEADING_SEPARATOR.join(region.headings)
        for cut in cutter.cuts(region.start, region.end):
            chunks.append(Chunk(len(chunks), cut.start, cut.end, text[cut.start : cut.end], heading, cut.tokens))
    return chunks


def _divide(text: str, grid: TokenGrid, shape: ChunkingShape) -> Division:
    match shape.strategy:
        case "markdown":
            return markdown(text, grid, size=shape.size_tokens)
        case "recursive":
            return recursive(text)
        case "fixed":
            return fixed(text)
