"""A RetrievalPipeline from its spec to answering pods, on a cluster in memory."""

import json
from dataclasses import replace

import pytest

from tidegate_api.config import RoutingTable
from tidegate_operator.core.kinds import Kind, Manifest, Ref

from .rig import DESK, DOCS, Rig, knowledge_base, pipeline, secret, source_map


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.cluster.put(source_map())
    rig.cluster.put(knowledge_base())
    return rig


async def settle(rig: Rig) -> None:
    await rig.settle(DOCS, DESK)


async def serving(rig: Rig, **spec: object) -> str:
    """Bring a first release to serve and return its name."""
    rig.cluster.put(pipeline(**spec))
    await settle(rig)
    found: str = rig.status(DESK)["servingRelease"]
    return found


def table(rig: Rig) -> RoutingTable:
    return RoutingTable.model_validate_json(rig.get(Kind.CONFIG_MAP, "desk-routing")["data"]["routing.json"])


def deployments(rig: Rig) -> list[Manifest]:
    return [each for each in rig.cluster.of_kind(Kind.DEPLOYMENT) if each["metadata"]["name"].startswith("desk-")]


def public(rig: Rig) -> str:
    return str(rig.get(Kind.SERVICE, "desk")["spec"]["selector"]["tidegate.dev/deployment"])


def phases(rig: Rig) -> dict[str, str]:
    return {each["name"]: each["phase"] for each in rig.status(DESK)["releases"]}


async def test_it_serves_when_its_index_is_built_and_its_pods_are_warm(rig: Rig) -> None:
    release = await serving(rig)

    status = rig.status(DESK)
    assert release.startswith("rel-")
    assert (status["candidate"], status["pods"]) == ("", "1/1")
    assert status["endpoint"] == "http://desk.acme.svc:8080"
    assert status["runtime"] == {"desired": 1, "ready": 1, "selector": "tidegate.dev/pipeline=desk"}
    assert phases(rig) == {release: "Serving"}
    assert rig.conditions(DESK) == {
        "Ready": ("True", "InForce"),
        "Accepted": ("True", "Accepted"),
        "Available": ("True", "Serving"),
        "RolloutCompleted": ("True", "Completed"),
    }
    assert table(rig).stable == release
    assert status["routing"]["summary"] == "1/1"


async def test_at_rest_nothing_is_written(rig: Rig) -> None:
    await serving(rig)
    before = len(rig.cluster.writes)

    for _ in range(5):
        rig.clock.advance(60)
        await rig.reconciler(DESK)
    rig.restart()
    await rig.reconciler(DESK)

    assert rig.cluster.writes[before:] == []


async def test_every_child_is_ours_and_in_the_same_namespace(rig: Rig) -> None:
    await serving(rig)
    uid = rig.cluster.objects[DESK.ref]["metadata"]["uid"]

    kinds = set()
    for ref, item in rig.cluster.objects.items():
        for owner in item["metadata"].get("ownerReferences") or []:
            assert ref.namespace == "acme"
            if owner["uid"] == uid:
                kinds.add(ref.kind)
    assert kinds == {
        Kind.SECRET,
        Kind.SERVICE_ACCOUNT,
        Kind.ROLE,
        Kind.ROLE_BINDING,
        Kind.CONFIG_MAP,
        Kind.NETWORK_POLICY,
        Kind.DISRUPTION_BUDGET,
        Kind.SERVICE,
        Kind.DEPLOYMENT,
        Kind.CONTROLLER_REVISION,
    }


async def test_it_waits_for_the_index_and_says_so(rig: Rig) -> None:
    rig.planes.silent = True
    await serving(rig)

    assert rig.conditions(DESK)["Ready"] == ("Unknown", "WaitsForBuild")
    assert rig.conditions(DESK)["Available"] == ("False", "PreparingRelease")
    assert deployments(rig) == []


async def test_a_missing_knowledge_base_is_waited_for() -> None:
    rig = Rig()
    rig.cluster.put(pipeline())
    await rig.settle(DESK)
    assert rig.conditions(DESK)["Ready"] == ("Unknown", "KnowledgeBaseMissing")

    rig.cluster.put(source_map())
    rig.cluster.put(knowledge_base())
    await settle(rig)
    assert rig.conditions(DESK)["Ready"] == ("True", "InForce")


async def test_a_missing_secret_is_a_reason_and_is_waited_for(rig: Rig) -> None:
    await serving(rig, auth={"apiKeys": {"secretRef": {"name": "keys"}}})
    assert rig.conditions(DESK)["Accepted"] == ("False", "SecretMissing")
    assert "Secret keys" in rig.message("Accepted", DESK)

    rig.cluster.put(secret("keys"))
    await settle(rig)
    assert rig.conditions(DESK)["Ready"] == ("True", "InForce")


async def test_a_new_index_serves_as_soon_as_it_is_warm_in_the_same_pods(rig: Rig) -> None:
    first = await serving(rig)
    (before,) = deployments(rig)

    rig.cluster.put(knowledge_base(size_tokens=100))
    await settle(rig)
    second = rig.status(DESK)["servingRelease"]

    assert second != first
    assert deployments(rig) == [before]
    assert table(rig).stable == second
    assert phases(rig) == {first: "Warm", second: "Serving"}


async def test_the_old_release_serves_while_the_new_one_is_loaded(rig: Rig) -> None:
    first = await serving(rig)
    rig.planes.warm = {first}
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    candidate = rig.status(DESK)["candidate"]

    assert rig.status(DESK)["servingRelease"] == first
    assert (table(rig).stable, table(rig).candidate, table(rig).share) == (first, candidate, 0)
    assert rig.conditions(DESK)["Ready"] == ("Unknown", "PreparingRelease")
    assert rig.conditions(DESK)["Available"] == ("True", "Serving")

    rig.planes.warm = None
    await settle(rig)
    assert rig.status(DESK)["servingRelease"] == candidate


async def test_a_release_that_cannot_be_opened_is_said_and_the_old_one_serves(rig: Rig) -> None:
    first = await serving(rig)
    rig.planes.warm, rig.planes.broken = {first}, "the index is damaged"
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)

    assert rig.conditions(DESK)["Ready"] == ("False", "ReleaseFailed")
    assert "the index is damaged" in rig.message("Ready", DESK)
    assert rig.status(DESK)["servingRelease"] == first


async def test_versions_never_go_back_whatever_is_lost(rig: Rig) -> None:
    await serving(rig)
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    before = table(rig).version

    rig.cluster.remove(Ref(Kind.CONFIG_MAP, "acme", "desk-routing"))
    await settle(rig)
    assert table(rig).version == before + 1


async def test_ready_waits_until_pods_obey_the_newest_settings_and_table(rig: Rig) -> None:
    await serving(rig)
    rig.planes.stale = {name["metadata"]["name"] for name in rig.cluster.of_kind(Kind.POD)}
    rig.cluster.put(pipeline(limits={"maxTopK": 7}))
    await settle(rig)
    assert rig.conditions(DESK)["Ready"] == ("Unknown", "NotAcknowledged")
    assert rig.status(DESK)["routing"]["pending"] != []

    rig.planes.stale = set()
    await settle(rig)
    assert rig.conditions(DESK)["Ready"] == ("True", "InForce")


async def test_what_rolls_in_place_makes_no_other_release_and_no_other_deployment(rig: Rig) -> None:
    release = await serving(rig)
    (before,) = deployments(rig)

    rig.cluster.put(pipeline(runtime={"replicas": 2, "resources": {"limits": {"memory": "2Gi"}}}))
    await settle(rig)

    (after,) = deployments(rig)
    assert rig.status(DESK)["servingRelease"] == release
    assert after["metadata"]["name"] == before["metadata"]["name"]
    assert after["spec"]["replicas"] == 2
    assert after["spec"]["template"]["spec"]["initContainers"][0]["resources"]["limits"]["memory"] == "2Gi"


async def test_an_operator_upgrade_rolls_nothing_and_the_next_release_takes_the_new_images(rig: Rig) -> None:
    first = await serving(rig)
    (before,) = deployments(rig)
    images = replace(rig.platform.images, runtime="registry/runtime:2.0", sidecar="registry/sidecar:2.0")
    rig.platform = replace(rig.platform, version="2.0", images=images)
    rig.restart()
    await settle(rig)
    assert deployments(rig) == [before]
    assert rig.status(DESK)["servingRelease"] == first

    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    assert rig.status(DESK)["servingRelease"] != first
    newest = rig.status(DESK)["releases"]
    assert {each["versions"]["runtime"] for each in newest} == {"1.0", "2.0"}
    names = {each["metadata"]["labels"]["tidegate.dev/deployment"] for each in deployments(rig)}
    assert public(rig) in names


async def to_another_deployment(rig: Rig) -> tuple[str, str]:
    """Upgrade and edit, so that the next release needs pods of its own; return both Deployments' hashes."""
    await serving(rig)
    old = public(rig)
    rig.platform = replace(rig.platform, version="2.0")
    rig.restart()
    rig.cluster.put(pipeline(top_k=10))
    await rig.reconciler(DESK)
    new = next(
        each["metadata"]["labels"]["tidegate.dev/deployment"]
        for each in deployments(rig)
        if each["metadata"]["labels"]["tidegate.dev/deployment"] != old
    )
    return old, new


async def test_another_deployment_gets_the_traffic_only_when_all_its_pods_are_warm_and_obey(rig: Rig) -> None:
    old, new = await to_another_deployment(rig)
    rig.controllers.held = {f"desk-{new}"}
    await settle(rig)
    assert public(rig) == old

    rig.controllers.held = set()
    rig.planes.stale = {
        each["metadata"]["name"] for each in rig.cluster.of_kind(Kind.POD) if old in each["metadata"]["name"]
    }
    await settle(rig)
    assert rig.status(DESK)["candidate"] == ""
    assert public(rig) == old

    rig.planes.stale = set()
    await settle(rig)
    assert public(rig) == new


async def test_nobody_is_sent_to_warm_pods_that_their_service_does_not_know_yet(rig: Rig) -> None:
    old, new = await to_another_deployment(rig)
    rig.controllers.unprobed = {f"desk-{new}"}
    await settle(rig)
    assert public(rig) == old
    assert rig.status(DESK)["rollout"]["phase"] == "Preparing"

    rig.controllers.unprobed = set()
    await settle(rig)
    assert public(rig) == new


async def test_the_old_deployment_goes_when_its_traffic_has_drained(rig: Rig) -> None:
    old, new = await to_another_deployment(rig)
    await settle(rig)
    assert {each["metadata"]["name"] for each in deployments(rig)} == {f"desk-{old}", f"desk-{new}"}

    rig.clock.advance(31)
    await settle(rig)
    assert {each["metadata"]["name"] for each in deployments(rig)} == {f"desk-{new}"}


async def test_pods_of_two_deployments_reach_each_other_and_share_one_key(rig: Rig) -> None:
    old, new = await to_another_deployment(rig)
    await settle(rig)
    peers = {each["metadata"]["name"]: each["spec"]["selector"] for each in rig.cluster.of_kind(Kind.SERVICE)}
    for deployment in (old, new):
        assert peers[f"desk-{deployment}"]["tidegate.dev/deployment"] == deployment
    key = rig.get(Kind.SECRET, "desk-routing")["data"]
    assert all("hop-keys" in json.dumps(each["spec"]["template"]) for each in deployments(rig))

    rig.clock.advance(31)
    await settle(rig)
    services = {each["metadata"]["name"] for each in rig.cluster.of_kind(Kind.SERVICE)}
    assert f"desk-{new}" in services
    assert f"desk-{old}" not in services
    assert rig.get(Kind.SECRET, "desk-routing")["data"] == key


async def test_pods_that_never_obey_do_not_hold_the_traffic_for_ever(rig: Rig) -> None:
    old, new = await to_another_deployment(rig)
    rig.controllers.run()
    rig.planes.stale = {
        each["metadata"]["name"] for each in rig.cluster.of_kind(Kind.POD) if old in each["metadata"]["name"]
    }
    await settle(rig)
    assert public(rig) == old

    rig.clock.advance(31)
    await settle(rig)
    assert public(rig) == new


async def test_one_gpu_only_keeps_the_old_pods_and_says_why(rig: Rig) -> None:
    gpu = {"gpu": {"count": 1}}
    rig.cluster.put(pipeline(runtime=gpu))
    await settle(rig)
    release = rig.status(DESK)["servingRelease"]
    rig.platform = replace(rig.platform, version="2.0")
    rig.restart()
    rig.cluster.put(pipeline(top_k=10, runtime=gpu))
    await rig.reconciler(DESK)
    waiting = next(each["metadata"]["name"] for each in deployments(rig) if public(rig) not in each["metadata"]["name"])
    rig.controllers.pending = {waiting: "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}
    await settle(rig)

    assert rig.conditions(DESK)["Ready"] == ("False", "InsufficientGPU")
    assert rig.conditions(DESK)["Available"] == ("True", "Serving")
    assert rig.status(DESK)["servingRelease"] == release


async def test_replace_frees_the_old_pods_first(rig: Rig) -> None:
    runtime = {"update": "Replace", "gpu": {"count": 1}}
    rig.cluster.put(pipeline(runtime=runtime))
    await settle(rig)
    old = public(rig)
    rig.platform = replace(rig.platform, version="2.0")
    rig.restart()
    rig.cluster.put(pipeline(top_k=10, runtime=runtime))
    await rig.reconciler(DESK)
    assert deployments(rig) == []
    assert rig.conditions(DESK)["Available"][0] == "False"

    await settle(rig)
    (only,) = deployments(rig)
    assert only["metadata"]["name"] != f"desk-{old}"
    assert rig.conditions(DESK)["Ready"] == ("True", "InForce")


async def test_quota_is_in_the_condition(rig: Rig) -> None:
    release = await serving(rig)
    message = 'pods "desk-6d5f-x7k2p" is forbidden: violates PodSecurity "restricted:latest"'
    rig.controllers.failures = {deployments(rig)[0]["metadata"]["name"]: message}
    await settle(rig)

    assert rig.conditions(DESK)["Ready"] == ("False", "PodCreationFailed")
    assert 'violates PodSecurity "restricted:latest"' in rig.message("Ready", DESK)
    assert rig.conditions(DESK)["Available"] == ("False", "NoReadyPod")
    assert rig.status(DESK)["servingRelease"] == release


async def test_what_the_api_server_refuses_of_the_pod_is_the_users_to_mend(rig: Rig) -> None:
    def refuse(manifest: Manifest) -> str | None:
        return "affinity: Invalid value" if manifest["kind"] == "Deployment" else None

    rig.cluster.put(pipeline())
    await settle(rig)
    rig.cluster.refuse = refuse
    rig.cluster.put(pipeline(runtime={"pod": {"affinity": {"nodeAffinity": "somewhere"}}}))
    await settle(rig)

    assert rig.conditions(DESK)["Accepted"] == ("False", "RefusedByAPIServer")
    assert "affinity: Invalid value" in rig.message("Accepted", DESK)
    assert rig.conditions(DESK)["Available"] == ("True", "Serving")


async def test_an_unusable_graph_leaves_the_accepted_one_in_force(rig: Rig) -> None:
    release = await serving(rig)
    before = table(rig)
    rig.cluster.put(pipeline(output="nothing"))
    await settle(rig)

    assert rig.conditions(DESK)["Accepted"] == ("False", "InvalidGraph")
    assert rig.status(DESK)["servingRelease"] == release
    assert table(rig) == before


async def test_a_name_that_is_taken_is_said_and_nothing_is_taken_over(rig: Rig) -> None:
    theirs = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "desk", "namespace": "acme"},
        "spec": {"selector": {"app": "theirs"}},
    }
    rig.cluster.put(theirs)
    await serving(rig)

    assert rig.conditions(DESK)["Stalled"] == ("True", "NameConflict")
    assert rig.get(Kind.SERVICE, "desk")["spec"] == theirs["spec"]


async def test_suspended_nothing_changes_and_serving_goes_on(rig: Rig) -> None:
    release = await serving(rig)
    rig.cluster.put(pipeline(top_k=10, suspend=True))
    await settle(rig)
    assert rig.status(DESK)["servingRelease"] == release
    assert rig.conditions(DESK)["Ready"] == ("True", "Suspended")

    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    assert rig.status(DESK)["servingRelease"] != release


async def test_nothing_new_serves_where_a_policy_is_required(rig: Rig) -> None:
    await serving(rig, releases={"requirePolicy": True})

    assert rig.status(DESK)["servingRelease"] == ""
    assert rig.conditions(DESK)["Ready"] == ("Unknown", "PolicyMissing")


async def test_a_failed_build_falls_back_and_says_so(rig: Rig) -> None:
    release = await serving(rig)
    rig.cluster.put(knowledge_base(size_tokens=100))
    rig.planes.silent = True
    await rig.reconciler(DOCS)
    rig.planes.failed, rig.planes.silent = {rig.status()["desiredRevision"]: "no vectors"}, False
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)

    assert rig.status(DESK)["servingRelease"] != release
    assert rig.conditions(DESK)["Degraded"] == ("True", "RevisionFailed")


async def test_two_knowledge_bases_that_change_at_once_make_one_release(rig: Rig) -> None:
    rig.cluster.put(source_map())
    rig.cluster.put(knowledge_base("faq"))
    faq = replace(DOCS, name="faq")
    rig.cluster.put(pipeline(knowledgeBases=[{"name": "docs"}, {"name": "faq"}]))
    await rig.settle(DOCS, faq, DESK)
    count = len(rig.status(DESK)["releases"])

    rig.cluster.put(knowledge_base(size_tokens=100))
    rig.cluster.put(knowledge_base("faq", size_tokens=100))
    await rig.reconciler(DESK)
    assert rig.conditions(DESK)["Ready"] == ("Unknown", "KnowledgeBaseBehind")
    await rig.settle(DOCS, faq, DESK)

    assert len(rig.status(DESK)["releases"]) == count + 1


async def test_releases_nobody_needs_expire_and_let_their_indexes_go(rig: Rig) -> None:
    rig.cluster.put(knowledge_base(revisionHistoryLimit=0))
    await serving(rig)
    for size in range(20, 180, 20):
        rig.cluster.put(knowledge_base(size_tokens=size, revisionHistoryLimit=0))
        await settle(rig)
        rig.clock.advance(10_000)
    await settle(rig)
    rig.clock.advance(61)
    await settle(rig)

    live = [each for each in rig.cluster.of_kind(Kind.CONTROLLER_REVISION) if "-rel-" in each["metadata"]["name"]]
    assert len(live) == 6
    assert len(rig.status()["revisions"]) == 6
    assert "Expired" in phases(rig).values()


async def test_a_cpu_limit_written_in_another_way_is_no_change(rig: Rig) -> None:
    await serving(rig, runtime={"resources": {"limits": {"cpu": "1000m"}}})
    (before,) = deployments(rig)
    version = before["metadata"]["resourceVersion"]
    before["spec"]["template"]["spec"]["initContainers"][0]["resources"]["limits"]["cpu"] = "1"
    await settle(rig)

    (after,) = deployments(rig)
    assert after["metadata"]["resourceVersion"] == version


async def test_only_the_front_door_holds_a_token(rig: Rig) -> None:
    await serving(rig)
    spec = deployments(rig)[0]["spec"]["template"]["spec"]
    (runtime,), (front,) = spec["initContainers"], spec["containers"]

    assert spec["automountServiceAccountToken"] is False
    assert "api-access" not in json.dumps(runtime)
    assert "hop-keys" not in json.dumps(runtime)
    assert "api-access" in json.dumps(front)


async def test_events_tell_transitions_only(rig: Rig) -> None:
    await serving(rig)
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)

    told = [note.reason for ref, note in rig.cluster.events.values() if ref == DESK.ref]
    assert told == ["ReleaseMade", "ReleaseServes", "Ready", "ReleaseMade", "ReleaseServes", "Ready"]
