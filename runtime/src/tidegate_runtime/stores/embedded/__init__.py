"""The embedded index store: immutable memory-mapped segments under one atomically replaced manifest.

One writer per folder, any number of readers in other processes, or on other nodes where a puller
mirrors the folder by digest. Equal sources give byte-equal answers, whatever the order of commits,
crashes and compactions: dense scores are integer dot products, BM25 sums run in term order over
exact statistics of live chunks, ties are broken by chunk id.
"""

from tidegate_runtime.stores.embedded.manifest import MANIFEST_NAME, FileEntry, Manifest, read_manifest
from tidegate_runtime.stores.embedded.reader import EmbeddedReader
from tidegate_runtime.stores.embedded.writer import EmbeddedWriter

__all__ = ["MANIFEST_NAME", "EmbeddedReader", "EmbeddedWriter", "FileEntry", "Manifest", "read_manifest"]
