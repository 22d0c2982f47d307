"""The best of many scores: by score, ties by chunk id.

A lower bound of the k-th best score comes from the maxima of disjoint groups; only what reaches it
is sorted. That costs two passes over the scores, where partitioning all of them costs thirty.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tidegate_runtime.ports import Rows, Scores

_LANES = 1024


def lower_bound(scores: Scores, *, top_k: int) -> float:
    """Return a number that at least `top_k` of `scores` reach, -inf when there are not so many."""
    if len(scores) < top_k:
        return -np.inf
    lanes = max(_LANES, 4 * top_k)
    depth = len(scores) // lanes
    if depth > 1:
        scores = scores[: depth * lanes].reshape(depth, lanes).max(axis=0)
    return float(np.partition(scores, len(scores) - top_k)[len(scores) - top_k])


def order_best(
    rows: Rows, scores: Scores, *, tie_breakers: Callable[[Rows], NDArray[np.uint64]], top_k: int
) -> tuple[Rows, Scores]:
    """Return the `top_k` best of `rows`, best first; among equal scores the row with the lowest tie-breaker."""
    kept = scores >= lower_bound(scores, top_k=top_k)
    rows, scores = rows[kept], scores[kept]
    order = np.argsort(-scores)
    ranked = scores[order]
    if (ranked[1:] == ranked[:-1]).any():
        order = np.lexsort((tie_breakers(rows), -scores))
    order = order[:top_k]
    return rows[order], scores[order]
