"""From segments to the arrays of one merged segment, dead documents left out.

Nothing is analysed or embedded again: arrays are cut where documents are dead and put end to end.
Only what refers to something else is renumbered: rows and documents, dictionary entries, postings.
"""

from collections import defaultdict
from collections.abc import Sequence
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
    dictionaries = _merged_dictionaries(segments)
    return {
        **_row_arrays(runs),
        **_document_arrays(segments, runs, dictionaries=dictionaries),
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


def _merged_dictionaries(segments: Sequence[tuple[Segment, NDArray[np.bool_] | None]]) -> Dictionaries:
    """Return the entries that live documents use: what only dead ones used must not stay behind."""
    sources: set[str] = set()
    access: set[Access] = set()
    keywords: dict[str, set[str]] = defaultdict(set)
    for segment, live in segments:
        own, alive = segment.dictionaries, _live_documents(segment, live)
        sources |= {own.sources[number] for number in np.unique(segment.source_numbers[alive])}
        access |= {own.access[number] for number in np.unique(segment.access_numbers[alive])}
        for field, words in own.keywords.items():
            column = segment.column(field)
            keywords[field] |= {words[number] for number in np.unique(column.values[alive[column.documents]])}
    return Dictionaries(
        sources=tuple(sorted(sources)),
        access=tuple(sorted(access, key=Access.sort_key)),
        keywords={field: tuple(sorted(words)) for field, words in sorted(keywords.items())},
    )


def _document_arrays(
    segments: Sequence[tuple[Segment, NDArray[np.bool_] | None]], runs: Sequence[_Run], *, dictionaries: Dictionaries
) -> dict[str, Array]:
    arrays: dict[str, Array] = {"digests": np.concatenate([run.segment.digests[run.documents] for run in runs])}
    for name in _DOCUMENT_STRINGS:
        arrays |= _merged_strings(name, [(getattr(run.segment, name), run.documents) for run in runs])
    source_numbers, access_numbers = [], []
    for segment, live in segments:
        own, alive = segment.dictionaries, _live_documents(segment, live)
        source_numbers.append(_renumbering(own.sources, dictionaries.sources)[segment.source_numbers[alive]])
        access_numbers.append(_renumbering(own.access, dictionaries.access)[segment.access_numbers[alive]])
    arrays["source_numbers"] = np.concatenate(source_numbers)
    arrays["access_numbers"] = np.concatenate(access_numbers)
    return arrays


def _renumbering(old: Sequence[object], new: Sequence[object]) -> NDArray[np.int32]:
    """Return, for each old entry, its number among the new ones, -1 where it is gone."""
    numbers = {entry: number for number, entry in enumerate(new)}
    return np.array([numbers.get(entry, -1) for entry in old], dtype=np.int32)


def _new_numbers(live: Sequence[NDArray[np.bool_]]) -> list[NDArray[np.int32]]:
    """Return, for each old number of each segment, the new one, -1 where it is dead."""
    numbers, first = [], 0
    for flags in live:
        following = first + np.cumsum(flags, dtype=np.int32)
        numbers.append(np.where(flags, following - 1, np.int32(-1)))
        first = int(following[-1]) if len(following) else first
    return numbers


def _live_documents(segment: Segment, live: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    return np.ones(segment.documents, dtype=np.bool_) if live is None else live


def _posting_arrays(segments: Sequence[tuple[Segment, NDArray[np.bool_] | None]]) -> dict[str, Array]:
    """Merge postings group by group, a group being the postings of one term in one segment.

    Groups of equal terms keep the order of segments, and new rows grow with it, so that postings end
    up sorted by term, then row, without being sorted themselves.
    """
    live_rows = [_live_documents(segment, live)[segment.row_documents] for segment, live in segments]
    new_rows = _new_numbers(live_rows)
    rows = np.concatenate([new[s.posting_rows] for new, (s, _) in zip(new_rows, segments, strict=True)])
    counts = np.concatenate([segment.posting_counts for segment, _ in segments])
    keys = np.concatenate([segment.term_keys for segment, _ in segments])
    sizes = np.concatenate([np.diff(segment.term_starts) for segment, _ in segments])
    starts = np.cumsum(sizes) - sizes
    order = np.argsort(keys, kind="stable")
    keys, sizes, starts = keys[order], sizes[order], starts[order]
    new_starts = np.cumsum(sizes) - sizes
    places = np.repeat(starts - new_starts, sizes) + np.arange(len(rows))
    rows, counts = rows[places], counts[places]
    alive = rows >= 0
    # A group always has postings, which is what reduceat needs to add up each one alone.
    live_sizes = np.add.reduceat(alive, new_starts, dtype=np.int64) if len(rows) else sizes
    keys, live_sizes = keys[live_sizes > 0], live_sizes[live_sizes > 0]
    distinct, first_groups = np.unique(keys, return_index=True)
    ends_of_groups = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(live_sizes)])
    return {
        "term_keys": distinct,
        "term_starts": ends_of_groups[np.append(first_groups, len(keys))],
        "posting_rows": rows[alive],
        "posting_counts": narrow_counts(counts[alive]),
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
            words = dictionaries.keywords[field]
            values = [
                _renumbering(segment.dictionaries.keywords[field], words)[numbers]
                for (segment, _), numbers in zip(segments, values, strict=True)
            ]
        alive = documents >= 0
        arrays[f"column.{field}.documents"] = documents[alive].astype(np.int32)
        arrays[f"column.{field}.values"] = np.concatenate(values)[alive]
    return arrays
