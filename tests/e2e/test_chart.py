"""The chart on a real cluster: what a release needs, what an upgrade leaves alone, what uninstalling keeps."""

import pytest
from tests.e2e.asking import text_of
from tests.e2e.chart import Chart
from tests.e2e.cluster import CommandError, Namespace
from tests.e2e.serving import pods_of

DEFINITIONS = ("knowledgebases.tidegate.dev", "retrievalpipelines.tidegate.dev", "routingpolicies.tidegate.dev")
KNOWLEDGE_BASE = {
    "apiVersion": "tidegate.dev/v1alpha1",
    "kind": "KnowledgeBase",
    "metadata": {"name": "kept"},
    "spec": {"sources": [{"name": "docs", "from": {"configMap": {"name": "documents"}}}]},
}


NAMESPACED = ("crds.create=false", "rbac.aggregate=false", "rbac.scope=namespaces")


@pytest.mark.alone
def test_uninstalling_keeps_definitions_and_objects_and_installing_again_takes_them_up(
    operator: Namespace, chart: Chart, namespace: Namespace
) -> None:
    chart.uninstall(operator.name)
    try:
        for definition in DEFINITIONS:
            assert namespace.get(f"crd/{definition}"), definition
        namespace.apply(KNOWLEDGE_BASE)
        assert operator.get("deployment/tidegate-operator") is None
    finally:
        chart.install(operator.name)

    namespace.wait_for(
        "knowledgebase/kept",
        lambda found: found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"],
        what="is observed by the operator that was installed again",
        timeout_seconds=180,
    )


@pytest.mark.alone
def test_an_upgrade_replaces_the_operator(operator: Namespace, chart: Chart) -> None:
    (before,) = pods_of(operator, "operator")
    chart.install(operator.name, "operator.logLevel=debug")
    try:
        names = [pod["metadata"]["name"] for pod in pods_of(operator, "operator")]

        assert len(names) == 1
        assert names != [before["metadata"]["name"]]
    finally:
        chart.install(operator.name)


@pytest.mark.usefixtures("operator")
def test_an_operator_without_rights_is_not_available_and_says_what_it_lacks(chart: Chart, namespace: Namespace) -> None:
    chart.install(namespace.name, *NAMESPACED, "rbac.create=false", wait=False)
    found = namespace.wait_for(
        "deployment/tidegate-operator",
        lambda _: "service account may not: get knowledgebases" in namespace.diagnosis("pods"),
        what="says which right it lacks",
        timeout_seconds=180,
    )

    assert found["status"].get("availableReplicas", 0) == 0


@pytest.mark.usefixtures("operator")
def test_a_namespaced_release_serves_its_namespace_with_no_right_outside(chart: Chart, namespace: Namespace) -> None:
    chart.install(namespace.name, *NAMESPACED)
    ask = ("auth", "can-i", "list", "knowledgebases", f"--as=system:serviceaccount:{namespace.name}:tidegate-operator")

    assert namespace.kubectl(*ask).strip() == "yes"
    with pytest.raises(CommandError, match="no"):
        namespace.cluster.kubectl("--namespace", "default", *ask)


def test_the_operators_metrics_are_behind_their_service(operator: Namespace) -> None:
    with operator.port_forward("service/tidegate-operator-metrics", 8081) as url:
        assert "tidegate_" in text_of(f"{url}/metrics")


@pytest.mark.usefixtures("operator")
def test_editors_and_viewers_of_a_namespace_get_our_kinds(namespace: Namespace) -> None:
    namespace.kubectl("create", "rolebinding", "editors", "--clusterrole=edit", "--user=ed")
    namespace.kubectl("create", "rolebinding", "viewers", "--clusterrole=view", "--user=vera")

    assert namespace.kubectl("auth", "can-i", "create", "knowledgebases", "--as=ed").strip() == "yes"
    assert namespace.kubectl("auth", "can-i", "get", "retrievalpipelines", "--as=vera").strip() == "yes"
    with pytest.raises(CommandError, match="no"):
        namespace.kubectl("auth", "can-i", "create", "knowledgebases", "--as=vera")
