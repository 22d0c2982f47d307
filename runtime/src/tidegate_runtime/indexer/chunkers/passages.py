"""What is embedded of a chunk: its document's title and headings, then its text.

Title and headings together take at most 32 tokens, which the cap on chunk sizes leaves room for; so
no chunk is cut by the encoder unless it was too large by itself. A document without headings gives
`title + " " + text`.
"""

from dataclasses import dataclass

from tidegate_runtime.indexer.chunkers.chunking import HEADING_SEPARATOR, Chunk
from tidegate_runtime.ports import Tokenizer

PREFIX_TOKENS_MAX = 32
# Tokens that frame every text an encoder reads.
_SPECIAL_TOKENS = 2


@dataclass(frozen=True, slots=True)
class _Prefix:
    text: str
    tokens: int


def passage_text(title: str, heading: str, content: str, *, tokenizer: Tokenizer) -> str:
    """Return the text to embed for a chunk."""
    prefix = _prefix(title, heading, tokenizer)
    return f"{prefix.text} {content}" if prefix.text else content


def is_truncated(chunk: Chunk, *, title: str, tokenizer: Tokenizer, max_tokens: int) -> bool:
    """Whether an encoder that reads `max_tokens` tokens does not read the chunk's passage to its end."""
    room = max_tokens - chunk.tokens - _SPECIAL_TOKENS
    return room < PREFIX_TOKENS_MAX and _prefix(title, chunk.heading, tokenizer).tokens > room


def _prefix(title: str, heading: str, tokenizer: Tokenizer) -> _Prefix:
    """Return title and headings, the title named once, cut to their share of tokens."""
    below = "" if heading == title else heading.removeprefix(f"{title}{HEADING_SEPARATOR}")
    text = " ".join(part for part in (title.strip(), below) if part)
    spans = tokenizer.offsets(text) if text else ()
    if len(spans) > PREFIX_TOKENS_MAX:
        text = text[: spans[PREFIX_TOKENS_MAX - 1][1]].rstrip()
        spans = tokenizer.offsets(text)
    return _Prefix(text, len(spans))
