"""A look inside a revision before it may be called ready: what a proof needs and a reader never does.

It opens revisions that are not ready, sees every live row whoever may read it, and gives samples
with all that was embedded, so that a proof can embed them again and find them. Samples are the rows
with the smallest chunk ids: spread evenly, since ids are hashes, and the same in every build.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidegate_runtime.errors import RevisionUnavailableError
from tidegate_runtime.ports import DocumentKey, InspectedChunk, Rows
from tidegate_runtime.stores.embedded.files import LocalFiles
from tidegate_runtime.stores.embedded.live import LiveSegment, split_rows, stack
from tidegate_runtime.stores.embedded.manifest import MANIFEST_NAME, Manifest, read_manifest
from tidegate_runtime.stores.embedded.opening import OpenSegment, open_segments
from tidegate_runtime.stores.embedded.selection import RowSelection
from tidegate_runtime.stores.embedded.snapshot import EmbeddedSnapshot


class EmbeddedInspection:
    """Implements `RevisionInspection`."""

    def __init__(self, manifest: Manifest, opened: Sequence[OpenSegment]) -> None:
        segments = [(item.segment, item.live) for item in opened]
        self._segments = stack(segments)
        self._snapshot = EmbeddedSnapshot(manifest, segments)
        self._live = np.concatenate([np.zeros(0, dtype=np.int64), *(_live_rows(live) for live in self._segments)])

    @staticmethod
    def open(directory: Path) -> "EmbeddedInspection":
        """Look at the revision in `directory` as it is now, ready or not.

        Raises:
            RevisionUnavailableError: there is none, or it is damaged.
        """
        files, place = LocalFiles(directory), str(directory / MANIFEST_NAME)
        manifest = read_manifest(files, place=place)
        if manifest is None:
            raise RevisionUnavailableError(f"{place}: no revision is here yet")
        try:
            return EmbeddedInspection(manifest, open_segments(manifest, files, known={}))
        except FileNotFoundError as error:
            raise RevisionUnavailableError(
                f"{place} names {error.filename}, which is missing; remove the folder to build the revision again"
            ) from error

    @property
    def snapshot(self) -> EmbeddedSnapshot:
        return self._snapshot

    @property
    def everything(self) -> RowSelection:
        mask = np.zeros(sum(live.segment.rows for live in self._segments), dtype=np.bool_)
        mask[self._live] = True
        return RowSelection(len(self._live), mask=mask)

    def sample(self, count: int) -> list[InspectedChunk]:
        numbers = np.zeros(len(self._live), dtype=np.uint64)
        for live, positions, local in split_rows(self._segments, self._live):
            numbers[positions] = live.segment.chunk_numbers[local]
        rows: Rows = self._live[np.argsort(numbers, kind="stable")[:count]]
        found: dict[int, InspectedChunk] = {}
        for live, positions, local in split_rows(self._segments, rows):
            for position, row in zip(positions, local, strict=True):
                found[int(position)] = _inspected(live, int(row))
        return [found[position] for position in range(len(rows))]

    def contents(self) -> Iterator[tuple[DocumentKey, str]]:
        for live, _, local in split_rows(self._segments, self._live):
            segment = live.segment
            for row in local:
                yield segment.key(int(segment.row_documents[row])), segment.contents[int(row)]

    def rows_without_vector(self) -> int:
        missing = 0
        for live, _, local in split_rows(self._segments, self._live):
            segment = live.segment
            usable = segment.has_vector[local]
            if len(segment.vectors):
                usable = usable & segment.vectors[local].any(axis=1)
            missing += int(np.count_nonzero(~usable))
        return missing


def _live_rows(live: LiveSegment) -> NDArray[np.int64]:
    rows = np.arange(live.segment.rows, dtype=np.int64) if live.live_rows is None else np.flatnonzero(live.live_rows)
    return rows + live.first_row


def _inspected(live: LiveSegment, local: int) -> InspectedChunk:
    segment = live.segment
    return InspectedChunk(
        row=local + live.first_row,
        title=segment.titles[int(segment.row_documents[local])],
        heading=segment.headings[local],
        content=segment.contents[local],
    )
