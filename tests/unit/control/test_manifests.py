"""Rendered objects: what must hold for every one of them."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tidegate_api.v1alpha1.common import Resources, quantity_value
from tidegate_operator.core.kinds import Kind, Manifest
from tidegate_operator.core.render.pod import resources

from .rig import DESK, DOCS, PLATFORM, Rig, knowledge_base, pipeline, secret, source_map


@pytest.fixture
async def rig() -> Rig:
    """Return a rig in which everything that can be asked for is asked for."""
    rig = Rig()
    for manifest in (source_map(), secret("keys"), secret("proxy")):
        rig.cluster.put(manifest)
    build = {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "spot", "operator": "Exists"}]}
    rig.cluster.put(knowledge_base(build=build))
    pod = {
        "labels": {"team": "search", "tidegate.dev/pipeline": "hijacked"},
        "annotations": {"scrape": "yes"},
        "nodeSelector": {"gpu": "yes"},
        "runtimeClassName": "nvidia",
        "imagePullSecrets": [{"name": "registry"}],
        "serviceAccountName": "mine",
        "env": [{"name": "OMP_NUM_THREADS", "value": "1"}],
        "volumes": [{"name": "cache", "emptyDir": {}}],
        "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
    }
    auth = {"apiKeys": {"secretRef": {"name": "keys"}}, "trustedHeaders": {"secretRef": {"name": "proxy"}}}
    rig.cluster.put(pipeline(auth=auth, runtime={"gpu": {"count": 2}, "pod": pod}))
    await rig.settle(DOCS, DESK)
    return rig


def pods(rig: Rig) -> list[Manifest]:
    return [each["spec"]["template"] for each in rig.cluster.of_kind(Kind.DEPLOYMENT)]


def containers(rig: Rig) -> Iterator[Manifest]:
    for template in pods(rig):
        yield from template["spec"].get("initContainers", [])
        yield from template["spec"]["containers"]


def retrieval(rig: Rig) -> Manifest:
    return next(each for each in pods(rig) if each["spec"].get("initContainers"))


async def test_every_pod_passes_the_restricted_profile(rig: Rig) -> None:
    for template in pods(rig):
        assert template["spec"]["securityContext"]["runAsNonRoot"] is True
        assert template["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert template["spec"]["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC"} & template["spec"].keys()
    for container in containers(rig):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["readOnlyRootFilesystem"] is True


async def test_every_container_has_requests_and_limits_within_a_gibibyte(rig: Rig) -> None:
    for container in containers(rig):
        limits, requests = container["resources"]["limits"], container["resources"]["requests"]
        for name in ("cpu", "memory"):
            assert quantity_value(requests[name]) <= quantity_value(limits[name])
        assert quantity_value(limits["memory"]) <= quantity_value("1Gi")


async def test_nothing_is_mounted_by_subpath(rig: Rig) -> None:
    for container in containers(rig):
        assert all("subPath" not in mount for mount in container["volumeMounts"])


async def test_every_mount_has_its_volume_and_names_are_legal(rig: Rig) -> None:
    for template in pods(rig):
        volumes = {volume["name"] for volume in template["spec"]["volumes"]}
        assert all(len(name) <= 63 and "." not in name for name in volumes)
        for part in ("initContainers", "containers"):
            for container in template["spec"].get(part, []):
                assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


async def test_what_the_user_adds_to_the_pod_is_there_and_our_labels_win(rig: Rig) -> None:
    template = retrieval(rig)
    (runtime,) = template["spec"]["initContainers"]

    assert template["metadata"]["labels"]["team"] == "search"
    assert template["metadata"]["labels"]["tidegate.dev/pipeline"] == "desk"
    assert template["metadata"]["annotations"] == {"scrape": "yes"}
    assert template["spec"]["nodeSelector"] == {"gpu": "yes"}
    assert template["spec"]["runtimeClassName"] == "nvidia"
    assert template["spec"]["serviceAccountName"] == "mine"
    assert runtime["env"] == [{"name": "OMP_NUM_THREADS", "value": "1"}]
    assert {"name": "cache", "mountPath": "/cache"} in runtime["volumeMounts"]
    assert runtime["resources"]["limits"]["nvidia.com/gpu"] == "2"
    (binding,) = [each for each in rig.cluster.of_kind(Kind.ROLE_BINDING) if each["metadata"]["name"] == "desk-routing"]
    assert binding["subjects"][0]["name"] == "mine"


async def test_every_pod_names_the_operators_pull_secrets_beside_its_own() -> None:
    rig = Rig(platform=replace(PLATFORM, pull_secrets=("mirror",)))
    rig.cluster.put(source_map())
    rig.cluster.put(knowledge_base())
    rig.cluster.put(pipeline(runtime={"pod": {"imagePullSecrets": [{"name": "own"}]}}))
    await rig.settle(DOCS, DESK)

    found = {str(each["spec"].get("initContainers") is None): each["spec"]["imagePullSecrets"] for each in pods(rig)}
    assert found == {"True": [{"name": "mirror"}], "False": [{"name": "mirror"}, {"name": "own"}]}


async def test_without_pull_secrets_the_pods_are_as_they_were_before_there_was_such_a_setting(rig: Rig) -> None:
    (indexer,) = [each["spec"] for each in pods(rig) if not each["spec"].get("initContainers")]
    assert "imagePullSecrets" not in indexer
    assert retrieval(rig)["spec"]["imagePullSecrets"] == [{"name": "registry"}]


async def test_a_member_of_the_wrong_shape_is_left_for_the_api_server_to_refuse() -> None:
    rig = Rig()
    rig.cluster.put(source_map())
    rig.cluster.put(knowledge_base())
    rig.cluster.put(pipeline(runtime={"pod": {"env": "A=1", "labels": ["x"], "volumes": {"a": "b"}}}))
    await rig.settle(DOCS, DESK)

    template = retrieval(rig)
    assert template["spec"]["initContainers"][0]["env"] == "A=1"
    assert template["metadata"]["labels"] == ["x"]


async def test_the_front_door_starts_last_and_stops_first(rig: Rig) -> None:
    spec = retrieval(rig)["spec"]
    (runtime,), (front,) = spec["initContainers"], spec["containers"]

    assert runtime["restartPolicy"] == "Always"
    assert "startupProbe" in runtime
    assert front["lifecycle"]["preStop"] == {"sleep": {"seconds": 5}}
    assert spec["terminationGracePeriodSeconds"] >= 60
    assert "ports" not in runtime


async def test_pods_reach_named_documents_only(rig: Rig) -> None:
    for role in rig.cluster.of_kind(Kind.ROLE):
        assert all(rule["resourceNames"] for rule in role["rules"])
        assert all("*" not in rule["verbs"] and "create" not in rule["verbs"] for rule in role["rules"])


PODS_OF_DESK = {
    "app.kubernetes.io/name": "tidegate",
    "app.kubernetes.io/instance": "desk",
    "app.kubernetes.io/component": "retrieval",
    "app.kubernetes.io/part-of": "tidegate",
    "app.kubernetes.io/managed-by": "tidegate-operator",
    "tidegate.dev/pipeline": "desk",
}


async def test_everybody_reaches_the_public_port_and_few_the_others(rig: Rig) -> None:
    (policy,) = rig.cluster.of_kind(Kind.NETWORK_POLICY)

    def only(number: int) -> list[Manifest]:
        return [{"protocol": "TCP", "port": number}]

    namespaces = [{"kubernetes.io/metadata.name": "tidegate-system"}, {"tidegate.dev/metrics": "true"}]
    assert policy["spec"] == {
        "podSelector": {"matchLabels": PODS_OF_DESK},
        "policyTypes": ["Ingress"],
        "ingress": [
            {"ports": only(8080)},
            {"ports": only(8081), "from": [{"namespaceSelector": {"matchLabels": each}} for each in namespaces]},
            {"ports": only(8082), "from": [{"podSelector": {"matchLabels": PODS_OF_DESK}}]},
        ],
    }


async def test_the_network_policy_names_the_namespace_that_the_operator_really_lives_in() -> None:
    rig = Rig(platform=replace(PLATFORM, operator_namespace="elsewhere"))
    for manifest in (source_map(), knowledge_base(), pipeline()):
        rig.cluster.put(manifest)
    await rig.settle(DOCS, DESK)

    (policy,) = rig.cluster.of_kind(Kind.NETWORK_POLICY)
    state = next(rule for rule in policy["spec"]["ingress"] if rule["ports"][0]["port"] == 8081)
    operator, scraper = (peer["namespaceSelector"]["matchLabels"] for peer in state["from"])
    assert operator == {"kubernetes.io/metadata.name": "elsewhere"}
    assert scraper == {"tidegate.dev/metrics": "true"}


async def test_a_drain_takes_one_pod_of_the_pipeline_at_a_time(rig: Rig) -> None:
    """`maxUnavailable`, since `minAvailable: 1` would block the drain of a single pod for ever."""
    (budget,) = rig.cluster.of_kind(Kind.DISRUPTION_BUDGET)
    assert budget["spec"] == {"maxUnavailable": 1, "selector": {"matchLabels": PODS_OF_DESK}}


async def test_network_policy_and_budget_select_the_pods_of_the_pipeline_and_no_others(rig: Rig) -> None:
    (policy,), (budget,) = rig.cluster.of_kind(Kind.NETWORK_POLICY), rig.cluster.of_kind(Kind.DISRUPTION_BUDGET)
    for selector in (policy["spec"]["podSelector"], budget["spec"]["selector"]):
        wanted = selector["matchLabels"].items()
        chosen = [each for each in pods(rig) if wanted <= each["metadata"]["labels"].items()]
        assert chosen == [retrieval(rig)]


async def test_every_open_port_of_the_front_door_has_its_rule(rig: Rig) -> None:
    (policy,) = rig.cluster.of_kind(Kind.NETWORK_POLICY)
    ruled = {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}
    (front,) = retrieval(rig)["spec"]["containers"]
    assert ruled == {port["containerPort"] for port in front["ports"]}


async def test_nothing_of_a_secret_is_written_beside_it(rig: Rig) -> None:
    (token,) = [each for each in rig.cluster.of_kind(Kind.SECRET) if each["metadata"]["name"] == "docs-indexer"]
    other = Rig()
    other.cluster.put(source_map())
    other.cluster.put(knowledge_base())
    await other.settle(DOCS)
    (another,) = other.cluster.of_kind(Kind.SECRET)

    assert token["data"] != another["data"]
    assert token["metadata"]["annotations"] == another["metadata"]["annotations"]


async def test_names_of_children_fit_for_the_longest_parents() -> None:
    rig = Rig()
    long = "a" * 40
    rig.cluster.put(source_map())
    rig.cluster.put(knowledge_base(long))
    rig.cluster.put(pipeline(long, knowledgeBases=[{"name": long}]))
    await rig.settle(type(DOCS)(DOCS.kind, "acme", long), type(DESK)(DESK.kind, "acme", long))

    for ref, item in rig.cluster.objects.items():
        assert len(ref.name) <= 63
        labels = {**(item["metadata"].get("labels") or {})}
        assert all(len(value) <= 63 and len(key.rpartition("/")[2]) <= 63 for key, value in labels.items())


@pytest.mark.parametrize(
    ("asked", "limits", "requests"),
    [
        (Resources(), {"memory": "1Gi"}, {"memory": "512Mi"}),
        (Resources(limits={"memory": "256Mi"}), {"memory": "256Mi"}, {"memory": "256Mi"}),
        (Resources(requests={"memory": "4Gi"}), {"memory": "4Gi"}, {"memory": "4Gi"}),
        (Resources(limits={"memory": "8Gi"}), {"memory": "8Gi"}, {"memory": "512Mi"}),
        (
            Resources(limits={"memory": "1Gi"}, requests={"memory": "2Gi"}),
            {"memory": "1Gi"},
            {"memory": "2Gi"},
        ),
        (
            Resources(limits={"example.org/fpga": 1}),
            {"memory": "1Gi", "example.org/fpga": "1"},
            {"memory": "512Mi"},
        ),
    ],
)
def test_defaults_give_way_to_what_was_asked_for(
    asked: Resources, limits: dict[str, str], requests: dict[str, str]
) -> None:
    defaults = Resources(limits={"memory": "1Gi"}, requests={"memory": "512Mi"})
    assert resources(asked, defaults=defaults) == {"limits": limits, "requests": requests}
