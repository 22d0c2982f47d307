"""Releases on real pods under load: a share of users, everybody, and back in one step, by each of the ways."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.cluster import Namespace, run
from tests.e2e.serving import (
    EXAMPLES,
    KNOWLEDGE_BASE,
    apply_quickstart,
    change,
    documents,
    under_load,
    wait_until_serving,
)
from tests.e2e.wait import wait_for

ROLLOUT_SECONDS = 240
BIN = Path(sys.executable).parent
POLICY = "routingpolicies/docs"
SMALLER_CHUNKS = {"chunking": {"sizeTokens": 64}}

pytestmark = pytest.mark.usefixtures("operator")


def rag(namespace: Namespace, *arguments: str) -> str:
    """Run the plugin as kubectl does."""
    command = (str(BIN / "kubectl-rag"), "--namespace", namespace.name, *arguments)
    path = namespace.cluster.path
    return run("env", f"KUBECONFIG={namespace.cluster.kubeconfig}", *command, path=path, timeout_seconds=90)


def serve_with_policy(namespace: Namespace) -> str:
    """Serve a first release under a policy that asks a person at 30 %, and return its name."""
    paragraphs = "\n\n".join(f"Paragraph {n} about high water, tides and the harbour of the town." for n in range(60))
    namespace.apply(documents(tides_md=f"# Tides\n\n{paragraphs}"))
    apply_quickstart(namespace)
    namespace.kubectl("apply", "-f", str(EXAMPLES / "rollout"))
    wait_until_serving(namespace)
    return str(wait_for_policy(namespace, "is idle", phase="Idle")["status"]["stable"])


def with_a_candidate(namespace: Namespace, changed: Mapping[str, Any] = SMALLER_CHUNKS) -> str:
    """Change the knowledge base, wait until the policy asks a person, and return the candidate's name."""
    change(namespace, KNOWLEDGE_BASE, changed)
    paused = wait_for_policy(namespace, "waits for a person", phase="Paused", stepName="look")
    assert paused["status"]["share"] == "30%"
    return str(paused["status"]["candidate"])


def wait_for_policy(namespace: Namespace, what: str, **status: object) -> dict[str, Any]:
    """Wait until the policy's status has these members."""
    return namespace.wait_for(
        POLICY,
        lambda found: all(found.get("status", {}).get(name) == value for name, value in status.items()),
        what=what,
        timeout_seconds=ROLLOUT_SECONDS,
    )


@pytest.mark.parametrize(
    "changed",
    [{"chunking": {"sizeTokens": 64}}, {"embedding": {"model": "use-m3"}}],
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

        assert "done" in rag(namespace, "promote", "docs")
        wait_for_policy(namespace, "has promoted", stable=candidate, phase="Idle")
        assert "done" in rag(namespace, "rollback", "docs", "--reason", "test")
        back = namespace.wait_for(
            POLICY,
            lambda found: found["status"]["stable"] == stable and not found["status"]["routing"].get("pending"),
            what="says that every pod serves the earlier release",
            timeout_seconds=ROLLOUT_SECONDS,
        )
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
