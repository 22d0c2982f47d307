"""Rows without a direction are marked, never passed on as numbers."""

import numpy as np
import pytest

from tidegate_runtime.errors import UnusableVectorError
from tidegate_runtime.models.vectors import require_usable, unit_vector, usable


def test_a_vector_is_brought_to_length_one() -> None:
    assert unit_vector(np.array([3, 4], dtype=np.float32)).tolist() == pytest.approx([0.6, 0.8])


def test_large_components_do_not_overflow() -> None:
    assert unit_vector(np.array([3e30, 4e30], dtype=np.float32)).tolist() == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("raw", [[0, 0], [np.nan, 1], [np.inf, 1], [1, -np.inf]])
def test_a_zero_or_not_finite_vector_becomes_nan_throughout(raw: list[float]) -> None:
    vector = unit_vector(np.array(raw, dtype=np.float32))
    assert np.isnan(vector).all()
    assert not usable(vector)


def test_an_unusable_query_vector_is_an_error_that_names_the_model() -> None:
    with pytest.raises(UnusableVectorError, match="minilm"):
        require_usable(np.full(2, np.nan, dtype=np.float32), model="minilm")
