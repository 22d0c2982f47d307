"""What falls away under a pipeline that serves: API server, node, processes, a definition; and an operator too many."""

import json
import time
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.e2e.asking import ask
from tests.e2e.cluster import Cluster, Namespace, condition
from tests.e2e.conftest import new_namespace
from tests.e2e.reading import ReadError
from tests.e2e.serving import (
    KNOWLEDGE_BASE,
    PIPELINE,
    change,
    documents,
    failed,
    pods_of,
    serve,
    serving_release,
    under_load,
    wait_until_serving,
)
from tests.e2e.wait import wait_for

AWAY_SECONDS = 60
BACK_SECONDS = 180
# How long a Service goes on sending people to a pod whose front door was killed.
UNNOTICED_SECONDS = 5
DEFINITION = "crd/routingpolicies.tidegate.dev"
OPERATOR = "deployment/tidegate-operator"

pytestmark = [pytest.mark.usefixtures("operator"), pytest.mark.alone]


@pytest.fixture(scope="module")
def served(operator: Namespace) -> Iterator[Namespace]:
    """Return a namespace in which two pods serve the quickstart; every test leaves it serving."""
    with new_namespace(operator.cluster, "outages") as created:
        serve(created, replicas=2)
        yield created


@pytest.fixture
def lab(cluster: Cluster) -> Cluster:
    """Return the cluster where its parts can be broken one by one."""
    if cluster.provider != "lab":
        pytest.skip(f"parts of the cluster are broken in the lab only, this is {cluster.provider}")
    return cluster


def container(pod: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the status of one container of a pod."""
    status = pod["status"]
    listed = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    return next(dict(each) for each in listed if each["name"] == name)


def all_ready(namespace: Namespace, *, but: frozenset[str] = frozenset()) -> bool:
    """Return whether every container of ours runs and is ready, and none of them is among the ids `but`."""
    pods = namespace.items("pods", labels="app.kubernetes.io/name=tidegate")
    statuses = [
        each
        for pod in pods
        for each in [*pod["status"].get("initContainerStatuses", []), *pod["status"].get("containerStatuses", [])]
    ]
    return bool(statuses) and all(each["ready"] and each["containerID"] not in but for each in statuses)


def container_ids(namespace: Namespace) -> frozenset[str]:
    """Return the ids of all our containers."""
    pods = namespace.items("pods", labels="app.kubernetes.io/name=tidegate")
    kinds = ("initContainerStatuses", "containerStatuses")
    return frozenset(
        each.get("containerID", "") for pod in pods for kind in kinds for each in pod["status"].get(kind, [])
    )


def wait_until_ready(namespace: Namespace, *, but: frozenset[str] = frozenset()) -> None:
    """Wait until every container of ours runs and is ready."""
    wait_for(
        lambda: all_ready(namespace, but=but),
        what="every container is ready",
        timeout_seconds=BACK_SECONDS,
        describe=lambda: namespace.diagnosis("pods"),
    )


def state_of(address: str) -> dict[str, Any]:
    """Return what the sidecar at an address says of itself; needs no API server."""
    with urllib.request.urlopen(f"http://{address}:8081/v1/state", timeout=5) as answer:
        return dict(json.load(answer))


def wait_until_warm(namespace: Namespace) -> None:
    """Wait until every pod holds what it should answer from: after a restart its old Ready stands for a moment."""
    addresses = [str(pod["status"]["podIP"]) for pod in pods_of(namespace, "retrieval")]

    def told(address: str) -> dict[str, Any]:
        try:
            return state_of(address)
        except OSError as error:
            return {"ready": False, "error": str(error)}

    wait_for(
        lambda: all(told(address)["ready"] for address in addresses),
        what="every sidecar is ready",
        timeout_seconds=BACK_SECONDS,
        describe=lambda: str([told(address) for address in addresses]),
    )


def wait_for_answer(namespace: Namespace, text: str) -> None:
    """Wait until an edit is in the answers."""
    with namespace.port_forward("service/docs", 8080) as url:
        wait_for(
            lambda: text in ask(url, "when is high water").text,
            what=f"{text} is in the answers",
            timeout_seconds=BACK_SECONDS,
            describe=lambda: namespace.diagnosis(KNOWLEDGE_BASE),
        )


def built(namespace: Namespace) -> list[tuple[str, int, str]]:
    """Return name, content generation and date of every index revision."""
    found = namespace.get(KNOWLEDGE_BASE)
    assert found is not None
    return [(each["name"], each["contentGeneration"], each["readyAt"]) for each in found["status"]["revisions"]]


def test_nobody_notices_that_the_api_server_is_away_for_a_minute(
    served: Namespace, lab: Cluster, images: Mapping[str, str]
) -> None:
    addresses = [str(pod["status"]["podIP"]) for pod in pods_of(served, "retrieval")]
    with under_load(served, images) as load:
        lab.fault("control-plane", "stop")
        stopped = time.monotonic()
        try:
            wait_for(
                lambda: all("API server is out of reach" in state_of(address)["message"] for address in addresses),
                what="the sidecars say that the API server is away",
                timeout_seconds=AWAY_SECONDS,
                describe=lambda: str([state_of(address) for address in addresses]),
            )
            wait_for(
                lambda: time.monotonic() - stopped > AWAY_SECONDS,
                what="a minute has passed",
                timeout_seconds=2 * AWAY_SECONDS,
                describe=str,
            )
            assert all(state_of(address)["ready"] for address in addresses)
        finally:
            lab.fault("control-plane", "start")

        served.apply(documents(tides_md="# Tides\n\nHigh water is at 15:40."))
        wait_for_answer(served, "15:40")
        wait_until_serving(served)
        wait_for(
            lambda: not any(state_of(address)["message"] for address in addresses),
            what="the sidecars no longer say that the API server is away",
            timeout_seconds=AWAY_SECONDS,
            describe=lambda: str([state_of(address) for address in addresses]),
        )
        assert failed(load) == []


def test_a_node_that_restarts_serves_again_from_the_index_it_had(
    served: Namespace, operator: Namespace, lab: Cluster
) -> None:
    before, ids = built(served), container_ids(served)
    lab.fault("reboot", "1")
    wait_until_ready(served, but=ids)
    wait_until_ready(operator)

    with served.port_forward("service/docs", 8080) as url:
        assert ask(url, "when is high water").documents == ["tides.md"]
    wait_until_serving(served)
    assert built(served) == before
    # The indexer works again, too.
    served.apply(documents(tides_md="# Tides\n\nHigh water is at 16:20."))
    wait_for_answer(served, "16:20")


def test_any_process_may_be_killed_under_load(
    served: Namespace, operator: Namespace, lab: Cluster, images: Mapping[str, str]
) -> None:
    wait_until_ready(served)
    wait_until_ready(operator)
    release = serving_release(served)
    first, second = pods_of(served, "retrieval")
    victims = [
        (operator, pods_of(operator, "operator")[0], "operator"),
        (served, pods_of(served, "indexer")[0], "indexer"),
        (served, first, "runtime"),
        (served, second, "sidecar"),
    ]
    killed: dict[str, float] = {}
    with under_load(served, images) as load:
        for namespace, pod, name in victims:
            identity = str(container(pod, name)["containerID"])
            killed[name] = time.time()
            lab.fault("kill-container", "1", identity.removeprefix("containerd://"))
            wait_until_ready(namespace, but=frozenset({identity}))
            wait_until_warm(served)  # one at a time: the next kill must meet a pod that has come back
        answers = load.answers()

    answered = [each for each in answers if "error" not in each]
    assert {each["release"] for each in answered} == {release}
    assert all(len(each["revisions"]) == 1 for each in answered)
    # A pod without a front door refuses connections until its Service has noticed; nothing is answered with an error.
    refused = [each for each in answers if "error" in each]
    assert [each for each in refused if not -1 < each["at"] - killed["sidecar"] < UNNOTICED_SECONDS] == []
    assert [each for each in refused if each["error"][0].isdigit()] == []


def test_a_definition_that_is_deleted_and_put_back_needs_no_restart_by_hand(
    served: Namespace, operator: Namespace
) -> None:
    definition = operator.get(DEFINITION)
    assert definition is not None
    (pod,) = pods_of(operator, "operator")
    name, restarts = pod["metadata"]["name"], container(pod, "operator")["restartCount"]
    operator.kubectl("delete", DEFINITION)
    try:
        operator.wait_for(
            f"pods/{name}",
            lambda found: container(found, "operator")["restartCount"] > restarts,
            what="has ended and is started again",
        )
        assert "tidegate crds | kubectl apply" in operator.kubectl("logs", name, "--previous")
        with served.port_forward("service/docs", 8080) as url:
            assert ask(url, "when is high water").status == 200
    finally:
        kept = {"labels", "annotations", "name"}
        metadata = {key: value for key, value in definition["metadata"].items() if key in kept}
        clean = {key: value for key, value in definition.items() if key != "status"} | {"metadata": metadata}
        operator.kubectl("create", "-f", "-", stdin=json.dumps(clean))

    wait_until_ready(operator)
    policy = {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "RoutingPolicy",
        "metadata": {"name": "docs"},
        "spec": {"pipeline": {"name": "docs"}},
    }
    served.apply(policy)
    served.wait_for(
        "routingpolicies/docs",
        lambda found: found.get("status", {}).get("phase") == "Idle",
        what="is obeyed again",
        timeout_seconds=BACK_SECONDS,
    )
    served.kubectl("delete", "routingpolicies/docs")
    wait_until_serving(served)


def test_a_second_operator_is_noticed_and_both_come_to_one_decision(served: Namespace, operator: Namespace) -> None:
    operator.kubectl("scale", OPERATOR, "--replicas=2")
    try:
        wait_for(
            lambda: len(said(operator, "another operator is at work here")) == 2,
            what="both operators say that the other is there",
            timeout_seconds=BACK_SECONDS,
            describe=lambda: operator.diagnosis(OPERATOR),
        )
        revisions = {each[0] for each in built(served)}
        change(served, KNOWLEDGE_BASE, {"chunking": {"sizeTokens": 128}})
        served.wait_for_condition(KNOWLEDGE_BASE, "Ready", timeout_seconds=BACK_SECONDS)
        wait_until_serving(served)
        assert len({each[0] for each in built(served)} - revisions) == 1
        found = served.get(PIPELINE)
        assert found is not None
        assert not condition(found, "Stalled")
    finally:
        operator.kubectl("scale", OPERATOR, "--replicas=1")
    operator.wait_for(OPERATOR, lambda found: found["status"].get("replicas") == 1, what="is one again")


def said(operator: Namespace, text: str) -> list[str]:
    """Return the operators' pods whose logs hold a text."""
    pods = [str(pod["metadata"]["name"]) for pod in pods_of(operator, "operator")]
    return [pod for pod in pods if text in _log(operator, pod)]


def _log(namespace: Namespace, pod: str) -> str:
    try:
        return namespace.logs(pod)
    except ReadError:  # it has not started yet
        return ""
