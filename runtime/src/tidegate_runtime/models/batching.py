"""Which texts go through an encoder together, and to which shape they are padded. Pure.

On a CPU one text a run is both the fastest plan and the one whose bits cannot depend on the other
texts of a call (measured: a padded batch of 16 takes a third longer). On a GPU rows share a launch,
and both sides of the shape are rounded up to a few sizes: the arena keeps memory for every shape it
has seen, so free shapes would make it grow without end.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

GPU_LENGTHS = (16, 32, 64, 96, 128, 192, 256, 384, 512)
GPU_ROWS = (1, 8, 64)


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts of one run: their numbers, and the shape (rows, length) that they are padded to."""

    numbers: tuple[int, ...]
    rows: int
    length: int


def plan_single(lengths: Sequence[int]) -> list[Batch]:
    """Plan one run per text, in its own length."""
    return [Batch((number,), rows=1, length=length) for number, length in enumerate(lengths)]


def plan_bucketed(lengths: Sequence[int]) -> list[Batch]:
    """Plan runs of texts of similar length, shapes rounded up to the sizes above."""
    order = sorted(range(len(lengths)), key=lambda number: (lengths[number], number))
    batches = []
    for first in range(0, len(order), GPU_ROWS[-1]):
        numbers = tuple(order[first : first + GPU_ROWS[-1]])
        length = _rounded_up(lengths[numbers[-1]], GPU_LENGTHS)
        batches.append(Batch(numbers, rows=_rounded_up(len(numbers), GPU_ROWS), length=length))
    return batches


def _rounded_up(size: int, sizes: Sequence[int]) -> int:
    place = bisect_left(sizes, size)
    return sizes[place] if place < len(sizes) else size
