"""Waiting returns what was found, and a time-out says what was waited for and what was seen."""

import pytest
from tests.e2e.cluster import condition_status
from tests.e2e.wait import ConditionTimeoutError, wait_for


def test_returns_what_the_condition_finds() -> None:
    assert wait_for(lambda: ["pod"], what="there is a pod", timeout_seconds=0, describe=str) == ["pod"]


def test_asks_again_until_the_condition_holds() -> None:
    answers = iter([None, "ready"])

    assert wait_for(lambda: next(answers), what="it is ready", timeout_seconds=5, describe=str) == "ready"


def test_a_timeout_names_the_condition_and_carries_the_diagnosis() -> None:
    with pytest.raises(ConditionTimeoutError, match="still not true that the pod is ready\nno such pod"):
        wait_for(lambda: None, what="the pod is ready", timeout_seconds=0, describe=lambda: "no such pod")


def test_a_diagnosis_is_made_only_when_time_is_up() -> None:
    def diagnose() -> str:
        raise AssertionError("asked for a diagnosis of a success")

    assert wait_for(lambda: True, what="all is well", timeout_seconds=0, describe=diagnose)


def test_a_condition_of_an_earlier_generation_does_not_count() -> None:
    ready = {"type": "Ready", "status": "True", "observedGeneration": 1}
    found = {"metadata": {"generation": 2}, "status": {"conditions": [ready]}}

    assert condition_status(found, "Ready") is None
    assert condition_status({**found, "metadata": {"generation": 1}}, "Ready") == "True"


def test_a_condition_without_a_generation_counts() -> None:
    found = {"metadata": {"generation": 2}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}

    assert condition_status(found, "Ready") == "False"
    assert condition_status(found, "Available") is None
