"""From segments to the arrays of one merged segment, dead documents left out.

Nothing is analysed or embedded again: arrays are cut where documents are dead and put end to end.
Only what refers to something else is renumbered: rows and documents, dictionary entries, postings.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate_runtime.stores.embedded.building import narrow_counts
from tidegate_runtime.stores.embedded.format import Array
from tidegate_runtime.stores.embedded.segment import Access, Dictionaries, Segment, Strings

_ROW_ARRAYS = ("chunk_numbers", "has_vector", "ordinals", "starts", "ends", "lengths", "truncated")
_ROW_STRINGS = ("contents", "headings")
_DOCUMENT_STRINGS = ("document_ids", "content_hashes", "titles", "metadata")


@dataclass(frozen=True, slots=True)
class _Run:
    """Live documents [first, last) of a segment, with their rows."""

    segment: Segment
    first: int
    last: int

    @property
    def documents(self) -> slice:
        return slice(self.first, self.last)

    @property
    def rows(self) -> slice:
        return slice(int(self.segment.first_rows[self.first]), int(self.segment.first_rows[self.last]))


def merge_arrays(segments: Sequence[tuple[Segment, NDArray[np.bool_] | None]]) -> dict[str, Array]:
    """Return the arrays of one segment with the live documents of `segments`, in their order.

    With each segment comes which of its documents are live; None = all.
    """
    runs = [run for segment, live in segments for run in _runs(segment, live)]
    dictionaries = _merged_dictionaries([segment for segment, _ in segments])
    return {
        **_row_arrays(runs),
        **_document_arrays(runs, dictionaries=dictionaries),
        **_posting_arrays(segments),
        **_columns(segments, dictionaries=dictionaries),
        "dictionaries": np.frombuffer(dictionaries.encode(), dtype=np.uint8),
    }


def _runs(segment: Segment, live: NDArray[np.bool_] | None) -> list[_Run]:
    if live is None:
        return [_Run(segment, 0, segment.documents)]
    edges = np.flatnonzero(np.diff(live.astype(np.int8), prepend=0, append=0))
    return [_Run(segment, int(first), int(last)) for first, last in edges.reshape(-1, 2)]


def _row_arrays(runs: Sequence[_Run]) -> dict[str, Array]:
    sizes = np.concatenate([np.diff(run.segment.first_rows[run.first : run.last + 1]) for run in runs])
    arrays: dict[str, Array] = {
        name: np.concatenate([getattr(run.segment, name)[run.rows] for run in runs]) for name in _ROW_ARRAYS
    }
    for name in _ROW_STRINGS:
        arrays |= _merged_strings(name, [(getattr(run.segment, name), run.rows) for run in runs])
    return {
        **arrays,
        "vectors": _vectors(runs),
        "row_documents": np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
        "first_rows": np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)]),
    }


def _vectors(runs: Sequence[_Run]) -> NDArray[np.int8]:
    if not any(len(run.segment.vectors) for run in runs):
        return runs[0].segment.vectors[:0]
    dimension = runs[0].segment.vectors.shape[1]
    return np.concatenate(
        [
            run.segment.vectors[run.rows]
            if len(run.segment.vectors)
            else np.zeros((run.rows.stop - run.rows.start, dimension), dtype=np.int8)
            for run in runs
        ]
    )


def _merged_strings(name: str, pieces: Sequence[tuple[Strings, slice]]) -> dict[str, Array]:
    lengths = np.concatenate([np.diff(strings.offsets[part.start : part.stop + 1]) for strings, part in pieces])
    blocks = [strings.block[strings.offsets[part.start] : strings.offsets[part.stop]] for strings, part in pieces]
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
    return {f"{name}.block": np.concatenate(blocks), f"{name}.offsets": offsets}


def _merged_dictionaries(segments: Sequence[Segment]) -> Dictionaries:
    every = [segment.dictionaries for segment in segments]
    access = {entry for dictionaries in every for entry in dictionaries.access}
    fields = sorted({field for dictionaries in every for field in dictionaries.keywords})
    return Dictionaries(
        sources=tuple(sorted({source for dictionaries in every for source in dictionaries.sources})),
        access=tuple(sorted(access, key=Access.sort_key)),
        keywords={
            field: tuple(sorted({word for dictionaries in every for word in dictionaries.keywords[field]}))
            for field in fields
        },
    )


def _document_arrays(runs: Sequence[_Run], *, dictionaries: Dictionaries) -> dict[str, Array]:
    arrays: dict[str, Array] = {"digests": np.concatenate([run.segment.digests[run.documents] for run in runs])}
    for name in _DOCUMENT_STRINGS:
        arrays |= _merged_strings(name, [(getattr(run.segment, name), run.documents) for run in runs])
    sources = {source: number for number, source in enumerate(dictionaries.sources)}
    access = {entry: number for number, entry in enumerate(dictionaries.access)}
    arrays["source_numbers"] = np.concatenate(
        [
            _renumber([sources[s] for s in run.segment.dictionaries.sources])(run.segment.source_numbers[run.documents])
            for run in runs
        ]
    )
    arrays["access_numbers"] = np.concatenate(
        [
            _renumber([access[a] for a in run.segment.dictionaries.access])(run.segment.access_numbers[run.documents])
            for run in runs
        ]
    )
    return arrays


def _renumber(numbers: Sequence[int]) -> Callable[[NDArray[np.int32]], NDArray[np.int32]]:
    table = np.array(numbers, dtype=np.int32)
    return lambda old: table[old]


def _new_numbers(live: Sequence[NDArray[np.bool_]]) -> list[NDArray[np.int64]]:
    """Return, for each old number of each segment, the new one, -1 where it is dead."""
    numbers, first = [], 0
    for flags in live:
        following = first + np.cumsum(flags, dtype=np.int64)
        numbers.append(np.where(flags, following - 1, -1))
        first = int(following[-1]) if len(following) else first
    return numbers


def _live_documents(segment: Segment, live: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    return np.ones(segment.documents, dtype=np.bool_) if live is None else live


def _posting_arrays(segments: Sequence[tuple[Segment, NDArray[np.bool_] | None]]) -> dict[str, Array]:
    live_rows = [_live_documents(segment, live)[segment.row_documents] for segment, live in segments]
    new_rows = _new_numbers(live_rows)
    rows = np.concatenate([new[s.posting_rows] for new, (s, _) in zip(new_rows, segments, strict=True)])
    counts = np.concatenate([segment.posting_counts for segment, _ in segments])
    keys = np.concatenate([segment.term_keys for segment, _ in segments])
    sizes = np.concatenate([np.diff(segment.term_starts) for segment, _ in segments])
    starts = np.cumsum(sizes) - sizes
    # Groups of equal terms keep the order of segments, and new rows grow with it: sorted by term, then row.
    order = np.argsort(keys, kind="stable")
    keys, sizes, starts = keys[order], sizes[order], starts[order]
    places = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))
    rows, counts, keys = rows[places], counts[places], np.repeat(keys, sizes)
    alive = rows >= 0
    rows, counts, keys = rows[alive], counts[alive], keys[alive]
    distinct, firsts = np.unique(keys, return_index=True)
    return {
        "term_keys": distinct,
        "term_starts": np.append(firsts, len(keys)).astype(np.int64),
        "posting_rows": rows.astype(np.int32),
        "posting_counts": narrow_counts(counts),
    }


def _columns(
    segments: Sequence[tuple[Segment, NDArray[np.bool_] | None]], *, dictionaries: Dictionaries
) -> dict[str, Array]:
    new_documents = _new_numbers([_live_documents(segment, live) for segment, live in segments])
    arrays: dict[str, Array] = {}
    for field in segments[0][0].fields:
        columns = [segment.column(field) for segment, _ in segments]
        documents = np.concatenate([new[column.documents] for new, column in zip(new_documents, columns, strict=True)])
        values = [column.values for column in columns]
        if field in dictionaries.keywords:
            numbers = {word: number for number, word in enumerate(dictionaries.keywords[field])}
            values = [
                _renumber([numbers[word] for word in segment.dictionaries.keywords[field]])(column)
                for (segment, _), column in zip(segments, values, strict=True)
            ]
        alive = documents >= 0
        arrays[f"column.{field}.documents"] = documents[alive].astype(np.int32)
        arrays[f"column.{field}.values"] = np.concatenate(values)[alive]
    return arrays
