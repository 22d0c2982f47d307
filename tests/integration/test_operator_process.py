"""The operator's process against a real API server: starts, refuses to start, works, rests, dies and stops."""

import json
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.e2e.cluster import Cluster, Namespace, condition_status, reader_of
from tests.e2e.wait import wait_for
from tests.integration.conftest import install_definitions
from tests.integration.operator_process import running_operator, start_operator

Manifest = dict[str, Any]


def documents() -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "files"}, "data": {"a.md": "# A"}}


def knowledge_base(*, size_tokens: int = 200, **spec: object) -> Manifest:
    sources = [{"name": "files", "from": {"configMap": {"name": "files"}}}]
    return {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "KnowledgeBase",
        "metadata": {"name": "docs"},
        "spec": {"language": "en", "sources": sources, "chunking": {"sizeTokens": size_tokens}, **spec},
    }


def pipeline(**spec: object) -> Manifest:
    return {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "RetrievalPipeline",
        "metadata": {"name": "docs"},
        "spec": {"knowledgeBases": [{"name": "docs"}], "auth": {"anonymous": {}}, **spec},
    }


def reason(found: Mapping[str, Any], condition: str) -> str:
    listed = found.get("status", {}).get("conditions") or []
    return next((str(each["reason"]) for each in listed if each["type"] == condition), "")


def seen(found: Mapping[str, Any]) -> bool:
    return bool(found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"])


def versions(namespace: Namespace) -> dict[str, str]:
    """Return the resource version of everything in the namespace that the operator may write."""
    kinds = "knowledgebases,retrievalpipelines,routingpolicies,configmaps,secrets,services,serviceaccounts,deployments"
    more = "controllerrevisions,persistentvolumeclaims,roles,rolebindings,leases,poddisruptionbudgets,networkpolicies"
    items = json.loads(namespace.kubectl("get", f"{kinds},{more},events", "-o", "json"))["items"]
    return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["resourceVersion"] for each in items}


def settled(namespace: Namespace, *, quiet_seconds: float = 3.0) -> dict[str, str]:
    """Wait until nothing has been written for a while, and return the versions."""
    last: list[Any] = [versions(namespace), time.monotonic()]

    def quiet() -> bool:
        now = versions(namespace)
        if now != last[0]:
            last[:] = [now, time.monotonic()]
        return time.monotonic() - last[1] >= quiet_seconds

    wait_for(quiet, what="nothing is written any more", timeout_seconds=60, describe=lambda: str(last))
    found: dict[str, str] = last[0]
    return found


def writes(operator_metrics: str) -> str:
    with urllib.request.urlopen(operator_metrics, timeout=5) as answer:
        return str(answer.read().decode())


def test_it_makes_what_the_specs_ask_for_and_rests(namespace: Namespace, tmp_path: Path) -> None:
    with running_operator(namespace.cluster.kubeconfig, tmp_path, namespace.name) as operator:
        namespace.apply(documents(), knowledge_base(), pipeline())
        base = namespace.wait_for(
            "knowledgebase/docs", lambda found: seen(found) and found["status"]["desiredRevision"], what="is decided"
        )
        namespace.wait_for(
            "retrievalpipeline/docs", lambda found: reason(found, "Ready") == "WaitsForBuild", what="waits"
        )
        assert condition_status(base, "Accepted") == "True"
        for name in ("deployment/docs-indexer", "service/docs-indexer", "configmap/docs-routing", "lease/docs-indexer"):
            namespace.wait_for(name, lambda _: True, what="is there")
        revision = namespace.get(f"controllerrevision/{base['status']['desiredRevision']}")
        assert revision is not None

        before = settled(namespace)
        text = writes(operator.metrics)
        assert 'tidegate_reconcile_total{kind="KnowledgeBase",outcome="rest"}' in text
        namespace.kubectl("annotate", "knowledgebase/docs", "example.org/touched=yes")
        after = settled(namespace)
        assert {name for name in after if after[name] != before.get(name)} == {"KnowledgeBase/docs"}
        assert operator.stop() == 0


def test_it_writes_nothing_into_specs_and_adds_no_finalizer(namespace: Namespace, tmp_path: Path) -> None:
    with running_operator(namespace.cluster.kubeconfig, tmp_path, namespace.name):
        namespace.apply(documents(), knowledge_base(), pipeline())
        settled(namespace)
        for name in ("knowledgebase/docs", "retrievalpipeline/docs"):
            found = json.loads(namespace.kubectl("get", name, "-o", "json", "--show-managed-fields"))
            assert "finalizers" not in found["metadata"]
            ours = [each for each in found["metadata"]["managedFields"] if each["manager"] == "tidegate-operator"]
            assert {each.get("subresource") for each in ours} == {"status"}
            assert all("f:spec" not in each["fieldsV1"] and "f:metadata" not in each["fieldsV1"] for each in ours)


def test_killed_and_started_again_it_changes_nothing(namespace: Namespace, tmp_path: Path) -> None:
    with running_operator(namespace.cluster.kubeconfig, tmp_path, namespace.name) as operator:
        namespace.apply(documents(), knowledge_base(), pipeline())
        before = settled(namespace)
        operator.kill()
    with running_operator(namespace.cluster.kubeconfig, tmp_path, namespace.name):
        assert settled(namespace) == before


def test_two_operators_at_once_come_to_one_world(namespace: Namespace, tmp_path: Path) -> None:
    kubeconfig = namespace.cluster.kubeconfig
    with running_operator(kubeconfig, tmp_path, namespace.name), running_operator(kubeconfig, tmp_path, namespace.name):
        namespace.apply(documents(), knowledge_base(), pipeline())
        namespace.wait_for(
            "knowledgebase/docs", lambda found: seen(found) and found["status"]["desiredRevision"], what="is decided"
        )
        namespace.apply(knowledge_base(size_tokens=100))
        found = namespace.wait_for(
            "knowledgebase/docs", lambda each: seen(each) and len(each["status"]["revisions"]) == 2, what="has both"
        )
        before = settled(namespace)
        assert reason(found, "Stalled") == ""
        assert len([name for name in before if name.startswith("ControllerRevision/")]) == 2
        assert len([name for name in before if name.startswith("Event/")]) <= 4


def test_an_edit_is_answered_and_never_shown_ready_from_before(namespace: Namespace, tmp_path: Path) -> None:
    namespace.apply(documents(), knowledge_base())
    since = "2026-01-01T12:00:00Z"
    ready = {"type": "Ready", "status": "True", "reason": "InForce", "message": "", "lastTransitionTime": since}
    status = {"observedGeneration": 1, "conditions": [{**ready, "observedGeneration": 1}]}
    patch = json.dumps({"status": status})
    namespace.kubectl("patch", "knowledgebase/docs", "--subresource=status", "--type=merge", "-p", patch)
    namespace.apply(knowledge_base(embedding={"model": "no-such-model"}))

    watch, told = reader_of(namespace.cluster).watch("knowledgebase/docs", namespace=namespace.name), list[Manifest]()
    watching = threading.Thread(target=lambda: told.extend(event["object"] for event in watch.events()))
    watching.start()
    with running_operator(namespace.cluster.kubeconfig, tmp_path, namespace.name):
        found = namespace.wait_for("knowledgebase/docs", seen, what="is seen again")
    watch.close()
    watching.join()

    assert condition_status(found, "Accepted") == "False"
    assert reason(found, "Accepted") == "UnknownModel"
    assert {reason(each, "Ready") for each in told if not seen(each)} == {"InForce"}
    assert {condition_status(each, "Ready") for each in told if seen(each)} == {"False"}


def test_what_the_api_server_refuses_of_the_pod_is_said(namespace: Namespace, tmp_path: Path) -> None:
    bad = {"tolerations": [{"operator": "Sometimes"}]}
    with running_operator(namespace.cluster.kubeconfig, tmp_path, namespace.name):
        namespace.apply(documents(), knowledge_base(build=bad))
        found = namespace.wait_for(
            "knowledgebase/docs", lambda each: reason(each, "Accepted") == "RefusedByAPIServer", what="is refused"
        )
        message = next(each["message"] for each in found["status"]["conditions"] if each["type"] == "Accepted")
        assert "Sometimes" in message

        namespace.apply(knowledge_base())
        namespace.wait_for("deployment/docs-indexer", lambda _: True, what="is there")


@pytest.mark.parametrize("kind", ["Service", "ConfigMap"])
def test_a_name_that_is_taken_is_said_and_left_alone(namespace: Namespace, tmp_path: Path, kind: str) -> None:
    body: Manifest = {"spec": {"ports": [{"port": 80}]}} if kind == "Service" else {"data": {"mine": "yes"}}
    theirs = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "docs-indexer"}, **body}
    namespace.apply(theirs)
    before = namespace.get(f"{kind}/docs-indexer")
    with running_operator(namespace.cluster.kubeconfig, tmp_path, namespace.name):
        namespace.apply(documents(), knowledge_base())
        namespace.wait_for("knowledgebase/docs", lambda each: reason(each, "Stalled") == "NameConflict", what="says so")

    assert namespace.get(f"{kind}/docs-indexer") == before


def test_a_missing_source_is_found_when_it_comes(namespace: Namespace, tmp_path: Path) -> None:
    with running_operator(namespace.cluster.kubeconfig, tmp_path, namespace.name):
        namespace.apply(knowledge_base())
        namespace.wait_for(
            "knowledgebase/docs", lambda each: reason(each, "Accepted") == "ConfigMapMissing", what="says so"
        )
        namespace.apply(documents())
        namespace.wait_for("knowledgebase/docs", lambda each: reason(each, "Accepted") == "Accepted", what="goes on")


def test_the_largest_spec_is_frozen_once_or_refused_with_a_reason(namespace: Namespace, tmp_path: Path) -> None:
    tenants = [f"tenant-{number:04}-{'x' * 40}" for number in range(256)]
    sources = [
        {"name": f"s{number}", "from": {"configMap": {"name": "files"}}, "tenants": tenants} for number in range(32)
    ]
    with running_operator(namespace.cluster.kubeconfig, tmp_path, namespace.name):
        namespace.apply(documents())
        manifest = yaml.safe_dump({**knowledge_base(), "spec": {"language": "en", "sources": sources}})
        namespace.kubectl("apply", "--server-side", "-f", "-", stdin=manifest)
        namespace.wait_for("knowledgebase/docs", seen, what="is seen")
        settled(namespace)
        found = namespace.wait_for("knowledgebase/docs", seen, what="is seen still")
        frozen = namespace.items("controllerrevisions")
        if condition_status(found, "Accepted") == "True":
            assert [each["metadata"]["name"] for each in frozen] == [found["status"]["desiredRevision"]]
        else:
            assert condition_status(found, "Accepted") == "False"
            assert reason(found, "Accepted") not in ("", "Accepted")
            assert frozen == []


def test_without_a_resource_definition_it_ends_with_what_to_do(api_server: Cluster, tmp_path: Path) -> None:
    api_server.kubectl("delete", "crd", "routingpolicies.tidegate.dev")
    try:
        operator = start_operator(api_server.kubeconfig, tmp_path)
        assert operator.process.wait(timeout=60) == 1
        (said,) = [line for line in operator.messages() if line["level"] == "error"]
        assert "has no RoutingPolicy of tidegate.dev/v1alpha1" in str(said["error"])
        assert "crds.create" in str(said["error"])
    finally:
        install_definitions(api_server)


def test_without_a_right_it_ends_with_its_name(
    api_server: Cluster, namespace: Namespace, tmp_path: Path, kubeconfig_of: Callable[[str], Path]
) -> None:
    operator = start_operator(kubeconfig_of("nobody"), tmp_path, namespace.name)
    assert operator.process.wait(timeout=60) == 1
    (said,) = [line for line in operator.messages() if line["level"] == "error"]
    assert f"list knowledgebases.tidegate.dev in {namespace.name}" in str(said["error"])
    assert "rbac in the chart" in str(said["error"])


def test_without_an_image_it_names_the_variable(api_server: Cluster, tmp_path: Path) -> None:
    operator = start_operator(api_server.kubeconfig, tmp_path, settings={"TIDEGATE_RESYNC_SECONDS": "0"})
    assert operator.process.wait(timeout=60) == 2
    assert "TIDEGATE_RESYNC_SECONDS" in operator.log.read_text()


@pytest.fixture
def kubeconfig_of(namespace: Namespace, tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that makes a kubeconfig of a service account in the namespace."""

    def make(account: str) -> Path:
        namespace.kubectl("create", "serviceaccount", account)
        token = namespace.kubectl("create", "token", account).strip()
        config = yaml.safe_load(namespace.cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        path = tmp_path / f"{account}.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    return make
