"""The lexical guard: how far BM25 is believed, and what that does to weights."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_runtime.pipeline.guard import NEUTRAL_DECISIVENESS, best_coverage, decisiveness, guarded

HYBRID = {"lexical": 0.4, "dense": 0.6}


def shares(weights: dict[str, float]) -> dict[str, float]:
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


@pytest.mark.parametrize(
    ("coverage", "best"),
    [([], 0.0), ([0.1, 0.29, 0.0], 0.29), ([0.1, 0.3, 0.0], 0.3), ([math.nan, 0.9], 0.9), ([math.nan], 0.0)],
)
def test_the_best_of_the_first_hits_counts(coverage: list[float], best: float) -> None:
    assert best_coverage(np.array(coverage, dtype=np.float64)) == best


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([8.0, 7.0, 6.0, 5.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 0.1], 0.75),
        ([8.0, 8.0, 8.0, 8.0, 8.0], 0.0),
        ([8.0, 1.0, 1.0, 1.0], NEUTRAL_DECISIVENESS),
        ([], NEUTRAL_DECISIVENESS),
        ([0.0] * 6, NEUTRAL_DECISIVENESS),
    ],
    ids=["a clear winner", "all alike", "too short to tell", "nothing", "no score at all"],
)
def test_how_far_the_best_hit_stands_above_the_fifth_to_tenth(scores: list[float], expected: float) -> None:
    assert decisiveness(np.array(scores)) == pytest.approx(expected)


def test_under_the_floor_the_lexical_share_is_five_percent_and_the_rest_goes_to_the_others() -> None:
    weights = guarded(HYBRID, {"lexical": 0.9}, coverage=0.29)
    assert shares(weights) == pytest.approx({"lexical": 0.05, "dense": 0.95})


def test_a_list_of_neutral_decisiveness_weighs_as_configured() -> None:
    assert guarded(HYBRID, {"lexical": NEUTRAL_DECISIVENESS}, coverage=0.3) == HYBRID


@pytest.mark.parametrize(("decisive", "share"), [(1.0, 0.70), (0.6, 0.55), (0.0, 0.30)])
def test_a_clear_winner_weighs_more_and_near_ties_weigh_less(decisive: float, share: float) -> None:
    weights = guarded(HYBRID, {"lexical": decisive}, coverage=1.0)
    assert shares(weights)["lexical"] == pytest.approx(share, abs=0.01)


def test_the_others_share_in_their_own_proportion() -> None:
    weights = guarded({"lexical": 0.5, "dense": 0.3, "tags": 0.2}, {"lexical": 0.5}, coverage=0.0)
    assert shares(weights) == pytest.approx({"lexical": 0.05, "dense": 0.57, "tags": 0.38})


def test_several_lexical_legs_are_distrusted_together_and_trusted_each_by_its_own_list() -> None:
    weights = {"words": 0.3, "titles": 0.1, "dense": 0.6}
    distrusted = guarded(weights, {"words": 0.9, "titles": 0.9}, coverage=0.0)
    assert shares(distrusted) == pytest.approx({"words": 0.0375, "titles": 0.0125, "dense": 0.95})
    trusted = guarded(weights, {"words": 0.9, "titles": NEUTRAL_DECISIVENESS}, coverage=1.0)
    assert trusted["words"] > weights["words"]
    assert trusted["titles"] == weights["titles"]


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
    assert guarded(weights, {"lexical": 0.9}, coverage=0.1) == weights


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_more_decisive_list_never_means_a_smaller_lexical_share(first: float, second: float) -> None:
    low, high = sorted((first, second))
    share_low, share_high = (
        shares(guarded(HYBRID, {"lexical": each}, coverage=0.5))["lexical"] for each in (low, high)
    )
    assert 0.3 - 0.01 <= share_low <= share_high + 1e-9 <= 0.71
