"""Fusion: several opinions about one pool of candidates become one score each.

Pure arithmetic on arrays that are aligned with the pool, so it knows nothing of indexes or requests.
Invariants: a member stands in the pool once; a score that is not finite is a missing score and never
reaches an order; the order of the inputs changes nothing, not by one bit (sums are taken in the order
of names); fused scores are rounded to 1e-6 before they are compared and ties go by chunk id.
"""

from collections.abc import Sequence
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
    return np.unique(np.concatenate(lists)) if lists else np.empty(0, dtype=np.int64)


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


def reciprocal_rank(signals: Sequence[Signal], ids: Ids, *, k: int) -> Scores:
    """Return the sum of weight / (k + rank), ranks counted from 1; a missing score has no rank."""
    total = np.zeros(len(ids))
    for signal in sorted(signals, key=lambda signal: signal.name):
        present = int(np.isfinite(signal.scores).sum())
        ranked = best_first(only_finite(signal.scores), ids)[:present]
        total[ranked] += signal.weight / (k + np.arange(1, present + 1))
    return np.round(total, DECIMALS)


def best_first(scores: Scores, ids: Ids) -> Positions:
    """Return positions by descending score; ties by id, missing scores last."""
    return np.lexsort((ids, -scores))
