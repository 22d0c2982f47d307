"""The best of many scores: by score, ties by chunk id.

A lower bound of the k-th best score comes from the maxima of k or more disjoint groups; only what
reaches it is sorted. That costs two passes over the scores, where partitioning all of them costs
thirty.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_LANES = 1024


def best(
    scores: NDArray[np.float64],
    *,
    top_k: int,
    above: float,
    tie_breakers: Callable[[NDArray[np.int64]], NDArray[np.uint64]],
) -> NDArray[np.int64]:
    """Return the positions of the `top_k` highest scores greater than `above`, best first.

    `tie_breakers` returns the numbers of given positions; among equal scores the lowest comes first.
    """
    bound = _lower_bound(scores, top_k=top_k)
    found = np.flatnonzero(scores >= bound if bound > above else scores > above)
    kept = scores[found]
    if len(found) > top_k:
        found = found[kept >= np.partition(kept, len(kept) - top_k)[len(kept) - top_k]]
        kept = scores[found]
    order = np.lexsort((tie_breakers(found), -kept))[:top_k]
    return found[order]


def _lower_bound(scores: NDArray[np.float64], *, top_k: int) -> float:
    lanes = max(_LANES, 4 * top_k)
    depth = len(scores) // lanes
    if depth < 2:
        return -np.inf
    maxima = scores[: depth * lanes].reshape(depth, lanes).max(axis=0)
    return float(np.partition(maxima, lanes - top_k)[lanes - top_k])
