"""Unit vectors, and what becomes of rows that have no direction.

An encoder may give zeros or values that are not finite (half precision, a bad fine-tune, text it
knows nothing of). Such a row is marked as NaN throughout, never stored and never compared: a NaN in
a ranking gives an arbitrary order. Every row is brought to length one by itself, so that its bits
do not depend on the rows beside it.
"""

import numpy as np

from tidegate_runtime.errors import UnusableVectorError
from tidegate_runtime.ports import FloatVector


def unit_vector(raw: FloatVector) -> FloatVector:
    """Return `raw` at length one, or NaN throughout when it is zero or not finite."""
    wide = raw.astype(np.float64)
    length = float(np.sqrt(np.sum(wide * wide)))
    if not np.isfinite(length) or length == 0.0:
        return np.full(raw.shape, np.nan, dtype=np.float32)
    return (wide / length).astype(np.float32)


def usable(vector: FloatVector) -> bool:
    """Whether a row made by `unit_vector` has a direction."""
    return bool(np.isfinite(vector[0]))


def require_usable(vector: FloatVector, *, model: str) -> FloatVector:
    """Return `vector`.

    Raises:
        UnusableVectorError: it has no direction.
    """
    if not usable(vector):
        raise UnusableVectorError(f"model {model} gave a zero vector or one that is not finite; search without its leg")
    return vector
