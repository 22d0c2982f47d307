"""`update: Replace`: the old pods go before the new ones start, and only where nobody is left without an answer for it."""

from dataclasses import replace

import pytest

from tidegate_operator.core.kinds import Manifest, ref_of

from .desk import ask, deployments, public, rig_with_docs, settle, table
from .rig import DESK, Rig, pipeline, policy

RUNTIME = {"update": "Replace", "gpu": {"count": 1}}
NO_GPU = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
STEPS = [{"name": "third", "percent": 30}, {"name": "look", "pause": {}}, {"name": "all", "percent": 100}]


@pytest.fixture
def rig() -> Rig:
    return rig_with_docs()


async def serving(rig: Rig, *, steps: list[Manifest] | None = None) -> str:
    """Bring a first release to serve and return the hash of its Deployment."""
    if steps is not None:
        rig.cluster.put(policy(steps=steps))
    rig.cluster.put(pipeline(runtime=RUNTIME))
    await settle(rig)
    return public(rig)


async def upgrade(rig: Rig, version: str = "2.0", top_k: int = 10) -> None:
    """Ask for a release that needs pods of its own, and look at it once."""
    rig.platform = replace(rig.platform, version=version)
    rig.restart()
    rig.cluster.put(pipeline(top_k=top_k, runtime=RUNTIME))
    await rig.reconciler(DESK)


def running(rig: Rig) -> set[str]:
    """Return the hashes of the Deployments that are there."""
    return {each["metadata"]["labels"]["tidegate.dev/deployment"] for each in deployments(rig)}


async def test_the_old_pods_go_first_and_then_the_new_ones_serve(rig: Rig) -> None:
    old = await serving(rig)
    await upgrade(rig)
    assert deployments(rig) == []
    assert rig.conditions(DESK)["Available"][0] == "False"

    await settle(rig)
    assert running(rig) == {public(rig)} != {old}
    assert rig.conditions(DESK)["Ready"] == ("True", "InForce")


async def test_the_downtime_is_said_with_what_is_awaited(rig: Rig) -> None:
    await serving(rig)
    old = rig.status(DESK)["servingRelease"]
    await upgrade(rig)
    new = rig.status(DESK)["candidate"]
    stopped = f"update: Replace has stopped the pods of {old}; no answers until {new} is warm"
    assert rig.conditions(DESK)["Available"] == ("False", "Replacing")
    assert rig.message("Available", DESK) == f"{stopped}: the old pods are ending"

    rig.controllers.run()
    await rig.reconciler(DESK)
    (coming,) = deployments(rig)
    assert rig.message("Available", DESK) == f"{stopped}: its pods start and load it"

    rig.controllers.pending = {coming["metadata"]["name"]: NO_GPU}
    await settle(rig)
    assert rig.message("Available", DESK) == f"{stopped}: pods of {new} do not run: {NO_GPU}"
    assert rig.conditions(DESK)["Ready"] == ("False", "InsufficientGPU")


@pytest.mark.parametrize(
    ("progress", "reason"), [("ReplicaSetUpdated", "Replacing"), ("NewReplicaSetAvailable", "NoReadyPod")]
)
async def test_pods_that_are_replaced_in_place_are_told_from_pods_that_have_failed(
    rig: Rig, progress: str, reason: str
) -> None:
    await serving(rig)
    rig.cluster.put(pipeline(runtime={**RUNTIME, "resources": {"limits": {"memory": "2Gi"}}}))
    await rig.reconciler(DESK)
    (rolled,) = deployments(rig)
    conditions = [{"type": "Progressing", "status": "True", "reason": progress}]
    generation = rolled["metadata"]["generation"]
    rig.cluster.set_status(
        ref_of(rolled), {"observedGeneration": generation, "readyReplicas": 0, "conditions": conditions}
    )
    await rig.reconciler(DESK)

    assert rig.conditions(DESK)["Available"] == ("False", reason)
    if reason == "Replacing":
        release = rig.status(DESK)["servingRelease"]
        stopped = f"update: Replace has stopped the earlier pods of {release}; no answers until new ones are ready"
        assert rig.message("Available", DESK) == stopped


async def test_where_steps_leave_stable_a_share_its_pods_stay(rig: Rig) -> None:
    old = await serving(rig, steps=STEPS)
    first = rig.status(DESK)["servingRelease"]
    await upgrade(rig)
    (new,) = running(rig) - {old}
    rig.controllers.pending = {f"desk-{new}": NO_GPU}
    await settle(rig)
    assert running(rig) == {old, new}
    assert rig.conditions(DESK)["Ready"] == ("False", "InsufficientGPU")
    assert rig.conditions(DESK)["Available"] == ("True", "Serving")

    rig.controllers.pending = {}
    await settle(rig)
    assert (table(rig).stable, table(rig).share) == (first, 30)
    assert rig.status(DESK)["rollout"]["phase"] == "Paused"
    assert (running(rig), public(rig)) == ({old, new}, old)
    assert rig.conditions(DESK)["Available"] == ("True", "Serving")

    await ask(rig, "promote")
    await settle(rig)
    assert public(rig) == new


async def test_a_single_step_of_a_hundred_percent_moves_all_at_once(rig: Rig) -> None:
    old = await serving(rig, steps=[{"name": "all", "percent": 100}])
    await upgrade(rig)
    assert deployments(rig) == []

    await settle(rig)
    assert running(rig) == {public(rig)} != {old}
    assert rig.conditions(DESK)["Ready"] == ("True", "InForce")


async def test_a_pause_at_a_hundred_percent_keeps_the_pods_that_the_service_selects(rig: Rig) -> None:
    old = await serving(rig, steps=[{"name": "all", "percent": 100}, {"name": "look", "pause": {}}])
    await upgrade(rig)
    await settle(rig)

    assert rig.status(DESK)["rollout"]["phase"] == "Paused"
    assert public(rig) == old
    assert old in running(rig)


async def test_steps_that_go_away_in_mid_rollout_do_not_stop_stable(rig: Rig) -> None:
    old = await serving(rig, steps=STEPS)
    await upgrade(rig)
    await settle(rig)
    rig.cluster.put(policy(steps=[]))
    await settle(rig)

    assert table(rig).share == 30
    assert old in running(rig)


async def test_no_earlier_pods_come_back_to_wait_for_what_the_serving_ones_hold(rig: Rig) -> None:
    old = await serving(rig, steps=[])
    await upgrade(rig)
    await settle(rig)

    assert old not in running(rig)
    assert rig.status(DESK)["rollback"]["readiness"] == "Cold"


async def test_going_back_to_a_release_without_pods_replaces_too_and_says_so(rig: Rig) -> None:
    old = await serving(rig, steps=STEPS)
    await upgrade(rig)
    await settle(rig)
    await ask(rig, "promote")
    rig.clock.advance(3 * 3600)
    await settle(rig)
    assert old not in running(rig)

    outcome = await ask(rig, "rollback")
    assert "update: Replace stops the pods of" in outcome["message"]
    assert (running(rig), public(rig)) == ({old}, old)
    assert rig.conditions(DESK)["Available"] == ("True", "Serving")
