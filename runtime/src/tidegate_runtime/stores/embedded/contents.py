"""The segments of a revision in memory, and the next manifest computed from them.

Nothing here writes. Given which segments stay, with which documents, and what comes new,
`next_contents` answers with the entries of the manifest to be and the files that they name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate_runtime.stores.embedded.files import DELETIONS_SUFFIX, SEGMENT_SUFFIX
from tidegate_runtime.stores.embedded.format import Array, EncodedFile, encode, encode_segment
from tidegate_runtime.stores.embedded.manifest import FileEntry, SegmentEntry, Totals
from tidegate_runtime.stores.embedded.opening import OpenSegment, encode_deletions
from tidegate_runtime.stores.embedded.segment import Segment

Live = NDArray[np.bool_] | None


@dataclass(frozen=True, slots=True)
class NextContents:
    """What a manifest will say of segments, and the files to be written before it may."""

    entries: list[SegmentEntry]
    files: dict[str, EncodedFile]


def next_contents(
    held: Mapping[str, OpenSegment], *, live: Mapping[str, Live], new_segment: Mapping[str, Array] | None
) -> NextContents:
    """Return the contents with the segments named in `live`, each with those documents, and the new one."""
    files: dict[str, EncodedFile] = {}
    entries = [_kept(held[name], flags, files) for name, flags in live.items()]
    if new_segment is not None:
        file = _entry(encode_segment(new_segment), SEGMENT_SUFFIX, files)
        segment = Segment(new_segment)
        entries.append(SegmentEntry(file=file, stored_chunks=segment.rows, live=count_live(segment, None)))
    return NextContents(entries, files)


def without(held: Mapping[str, OpenSegment], documents: Mapping[str, Sequence[int]]) -> dict[str, Live]:
    """Return which documents of each segment are live once `documents` are gone; empty segments are left out."""
    live: dict[str, Live] = {}
    for name, opened in held.items():
        flags = opened.live
        if name in documents:
            flags = np.ones(opened.segment.documents, dtype=np.bool_) if flags is None else flags.copy()
            flags[np.array(documents[name])] = False
        if flags is None or flags.any():
            live[name] = flags
    return live


def count_live(segment: Segment, live: Live) -> Totals:
    """Count what is live in a segment."""
    rows = slice(None) if live is None else live[segment.row_documents]
    lengths = segment.lengths[rows]
    return Totals(
        documents=segment.documents if live is None else int(np.count_nonzero(live)),
        chunks=len(lengths),
        terms=int(lengths.sum(dtype=np.int64)),
        truncated_chunks=int(np.count_nonzero(segment.truncated[rows])),
    )


def _kept(opened: OpenSegment, live: Live, files: dict[str, EncodedFile]) -> SegmentEntry:
    if live is opened.live or live is None:
        return opened.entry
    deletions = _entry(encode((encode_deletions(live),)), DELETIONS_SUFFIX, files)
    return opened.entry.model_copy(update={"deletions": deletions, "live": count_live(opened.segment, live)})


def _entry(encoded: EncodedFile, suffix: str, files: dict[str, EncodedFile]) -> FileEntry:
    name = f"{encoded.sha256}{suffix}"
    files[name] = encoded
    return FileEntry(name=name, sha256=encoded.sha256, size_bytes=encoded.size_bytes)
