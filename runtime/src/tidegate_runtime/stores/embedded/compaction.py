"""Which segments to merge: a pure policy.

Sizes grow geometrically: a segment stays alone while it is larger than all smaller ones together,
so there are about log2(chunks / 256) segments and each chunk is rewritten about as often while an
index grows. Small ones count as 256 chunks: merging them costs nothing worth avoiding. A segment
that is full is left alone until a part of it is dead, which bounds the memory of a merge.
"""

from collections.abc import Sequence
from dataclasses import dataclass

SMALL_CHUNKS = 256
FULL_CHUNKS = 65_536
DEAD_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Load:
    """How much of a segment is in use."""

    stored_chunks: int
    live_chunks: int
    dead_documents: bool


def plan_merges(loads: Sequence[Load], *, purge: bool = False) -> list[list[int]]:
    """Return groups of segments, by position, that should become one segment each.

    `purge` also rewrites every segment that holds a dead document.
    """
    tail = _tail(loads)
    stale = [[position] for position, load in enumerate(loads) if _is_stale(load, purge=purge) and position not in tail]
    return [tail, *stale] if tail else stale


def _is_stale(load: Load, *, purge: bool) -> bool:
    if purge:
        return load.dead_documents
    return load.stored_chunks - load.live_chunks > DEAD_SHARE * load.stored_chunks


def _tail(loads: Sequence[Load]) -> list[int]:
    """Return the smallest segments up to the largest one that is no larger than all before it together."""
    positions = [position for position, load in enumerate(loads) if load.live_chunks < FULL_CHUNKS]
    positions.sort(key=lambda position: (loads[position].live_chunks, position))
    end, total = 0, 0
    for index, position in enumerate(positions):
        size = max(loads[position].live_chunks, SMALL_CHUNKS)
        total += size
        if index and size <= total - size and total <= 2 * FULL_CHUNKS:
            end = index + 1
    return sorted(positions[:end])
