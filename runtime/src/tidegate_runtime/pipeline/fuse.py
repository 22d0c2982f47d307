"""Fusion: several opinions about one pool of candidates become one score each.

Pure arithmetic on arrays that are aligned with the pool, so it knows nothing of indexes or requests.
Invariants: a member stands in the pool once; a score that is not finite is a missing score and never
reaches an order; the order of the inputs changes nothing, not by one bit (sums are taken in the order
of names); fused scores are rounded to 1e-6 before they are compared and ties go by chunk id.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate_runtime.ports import Scores

Members = NDArray[np.int64]
Mask = NDArray[np.bool_]
Ids = NDArray[np.str_]
Positions = NDArray[np.intp]

DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Signal:
    """What one input says about each member of a pool.

    `scores` holds NaN where the input has no score. `reach` marks the members that the input could
    have scored at all; elsewhere its weight goes to the other inputs. None = it reaches every member.
    """

    name: str
    weight: float
    scores: Scores
    reach: Mask | None = None


def pooled(lists: Sequence[Members]) -> Members:
    """Return the union of candidate lists: each member once, ascending."""
    members = np.sort(np.concatenate(lists))
    first = np.ones(len(members), dtype=np.bool_)
    np.not_equal(members[1:], members[:-1], out=first[1:])
    return members[first]


def aligned(pool: Members, members: Members, scores: Scores) -> Scores:
    """Place the scores of `members`, a subset of `pool`, onto it; NaN elsewhere. A repeated member keeps its best."""
    placed = np.full(len(pool), np.nan)
    np.fmax.at(placed, np.searchsorted(pool, members), only_finite(scores))
    return placed


def only_finite(scores: Scores) -> Scores:
    """Return `scores` with NaN for everything that is not a number or infinite."""
    return np.where(np.isfinite(scores), scores, np.nan)


def min_max(scores: Scores) -> Scores:
    """Bring the finite scores to 0..1; missing ones count 0, and so does every score when all are alike."""
    finite = np.isfinite(scores)
    if not finite.any():
        return np.zeros(len(scores))
    low, high = float(scores[finite].min()), float(scores[finite].max())
    span = high - low
    if not 0 < span < np.inf:
        return np.zeros(len(scores))
    return np.where(finite, (np.where(finite, scores, low) - low) / span, 0.0)


def weighted(signals: Sequence[Signal], size: int) -> Scores:
    """Return the weighted mean of min-max scores, in 0..1.

    The mean is taken over the inputs that reach a member, which is how the weight of an absent one is
    redistributed. Where all of those weigh 0, the score is 0.
    """
    total, mass = np.zeros(size), np.zeros(size)
    for signal in sorted(signals, key=lambda signal: signal.name):
        weights = signal.weight if signal.reach is None else np.where(signal.reach, signal.weight, 0.0)
        total += weights * min_max(signal.scores)
        mass += weights
    mean: Scores = np.divide(total, mass, out=np.zeros(size), where=mass > 0)
    return np.round(mean, DECIMALS)


def reciprocal_rank(signals: Sequence[Signal], size: int, *, k: int) -> Scores:
    """Return the sum of weight / (k + rank). Scores of these signals are ranks from 1; NaN adds nothing."""
    total = np.zeros(size)
    for signal in sorted(signals, key=lambda signal: signal.name):
        ranked = np.isfinite(signal.scores)
        total[ranked] += signal.weight / (k + signal.scores[ranked])
    return np.round(total, DECIMALS)


def best_first(scores: Scores, ids_of: Callable[[Positions], Ids]) -> Positions:
    """Return positions by descending score. Ids are asked for only where scores are equal: there they decide."""
    order = np.argsort(-scores, kind="stable")
    equal = scores[order][1:] == scores[order][:-1]
    if equal.any():
        tied = np.zeros(len(scores), dtype=np.bool_)
        tied[1:] |= equal
        tied[:-1] |= equal
        members = order[tied]
        order[tied] = members[np.lexsort((ids_of(members), -scores[members]))]
    return order
