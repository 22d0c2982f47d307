"""The lexical guard: when it speaks up, and what it does to weights."""

import math

import numpy as np
import pytest

from tidegate_runtime.pipeline.guard import guarded, query_is_unknown

HYBRID = {"lexical": 0.4, "dense": 0.6}


@pytest.mark.parametrize(
    ("coverage", "unknown"),
    [([], True), ([0.1, 0.29, 0.0], True), ([0.1, 0.3, 0.0], False), ([math.nan, 0.9], False), ([math.nan], True)],
)
def test_a_query_is_unknown_when_no_first_hit_covers_enough_of_it(coverage: list[float], unknown: bool) -> None:
    assert query_is_unknown(np.array(coverage, dtype=np.float64)) is unknown


def test_a_guarded_leg_keeps_five_percent_and_the_rest_goes_to_the_others() -> None:
    assert guarded(HYBRID, ["lexical"]) == pytest.approx({"lexical": 0.05, "dense": 0.95})


def test_the_others_share_in_their_own_proportion() -> None:
    weights = guarded({"lexical": 0.5, "dense": 0.3, "tags": 0.2}, ["lexical"])
    assert weights == pytest.approx({"lexical": 0.05, "dense": 0.57, "tags": 0.38})


def test_several_lexical_legs_are_guarded_together() -> None:
    weights = guarded({"words": 0.3, "titles": 0.1, "dense": 0.6}, ["words", "titles"])
    assert weights == pytest.approx({"words": 0.0375, "titles": 0.0125, "dense": 0.95})


@pytest.mark.parametrize(
    "weights",
    [
        {"lexical": 0.05, "dense": 0.95},
        {"lexical": 0.0, "dense": 1.0},
        {"lexical": 1.0, "dense": 0.0},
        {"lexical": 0.4},
    ],
)
def test_a_low_share_or_one_that_nobody_could_take_over_is_kept(weights: dict[str, float]) -> None:
    assert guarded(weights, ["lexical"]) == weights
