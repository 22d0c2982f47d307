"""Vectors as signed bytes with one scale per revision.

The scale is a constant of the embedder, so the bytes of a chunk do not depend on what else is
stored. Integer dot products are exact: the same bits on any processor, thread count or layout.
"""

import numpy as np
from numpy.typing import NDArray

_LEVELS = 127


def quantise(vectors: NDArray[np.floating], *, scale: float) -> NDArray[np.int8]:
    """Return the stored form of `vectors`; components beyond `scale` are cut to it."""
    levels = np.rint(vectors.astype(np.float64) * (_LEVELS / scale))
    return np.clip(levels, -_LEVELS, _LEVELS).astype(np.int8)


def cosine_of_dots(dots: NDArray[np.float64], *, scale: float) -> NDArray[np.float64]:
    """Return the cosines that integer dot products stand for."""
    return dots * (scale / _LEVELS) ** 2
