"""What the chart renders: the operator's pod, its rights, and the resource definitions."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidegate_operator.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "charts" / "tidegate"
EXPECTED = Path(__file__).parent / "expected"

Manifest = dict[str, Any]
Render = Callable[[dict[str, Any]], list[Manifest]]


def only(manifests: list[Manifest], kind: str) -> Manifest:
    """Return the one manifest of a kind."""
    (found,) = [manifest for manifest in manifests if manifest["kind"] == kind]
    return found


def kinds(manifests: list[Manifest]) -> list[str]:
    """Return the kinds that were rendered, sorted."""
    return sorted(manifest["kind"] for manifest in manifests)


def container(manifests: list[Manifest]) -> Manifest:
    """Return the operator's container."""
    (found,) = only(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
    return dict(found)


@pytest.mark.parametrize(
    ("snapshot", "values"),
    [
        ("cluster", {"crds": {"create": False}}),
        (
            "namespaces",
            {
                "crds": {"create": False},
                "rbac": {"scope": "namespaces", "namespaces": ["acme", "bank"], "aggregate": False},
                "metrics": {"service": {"create": False}},
            },
        ),
    ],
)
def test_renders_what_was_reviewed(render: Render, snapshot: str, values: dict[str, Any]) -> None:
    expected = yaml.safe_load_all((EXPECTED / f"{snapshot}.yaml").read_text(encoding="utf-8"))

    assert render(values) == list(expected)


def test_lint_finds_nothing(helm: Callable[..., str]) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", "--kube-version", "1.33.0", str(CHART))


def test_resource_definitions_are_those_of_the_project_and_are_kept(render: Render) -> None:
    rendered = [m for m in render({}) if m["kind"] == "CustomResourceDefinition"]
    own = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "crds").glob("*.yaml"))]

    assert [m["metadata"]["annotations"].pop("helm.sh/resource-policy") for m in rendered] == ["keep"] * 3
    for manifest in rendered:
        assert manifest["metadata"].pop("annotations") == {}
    assert sorted(rendered, key=lambda m: str(m["metadata"]["name"])) == own


def test_resource_definitions_can_be_left_to_somebody_else(render: Render) -> None:
    assert "CustomResourceDefinition" not in kinds(render({"crds": {"create": False}}))


def test_a_namespaced_release_holds_nothing_cluster_wide(render: Render) -> None:
    manifests = render({"crds": {"create": False}, "rbac": {"scope": "namespaces", "aggregate": False}})

    assert kinds(manifests) == ["Deployment", "Lease", "Role", "RoleBinding", "Service", "ServiceAccount"]
    assert only(manifests, "Role")["metadata"]["namespace"] == "tidegate-system"
    assert container(manifests)["args"] == ["--namespace=tidegate-system"]


def test_both_scopes_give_the_same_rights(render: Render) -> None:
    cluster = next(m for m in render({}) if m["kind"] == "ClusterRole" and m["metadata"]["name"] == "tidegate-operator")

    assert cluster["rules"] == only(render({"rbac": {"scope": "namespaces"}}), "Role")["rules"]


def test_the_operator_may_not_browse_secrets_and_holds_no_wildcard(render: Render) -> None:
    rules = only(render({"rbac": {"scope": "namespaces"}}), "Role")["rules"]

    (secrets,) = [rule for rule in rules if "secrets" in rule["resources"]]
    assert not {"list", "watch"} & set(secrets["verbs"])
    assert not [rule for rule in rules if "*" in [*rule["resources"], *rule["verbs"], *rule["apiGroups"]]]


def test_the_environment_is_what_the_operator_reads(render: Render) -> None:
    environment = {entry["name"] for entry in container(render({}))["env"]}

    assert environment <= {f"TIDEGATE_{name.upper()}" for name in Settings.model_fields}


def test_images_are_named_by_tag_or_by_digest(render: Render) -> None:
    digest = "sha256:" + "a" * 64
    images = {"operator": {"repository": "r/operator", "tag": "1.2.3"}, "runtime": {"digest": digest}}
    operator = container(render({"images": images}))
    environment = {entry["name"]: entry.get("value") for entry in operator["env"]}

    assert operator["image"] == "r/operator:1.2.3"
    assert environment["TIDEGATE_SIDECAR_IMAGE"] == "localhost/tidegate/sidecar:0.1.0"
    assert environment["TIDEGATE_RUNTIME_IMAGE"] == f"localhost/tidegate/runtime@{digest}"


def test_credentials_of_a_registry_reach_the_operator_and_its_pods(render: Render) -> None:
    manifests = render({"imagePullSecrets": [{"name": "registry"}, {"name": "mirror"}]})
    environment = {entry["name"]: entry.get("value") for entry in container(manifests)["env"]}

    assert only(manifests, "Deployment")["spec"]["template"]["spec"]["imagePullSecrets"] == [
        {"name": "registry"},
        {"name": "mirror"},
    ]
    assert environment["TIDEGATE_IMAGE_PULL_SECRETS"] == "registry,mirror"


def test_the_pull_policy_reaches_the_operator_and_its_pods(render: Render) -> None:
    found = container(render({"images": {"pullPolicy": "Always"}}))
    environment = {entry["name"]: entry.get("value") for entry in found["env"]}

    assert found["imagePullPolicy"] == "Always"
    assert environment["TIDEGATE_IMAGE_PULL_POLICY"] == "Always"


def test_the_operator_may_write_its_lease_wherever_it_serves(render: Render) -> None:
    manifests = render({"rbac": {"scope": "namespaces", "namespaces": ["acme"], "aggregate": False}})
    (own,) = [m for m in manifests if m["kind"] == "Role" and m["metadata"]["namespace"] == "tidegate-system"]
    lease = only(manifests, "Lease")["metadata"]["name"]
    environment = {entry["name"]: entry.get("value") for entry in container(manifests)["env"]}

    assert [(rule["resourceNames"], rule["verbs"]) for rule in own["rules"]] == [([lease], ["get", "patch"])]
    assert environment["TIDEGATE_LEASE"] == lease


def test_a_service_monitor_selects_the_metrics_service(render: Render) -> None:
    manifests = render({"metrics": {"serviceMonitor": {"create": True, "labels": {"team": "search"}}}})
    monitor, service = only(manifests, "ServiceMonitor"), only(manifests, "Service")

    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["metadata"]["labels"]["team"] == "search"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"images": {"runtime": {"tag": "latest"}}}, "/images/runtime/tag"),
        ({"images": {"runtime": {"digest": "abc"}}}, "/images/runtime/digest"),
        ({"rbac": {"scope": "galaxy"}}, "/rbac/scope"),
        ({"rbac": {"namespaces": ["acme"]}}, "/rbac/scope"),
        ({"operator": {"replicas": 2}}, "replicas"),
        ({"serviceAccount": {"create": False}}, "serviceAccount.name is needed"),
        (
            {"metrics": {"service": {"create": False}, "serviceMonitor": {"create": True}}},
            "serviceMonitor.create needs metrics.service.create",
        ),
    ],
)
def test_bad_values_are_refused_by_name(render: Render, values: dict[str, Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        render(values)


def leaves(values: dict[str, Any], path: str = "") -> list[str]:
    """Return the dotted paths of every value that the README should describe."""
    found = []
    for name, value in values.items():
        nested = isinstance(value, dict) and value and path + name != "operator.resources"
        found += leaves(value, f"{path}{name}.") if nested else [path + name]
    return found


def test_every_value_is_in_the_readme_and_in_the_schema() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    readme = (CHART / "README.md").read_text(encoding="utf-8")
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))

    described = [line.split("`")[1] for line in readme.splitlines() if line.startswith("| `")]
    assert described == leaves(values)
    for path in described:
        node = schema
        for name in path.split("."):
            node = node["properties"][name]
            node = schema["definitions"]["image"] if "$ref" in node else node
