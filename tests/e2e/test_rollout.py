"""Releases on real pods under load: a share of users, everybody, and back in one step, by each of the ways."""

import time
from collections.abc import Mapping
from typing import Any

import pytest
from tests.e2e.cluster import Namespace
from tests.e2e.rollouts import (
    POLICY,
    SMALLER_CHUNKS,
    promote,
    rag,
    serve_with_policy,
    wait_for_policy,
    wait_until_back,
    with_a_candidate,
)
from tests.e2e.serving import KNOWLEDGE_BASE, change, under_load
from tests.e2e.wait import wait_for

pytestmark = pytest.mark.usefixtures("operator")


@pytest.mark.parametrize(
    "changed",
    [SMALLER_CHUNKS, {"embedding": {"model": "use-m3"}}],
    ids=["a new index shares the pods", "a new model has pods of its own"],
)
def test_a_share_then_everybody_then_back(
    namespace: Namespace, images: Mapping[str, str], changed: dict[str, Any]
) -> None:
    stable = serve_with_policy(namespace)
    with under_load(namespace, images) as load:
        candidate = with_a_candidate(namespace, changed)
        assert candidate != stable
        assert "kubectl rag promote docs" in rag(namespace, "status", "docs")
        since = time.time()
        wait_for(
            lambda: len({each["session"] for each in load.answers() if each["at"] > since}) == 50,
            what="every user has asked",
            timeout_seconds=60,
            describe=lambda: namespace.diagnosis(POLICY),
        )
        shared = [each for each in load.answers() if each["at"] > since]
        moved = {each["session"] for each in shared if each.get("release") == candidate}
        stayed = {each["session"] for each in shared if each.get("release") == stable}
        assert moved.isdisjoint(stayed)
        assert 3 <= len(moved) <= 28

        promote(namespace)
        wait_for_policy(namespace, "has promoted", stable=candidate, phase="Idle")
        assert "done" in rag(namespace, "rollback", "docs", "--reason", "test")
        back = wait_until_back(namespace, stable)
        obeyed = time.time()
        assert back["status"]["lastRequest"]["result"] == "done"

        answers = load.answers_after(obeyed)
        assert [each for each in answers if "error" in each] == []
        assert all(len(each["revisions"]) == 1 for each in answers)
        assert any(each["release"] == candidate for each in answers)
        assert [each for each in answers if each["at"] > obeyed and each["release"] == candidate] == []


def test_a_candidate_that_was_taken_back_is_tried_again_only_when_a_person_says_so(namespace: Namespace) -> None:
    stable = serve_with_policy(namespace)
    with_a_candidate(namespace)
    assert "done" in rag(namespace, "abort", "docs")
    wait_for_policy(namespace, "serves stable alone", candidate="", stable=stable)

    for _ in range(10):
        change(namespace, KNOWLEDGE_BASE, SMALLER_CHUNKS)
        found = namespace.get(POLICY)
        assert found is not None
        assert found["status"].get("candidate", "") == ""
    assert "rejected" in rag(namespace, "status", "docs")

    assert "done" in rag(namespace, "retry", "docs")
    wait_for_policy(namespace, "tries again", phase="Paused")


def test_putting_the_earlier_spec_back_in_mid_rollout_is_a_clean_cancel(
    namespace: Namespace, images: Mapping[str, str]
) -> None:
    stable = serve_with_policy(namespace)
    with under_load(namespace, images) as load:
        with_a_candidate(namespace)
        change(namespace, KNOWLEDGE_BASE, {"chunking": None})
        wait_for_policy(namespace, "serves stable alone", candidate="", stable=stable, phase="Idle")
        answers = load.answers_after(time.time())
    assert [each for each in answers if "error" in each] == []
