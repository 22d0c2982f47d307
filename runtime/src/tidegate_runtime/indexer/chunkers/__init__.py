"""Chunkers: documents to chunks, and chunks to what is embedded. Import from here."""

from tidegate_runtime.indexer.chunkers.chunking import Chunk, chunk
from tidegate_runtime.indexer.chunkers.passages import is_truncated, passage_text

__all__ = ["Chunk", "chunk", "is_truncated", "passage_text"]
