"""Measures are bounded and agree with an independent implementation on any list."""

import importlib.util
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

SOURCE = Path(__file__).resolve().parents[3] / "benchmarks" / "metrics_ir.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("metrics_ir", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


metrics_ir: Any = load()

rankings = st.lists(st.none() | st.sampled_from("abcdefghij"), max_size=30)
judgements = st.dictionaries(st.sampled_from("abcdefghijxyz"), st.integers(min_value=-1, max_value=4), max_size=13)
depths = st.integers(min_value=1, max_value=20)


def reference(ranking: list[str | None], gains: dict[str, int], k: int) -> dict[str, float | None]:
    """The same measures by vectors over the whole judged universe, written apart from the code under test."""
    seen: list[str] = []
    for document in ranking:
        if document is not None and document not in seen:
            seen.append(document)
    universe = sorted({*seen, *gains})
    gain = np.array([max(0, gains.get(document, 0)) for document in universe], dtype=float)
    rank = np.array([seen.index(document) + 1 if document in seen else np.inf for document in universe])
    inside, relevant = rank <= k, gain > 0
    if not relevant.any():
        return {"ndcg": None, "recall": None, "reciprocal_rank": None}
    discount = np.zeros(len(universe))
    discount[inside] = 1 / np.log2(1 + rank[inside])
    ideal = np.sort(gain)[::-1][:k] @ (1 / np.log2(np.arange(2, 2 + min(k, len(gain)))))
    return {
        "ndcg": float(gain @ discount / ideal),
        "recall": float((inside & relevant).sum() / relevant.sum()),
        "reciprocal_rank": float((inside / rank)[relevant].max()),
    }


@settings(max_examples=1000)
@given(rankings, judgements, depths)
def test_measures_are_bounded_and_agree_with_the_reference(
    ranking: list[str | None], gains: dict[str, int], k: int
) -> None:
    for name, expected in reference(ranking, gains, k).items():
        figure = getattr(metrics_ir, name)(ranking, gains, k=k)
        assert figure == (None if expected is None else pytest.approx(expected))
        assert figure is None or 0 <= figure <= 1


def test_duplicates_and_missing_ids_raise_nothing() -> None:
    gold = {"A": 1, "B": 1}
    assert metrics_ir.recall(["A", "A", None], gold, k=10) == 0.5
    assert metrics_ir.ndcg(["A", "A", None], gold, k=10) == metrics_ir.ndcg(["A"], gold, k=10)


@given(rankings, judgements, depths)
def test_a_second_mention_changes_no_figure(ranking: list[str | None], gains: dict[str, int], k: int) -> None:
    for name in ("ndcg", "recall", "reciprocal_rank"):
        measure = getattr(metrics_ir, name)
        assert measure(ranking + ranking, gains, k=k) == measure(ranking, gains, k=k)


def test_gains_are_linear_and_graded() -> None:
    figure = metrics_ir.ndcg(["b", "a"], {"a": 4, "b": 1}, k=10)
    assert figure == pytest.approx((1 + 4 / math.log2(3)) / (4 + 1 / math.log2(3)))


def test_a_query_without_judgements_stays_out_of_the_mean() -> None:
    assert metrics_ir.mean([1.0, None, 0.0]) == 0.5
    assert metrics_ir.mean([None]) is None
