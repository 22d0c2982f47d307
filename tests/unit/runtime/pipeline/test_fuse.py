"""Fusion on arrays: known answers by hand, and properties that hold for any scores."""

import itertools
import math
import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate_runtime.pipeline.fuse import (
    Signal,
    aligned,
    best_first,
    min_max,
    only_finite,
    pooled,
    reciprocal_rank,
    weighted,
)

any_score = st.floats(allow_nan=True, allow_infinity=True, width=64)
weight = st.floats(min_value=0, max_value=1)


@st.composite
def signals_over_a_pool(draw: st.DrawFn) -> tuple[list[Signal], int]:
    size = draw(st.integers(min_value=1, max_value=20))
    count = draw(st.integers(min_value=1, max_value=4))
    signals = []
    for number in range(count):
        scores = np.array(draw(st.lists(any_score, min_size=size, max_size=size)))
        reach = draw(st.none() | st.lists(st.booleans(), min_size=size, max_size=size).map(np.array))
        signals.append(Signal(f"leg-{number}", draw(weight), scores, reach))
    return signals, size


def as_ranks(signals: list[Signal]) -> list[Signal]:
    """Return the signals with the rank of each finite score in place of the score."""
    return [
        Signal(
            each.name,
            each.weight,
            np.where(np.isfinite(each.scores), np.argsort(np.argsort(-each.scores)) + 1.0, np.nan),
        )
        for each in signals
    ]


def leg(name: str, share: float, *scores: float) -> Signal:
    return Signal(name, share, np.array(scores))


def ids(*names: str) -> np.ndarray:
    return np.array(names, dtype=np.str_)


def ordered(scores: np.ndarray, keys: np.ndarray) -> list[int]:
    return best_first(scores, lambda positions: keys[positions]).tolist()


def test_weighted_fusion_is_the_weighted_mean_of_min_max_scores() -> None:
    lexical, dense = leg("lexical", 0.4, 10.0, 5.0, 0.0), leg("dense", 0.6, 0.2, 0.6, 0.4)
    assert weighted([lexical, dense], 3).tolist() == [0.4, 0.8, 0.3]


def test_a_missing_member_has_no_share_of_a_leg() -> None:
    lexical, dense = leg("lexical", 0.5, 3.0, 1.0, math.nan), leg("dense", 0.5, math.nan, 0.9, 0.1)
    assert weighted([lexical, dense], 3).tolist() == [0.5, 0.5, 0.0]


def test_a_leg_whose_scores_are_all_alike_says_nothing() -> None:
    assert weighted([leg("lexical", 0.4, 7.0, 7.0), leg("dense", 0.6, 0.1, 0.9)], 2).tolist() == [0.0, 0.6]


def test_the_weight_of_an_absent_leg_goes_to_the_others() -> None:
    assert weighted([leg("dense", 0.6, 0.1, 0.9)], 2).tolist() == [0.0, 1.0]


def test_a_member_out_of_a_legs_reach_is_judged_by_the_other_legs() -> None:
    lexical = leg("lexical", 0.4, 0.0, 8.0, 8.0)
    dense = Signal("dense", 0.6, np.array([0.9, 0.1, math.nan]), np.array([True, True, False]))
    assert weighted([lexical, dense], 3).tolist() == [0.6, 0.4, 1.0]


def test_weights_of_zero_leave_the_order_to_the_ids() -> None:
    scores = weighted([leg("lexical", 0.0, 1.0, 2.0), leg("dense", 0.0, 2.0, 1.0)], 2)
    assert scores.tolist() == [0.0, 0.0]
    assert ordered(scores, ids("b", "a")) == [1, 0]


def test_reciprocal_rank_counts_from_one() -> None:
    scores = reciprocal_rank([leg("lexical", 1.0, 1, 2), leg("dense", 0.5, math.nan, 1)], 2, k=60)
    assert scores.tolist() == [round(1 / 61, 6), round(1 / 62 + 0.5 / 61, 6)]


def test_scores_that_are_not_finite_count_as_missing_in_any_order() -> None:
    named = {"a": 0.9, "b": math.nan, "c": 0.1, "d": math.inf, "e": -math.inf}
    orders = set()
    for names in itertools.permutations(named):
        scores = weighted([leg("dense", 1.0, *(named[name] for name in names))], 5)
        assert np.isfinite(scores).all()
        orders.add("".join(names[position] for position in ordered(scores, ids(*names))))
    assert orders == {"abcde"}


def test_ids_are_asked_for_only_where_scores_are_equal() -> None:
    asked = []

    def ids_of(positions: np.ndarray) -> np.ndarray:
        asked.extend(positions.tolist())
        return ids("d", "b", "c", "a")[positions]

    assert best_first(np.array([0.5, 0.9, 0.5, 0.1]), ids_of).tolist() == [1, 2, 0, 3]
    assert sorted(asked) == [0, 2]


def test_a_repeated_member_stands_in_the_pool_once_with_its_best_score() -> None:
    first, second = np.array([3, 1, 3]), np.array([2, 1])
    pool = pooled([first, second])
    assert pool.tolist() == [1, 2, 3]
    assert aligned(pool, first, np.array([0.2, 0.5, 0.8])).tolist()[::2] == [0.5, 0.8]


def test_empty_lists_make_an_empty_pool() -> None:
    assert pooled([np.empty(0, dtype=np.int64)]).tolist() == []
    assert weighted([Signal("lexical", 1.0, np.empty(0))], 0).tolist() == []


def test_two_legs_with_ties_give_one_order_however_they_are_shuffled() -> None:
    legs = {"lexical": ["a", "b", "c"], "dense": ["b", "a", "d"]}
    chance = random.Random(7)
    outcomes = set()
    for _ in range(100):
        members = ["a", "b", "c", "d"]
        chance.shuffle(members)
        ranks = [
            leg(name, 0.5, *(ranked.index(member) + 1 if member in ranked else math.nan for member in members))
            for name, ranked in chance.sample(sorted(legs.items()), 2)
        ]
        scored = [leg(signal.name, signal.weight, *-signal.scores) for signal in ranks]
        for scores in (weighted(scored, 4), reciprocal_rank(ranks, 4, k=60)):
            order = ordered(scores, ids(*members))
            outcomes.add((tuple(members[position] for position in order), tuple(scores[order].tolist())))
    assert {order for order, _ in outcomes} == {("a", "b", "c", "d")}
    assert len(outcomes) == 2


def test_ten_thousand_candidates_are_fused() -> None:
    chance = np.random.default_rng(3)
    signals = [Signal(name, 0.5, chance.random(10_000)) for name in ("dense", "lexical")]
    keys = np.char.mod("%05d", np.arange(10_000))
    for scores in (weighted(signals, 10_000), reciprocal_rank(signals, 10_000, k=60)):
        assert sorted(ordered(scores, keys)) == list(range(10_000))


@given(signals_over_a_pool())
def test_weighted_scores_stay_between_zero_and_one(case: tuple[list[Signal], int]) -> None:
    signals, size = case
    scores = weighted(signals, size)
    assert ((scores >= 0) & (scores <= 1)).all()


@given(signals_over_a_pool(), st.randoms(use_true_random=False))
def test_the_order_of_the_legs_changes_no_bit(case: tuple[list[Signal], int], chance: random.Random) -> None:
    signals, size = case
    shuffled = chance.sample(signals, len(signals))
    assert weighted(signals, size).tobytes() == weighted(shuffled, size).tobytes()
    ranks, mixed = as_ranks(signals), as_ranks(shuffled)
    assert reciprocal_rank(ranks, size, k=60).tobytes() == reciprocal_rank(mixed, size, k=60).tobytes()


@given(signals_over_a_pool(), st.randoms(use_true_random=False))
def test_the_order_of_the_members_changes_no_result(case: tuple[list[Signal], int], chance: random.Random) -> None:
    signals, size = case
    moved = np.array(chance.sample(range(size), size))
    keys = np.char.mod("%02d", np.arange(size))
    others = [
        Signal(each.name, each.weight, each.scores[moved], None if each.reach is None else each.reach[moved])
        for each in signals
    ]
    scores, again = weighted(signals, size), weighted(others, size)
    assert scores[moved].tobytes() == again.tobytes()
    assert keys[ordered(scores, keys)].tolist() == keys[moved][ordered(again, keys[moved])].tolist()


@given(st.lists(any_score, max_size=30))
def test_min_max_is_bounded_keeps_the_order_and_ignores_what_is_missing(values: list[float]) -> None:
    scores = np.array(values, dtype=np.float64)
    scaled = min_max(scores)
    finite = np.isfinite(scores)
    assert ((scaled >= 0) & (scaled <= 1)).all()
    assert (scaled[~finite] == 0).all()
    order = np.argsort(scores[finite], kind="stable")
    assert (np.diff(scaled[finite][order]) >= 0).all()


@given(st.lists(any_score, max_size=10))
def test_only_finite_scores_are_left(values: list[float]) -> None:
    kept = only_finite(np.array(values, dtype=np.float64))
    assert not np.isinf(kept).any()
    assert np.isnan(kept).sum() == sum(not math.isfinite(value) for value in values)
