"""A RetrievalPipeline from its spec to answering pods, on a cluster in memory."""

import json
from dataclasses import replace

import pytest

from tidegate_operator.core.kinds import Kind, Ref

from .desk import deployments, phases, public, rig_with_docs, serving, settle, table
from .rig import DESK, DOCS, Rig, knowledge_base, pipeline, source_map


@pytest.fixture
def rig() -> Rig:
    return rig_with_docs()


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
