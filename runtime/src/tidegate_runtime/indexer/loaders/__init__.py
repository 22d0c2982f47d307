"""Loaders: files to documents. Import from here; the modules are one per format."""

from tidegate_runtime.indexer.loaders.document import Format, LoadedFile, SourceDocument
from tidegate_runtime.indexer.loaders.loading import EXTENSIONS, holds_many, load
from tidegate_runtime.indexer.loaders.offsets import OffsetMap

__all__ = ["EXTENSIONS", "Format", "LoadedFile", "OffsetMap", "SourceDocument", "holds_many", "load"]
