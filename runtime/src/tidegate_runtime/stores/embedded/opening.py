"""Opening what a manifest names, sharing the segments that are open already."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate_runtime.errors import RevisionUnavailableError
from tidegate_runtime.stores.embedded.files import Files
from tidegate_runtime.stores.embedded.format import decode_segment
from tidegate_runtime.stores.embedded.manifest import FileEntry, Manifest, SegmentEntry
from tidegate_runtime.stores.embedded.segment import Segment


@dataclass(frozen=True, slots=True)
class OpenSegment:
    """A segment of a manifest, mapped. `live` says which documents are alive; None = all."""

    entry: SegmentEntry
    segment: Segment
    live: NDArray[np.bool_] | None


def open_segments(manifest: Manifest, files: Files, *, known: Mapping[str, Segment]) -> list[OpenSegment]:
    """Open the segments of `manifest`; `known` are open ones, by file name.

    Raises:
        FileNotFoundError: a file is gone; a newer manifest may be there.
        RevisionUnavailableError: a file is damaged.
    """
    return [
        OpenSegment(entry, segment, open_deletions(entry, segment, files))
        for entry in manifest.segments
        for segment in [known.get(entry.file.name) or open_segment(entry, files)]
    ]


def open_segment(entry: SegmentEntry, files: Files) -> Segment:
    """Map one segment file and check that it is what the manifest says."""
    content = files.map(entry.file.name)
    _require_size(entry.file, len(content))
    try:
        segment = Segment(decode_segment(content, name=entry.file.name))
    except (KeyError, ValueError) as error:
        raise _damaged(entry.file, f"no usable array {error}") from error
    if segment.rows != entry.stored_chunks:
        raise _damaged(entry.file, f"{segment.rows} chunks, expected {entry.stored_chunks}")
    return segment


def open_deletions(entry: SegmentEntry, segment: Segment, files: Files) -> NDArray[np.bool_] | None:
    """Return which documents of a segment are alive, None when all are."""
    if entry.deletions is None:
        return None
    content = files.read(entry.deletions.name)
    _require_size(entry.deletions, len(content))
    if len(content) != -(-segment.documents // 8):
        raise _damaged(entry.deletions, f"{len(content)} bytes for {segment.documents} documents")
    dead = np.unpackbits(np.frombuffer(content, dtype=np.uint8), count=segment.documents, bitorder="little")
    return ~dead.astype(np.bool_)


def encode_deletions(live: NDArray[np.bool_]) -> bytes:
    """Return the content of a deletions file: one bit per document, set where it is dead."""
    return np.packbits(~live, bitorder="little").tobytes()


def _require_size(file: FileEntry, size_bytes: int) -> None:
    if size_bytes != file.size_bytes:
        raise _damaged(file, f"{size_bytes} bytes, expected {file.size_bytes}")


def _damaged(file: FileEntry, what: str) -> RevisionUnavailableError:
    return RevisionUnavailableError(
        f"file {file.name} is damaged ({what}); remove the revision's folder to fetch or build it again"
    )
