"""A RetrievalPipeline that moves to another Deployment: nobody is sent where no answer is."""

import json
from dataclasses import replace

import pytest

from tidegate_operator.core.kinds import Kind, Ref, ref_of

from .desk import deployments, public, rig_with_docs, serving, settle
from .rig import DESK, Rig, pipeline

NO_GPU = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


@pytest.fixture
def rig() -> Rig:
    return rig_with_docs()


async def to_another_deployment(rig: Rig, **spec: object) -> tuple[str, str]:
    """Upgrade and edit, so that the next release needs pods of its own; return both Deployments' hashes."""
    await serving(rig, **spec)
    old = public(rig)
    rig.platform = replace(rig.platform, version="2.0")
    rig.restart()
    rig.cluster.put(pipeline(top_k=10, **spec))
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
    rig.controllers.pending = {waiting: NO_GPU}
    await settle(rig)

    assert rig.conditions(DESK)["Ready"] == ("False", "InsufficientGPU")
    assert rig.conditions(DESK)["Available"] == ("True", "Serving")
    assert rig.status(DESK)["servingRelease"] == release


@pytest.mark.parametrize(("ready", "desired", "degraded"), [(1, 1, False), (1, 2, True)])
async def test_new_pods_that_do_not_start_are_said_to_be_new_while_earlier_ones_serve(
    rig: Rig, ready: int, desired: int, degraded: bool
) -> None:
    release = await serving(rig, runtime={"gpu": {"count": 1}})
    limits = {"limits": {"memory": "2Gi"}}
    rig.cluster.put(pipeline(runtime={"gpu": {"count": 1}, "resources": limits, "replicas": desired}))
    await rig.reconciler(DESK)
    (rolled,) = deployments(rig)
    figures = {"replicas": desired + 1, "updatedReplicas": 1, "readyReplicas": ready}
    rig.cluster.set_status(ref_of(rolled), {"observedGeneration": rolled["metadata"]["generation"], **figures})
    surplus = {**rig.cluster.of_kind(Kind.POD)[0]}
    surplus["metadata"] = {**surplus["metadata"], "name": "desk-surplus"}
    surplus["status"] = {"conditions": [{"type": "PodScheduled", "status": "False", "message": NO_GPU}]}
    rig.cluster.put(surplus, manager="kubelet")
    await rig.reconciler(DESK)

    message = f"new pods of {release} do not start, the earlier ones serve: {NO_GPU}"
    assert rig.conditions(DESK)["Ready"] == ("False", "InsufficientGPU")
    assert rig.message("Ready", DESK) == message
    assert rig.conditions(DESK)["Available"] == ("True", "Serving")
    assert ("Degraded" in rig.conditions(DESK)) is degraded
    if degraded:
        assert rig.message("Degraded", DESK) == message


async def test_a_candidate_of_which_only_some_pods_run_does_not_claim_to_serve(rig: Rig) -> None:
    _, new = await to_another_deployment(rig, runtime={"replicas": 2})
    rig.controllers.run()
    why = {"conditions": [{"type": "PodScheduled", "status": "False", "message": NO_GPU}]}
    rig.cluster.set_status(Ref(Kind.POD, "acme", f"desk-{new}-1"), why)
    rig.cluster.set_status(Ref(Kind.DEPLOYMENT, "acme", f"desk-{new}"), {"readyReplicas": 1})
    await rig.reconciler(DESK)

    assert rig.message("Ready", DESK).startswith(f"some pods of {rig.status(DESK)['candidate']} do not run")
