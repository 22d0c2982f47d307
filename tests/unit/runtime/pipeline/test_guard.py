"""The lexical guard: how far BM25 is believed, and what that does to weights."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_runtime.pipeline.guard import NEUTRAL_COVERAGE, best_coverage, guarded

HYBRID = {"lexical": 0.4, "dense": 0.6}


def shares(weights: dict[str, float]) -> dict[str, float]:
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


@pytest.mark.parametrize(
    ("coverage", "best"),
    [([], 0.0), ([0.1, 0.29, 0.0], 0.29), ([0.1, 0.3, 0.0], 0.3), ([math.nan, 0.9], 0.9), ([math.nan], 0.0)],
)
def test_the_best_of_the_first_hits_counts(coverage: list[float], best: float) -> None:
    assert best_coverage(np.array(coverage, dtype=np.float64)) == best


def test_under_the_floor_the_lexical_share_is_five_percent_and_the_rest_goes_to_the_others() -> None:
    assert shares(guarded(HYBRID, ["lexical"], coverage=0.29)) == pytest.approx({"lexical": 0.05, "dense": 0.95})


def test_at_neutral_coverage_weights_are_as_configured() -> None:
    assert guarded(HYBRID, ["lexical"], coverage=NEUTRAL_COVERAGE) == HYBRID


def test_a_hit_that_covers_every_word_weighs_more_than_meaning() -> None:
    assert shares(guarded(HYBRID, ["lexical"], coverage=1.0)) == pytest.approx({"lexical": 4 / 7, "dense": 3 / 7})


def test_the_others_share_in_their_own_proportion() -> None:
    weights = guarded({"lexical": 0.5, "dense": 0.3, "tags": 0.2}, ["lexical"], coverage=0.0)
    assert shares(weights) == pytest.approx({"lexical": 0.05, "dense": 0.57, "tags": 0.38})


def test_several_lexical_legs_are_guarded_together() -> None:
    weights = guarded({"words": 0.3, "titles": 0.1, "dense": 0.6}, ["words", "titles"], coverage=0.0)
    assert shares(weights) == pytest.approx({"words": 0.0375, "titles": 0.0125, "dense": 0.95})


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
    assert guarded(weights, ["lexical"], coverage=0.1) == weights


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_coverage_never_means_a_smaller_lexical_share(first: float, second: float) -> None:
    low, high = sorted((first, second))
    share_low, share_high = (shares(guarded(HYBRID, ["lexical"], coverage=each))["lexical"] for each in (low, high))
    assert 0.05 - 1e-9 <= share_low <= share_high + 1e-9 <= 0.58
