"""Going back, by each of the ways and against resistance: dying operators, GitOps tools that insist, keys without the right."""

import contextlib
import hashlib
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.e2e.asking import ask
from tests.e2e.cluster import CommandError, Namespace
from tests.e2e.rollouts import (
    POLICY,
    ROLLOUT_SECONDS,
    SMALLER_CHUNKS,
    promote,
    rag,
    serve_with_policy,
    wait_for_policy,
    wait_until_back,
    with_a_candidate,
)
from tests.e2e.serving import (
    KNOWLEDGE_BASE,
    PIPELINE,
    apply_quickstart,
    change,
    documents,
    serving_release,
    under_load,
    wait_until_serving,
)

KILLS_MAX = 5
INSISTS_SECONDS = 20

pytestmark = pytest.mark.usefixtures("operator")


# --- the ways back ---------------------------------------------------------------------------------


def annotated_by_hand(namespace: Namespace) -> None:
    """Write the order as interface.md describes it, without the plugin."""
    policy = namespace.get(POLICY)
    assert policy is not None
    order = {
        "id": "by-hand-1",
        "verb": "rollback",
        "uid": policy["metadata"]["uid"],
        "issuedAt": datetime.now(UTC).isoformat(timespec="seconds"),
        "by": "night-shift",
        "reason": "answers got worse",
    }
    namespace.kubectl("annotate", POLICY, f"tidegate.dev/request={json.dumps(order)}", "--overwrite")


def by_the_plugin(namespace: Namespace) -> None:
    """Order it by kubectl; while nobody is there to answer the plugin may time out, and the order stands."""
    with contextlib.suppress(CommandError):
        rag(namespace, "rollback", "docs", "--reason", "answers got worse", "--timeout", "60")


def by_the_earlier_yaml(namespace: Namespace) -> None:
    """Put the earlier spec back, as `git revert` does."""
    change(namespace, KNOWLEDGE_BASE, {"chunking": None})


@contextlib.contextmanager
def operators_die(namespace: Namespace) -> Iterator[list[float]]:
    """Kill the operator's pod at random moments during the block; yields when."""
    kills: list[float] = []
    stop = threading.Event()

    def kill() -> None:
        pause = 0.2
        while len(kills) < KILLS_MAX and not stop.wait(pause):
            with contextlib.suppress(CommandError):
                namespace.cluster.kubectl(
                    *("-n", "tidegate-system", "delete", "pod", "-l", "app.kubernetes.io/name=tidegate"),
                    *("--grace-period=0", "--force", "--wait=false"),
                )
            kills.append(time.time())
            pause = random.uniform(0.5, 8)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield kills
    finally:
        stop.set()
        killer.join()


def promoted(namespace: Namespace) -> tuple[str, str]:
    """Serve, bring another index to everybody, and return the release before and the new one."""
    stable = serve_with_policy(namespace)
    candidate = with_a_candidate(namespace)
    promote(namespace)
    wait_for_policy(namespace, "has promoted", stable=candidate, phase="Idle")
    return stable, candidate


# --- stories ---------------------------------------------------------------------------------------


@pytest.mark.alone
@pytest.mark.parametrize("way", [annotated_by_hand, by_the_plugin, by_the_earlier_yaml])
def test_each_way_back_works_under_load_while_operators_die(
    namespace: Namespace, images: Mapping[str, str], way: Callable[[Namespace], None]
) -> None:
    stable, bad = promoted(namespace)
    with under_load(namespace, images) as load:
        with operators_die(namespace) as kills:
            way(namespace)
            back = wait_until_back(namespace, stable)
            obeyed = time.time()
        answers = load.answers_after(obeyed)
    assert kills
    assert [each for each in answers if "error" in each] == []
    assert all(len(each["revisions"]) == 1 for each in answers)
    assert {each["release"] for each in answers} == {stable, bad}
    assert [each for each in answers if each["at"] > obeyed and each["release"] == bad] == []
    if way is not by_the_earlier_yaml:
        orders = [each for each in back["status"]["requests"] if each["verb"] == "rollback"]
        assert [(each["result"], each["to"]) for each in orders] == [("done", "")]
        assert bad in rag(namespace, "status", "docs").split("rejected")[1]


def test_a_tool_that_applies_the_bad_spec_every_second_does_not_bring_it_back(
    namespace: Namespace, images: Mapping[str, str]
) -> None:
    stable, bad = promoted(namespace)
    stop = threading.Event()

    def insist() -> None:
        turn = 0
        while not stop.wait(1):
            turn += 1
            patch = {"metadata": {"annotations": {"sync": str(turn)}}, "spec": SMALLER_CHUNKS}
            namespace.kubectl("patch", "kb", "docs", "--type=merge", "-p", json.dumps(patch))

    tool = threading.Thread(target=insist)
    with under_load(namespace, images) as load:
        tool.start()
        try:
            assert "done" in rag(namespace, "rollback", "docs")
            wait_until_back(namespace, stable)
            obeyed = time.time()
            while time.time() < obeyed + INSISTS_SECONDS:
                status = (namespace.get(POLICY) or {})["status"]
                assert (status["stable"], status.get("candidate", "")) == (stable, "")
        finally:
            stop.set()
            tool.join()
        answers = load.answers_after(time.time())
    assert [each for each in answers if "error" in each] == []
    assert [each for each in answers if each["at"] > obeyed and each["release"] == bad] == []
    assert "rejected" in rag(namespace, "status", "docs")


def test_two_knowledge_bases_that_change_at_once_make_one_release(namespace: Namespace) -> None:
    paragraphs = "\n\n".join(f"Paragraph {n} about high water, tides and the harbour of the town." for n in range(400))
    large = documents(**{f"large{n}_md": f"# Part {n}\n\n{paragraphs}" for n in range(6)})
    small = documents(tides_md="# Tides\n\nHigh water is at 14:05.")
    namespace.apply({**large, "metadata": {"name": "large"}}, {**small, "metadata": {"name": "small"}})
    namespace.apply(*(knowledge_base(name) for name in ("large", "small")), pipeline_over_both())
    wait_until_serving(namespace)
    first = serving_release(namespace)

    namespace.apply(*(knowledge_base(name, size_tokens=64) for name in ("large", "small")))
    found = namespace.wait_for(
        PIPELINE,
        lambda found: found["status"]["servingRelease"] != first,
        what="serves another release",
        timeout_seconds=ROLLOUT_SECONDS,
    )
    releases = {release["name"]: release for release in found["status"]["releases"]}
    assert releases.keys() == {first, found["status"]["servingRelease"]}
    before, after = (
        {index["knowledgeBase"]: index["revision"] for index in releases[name]["indexRevisions"]}
        for name in (first, found["status"]["servingRelease"])
    )
    assert before.keys() == after.keys() == {"large", "small"}
    assert all(before[base] != after[base] for base in before)


def test_a_forced_release_needs_a_key_with_that_scope(namespace: Namespace) -> None:
    namespace.apply(documents(tides_md="# Tides\n\nHigh water is at 14:05."), keys(), policy_that_waits())
    apply_quickstart(namespace)
    change(namespace, PIPELINE, {"auth": {"anonymous": None, "apiKeys": {"secretRef": {"name": "keys"}}}})
    wait_until_serving(namespace)
    change(namespace, KNOWLEDGE_BASE, SMALLER_CHUNKS)
    status = wait_for_policy(namespace, "waits for a person", phase="Paused")["status"]

    with namespace.port_forward("service/docs", 8080) as url:

        def forced(release: str, key: str = "may-force") -> tuple[int, str]:
            answer = ask(url, "when is high water", key=key, x_tidegate_release=release)
            return answer.status, answer.body.get("release") or answer.body["error"]["code"]

        assert forced("candidate") == (200, status["candidate"])
        assert forced(status["candidate"]) == (200, status["candidate"])
        assert forced("stable") == (200, status["stable"])
        assert forced("candidate", "may-ask") == (403, "forbidden")
        assert forced("rel-0000000000") == (503, "release_unavailable")
        assert ask(url, "when is high water", key="may-ask").body["release"] == status["stable"]

    told = rag(namespace, "explain", "docs", "when is high water", "--key", "may-force", "--release", "candidate")
    assert f"release     {status['candidate']} (candidate)" in told
    assert "BM25" in told
    assert "14:05" not in told


# --- objects ---------------------------------------------------------------------------------------


def knowledge_base(name: str, *, size_tokens: int = 200) -> dict[str, Any]:
    """Return a knowledge base over the ConfigMap of the same name."""
    source = {"name": "docs", "type": "text", "from": {"configMap": {"name": name}}}
    spec = {"sources": [source], "chunking": {"sizeTokens": size_tokens}}
    return {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "KnowledgeBase",
        "metadata": {"name": name},
        "spec": spec,
    }


def pipeline_over_both() -> dict[str, Any]:
    """Return a pipeline over both knowledge bases."""
    return {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "RetrievalPipeline",
        "metadata": {"name": "docs"},
        "spec": {"knowledgeBases": [{"name": "large"}, {"name": "small"}], "auth": {"anonymous": {}}},
    }


def policy_that_waits() -> dict[str, Any]:
    """Return a policy whose candidate serves nobody until somebody promotes it."""
    return {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "RoutingPolicy",
        "metadata": {"name": "docs"},
        "spec": {"pipeline": {"name": "docs"}, "rollout": {"steps": [{"name": "look", "pause": {}}]}},
    }


def keys() -> dict[str, Any]:
    """Return a Secret with a key that may force releases and see scores, and one that may only ask."""
    scopes = {"may-force": ["query", "force", "explain"], "may-ask": ["query"]}
    entries = {
        key: json.dumps(
            {"sha256": hashlib.sha256(key.encode()).hexdigest(), "tenants": ["acme"], "scopes": scopes[key]}
        )
        for key in scopes
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": entries}
