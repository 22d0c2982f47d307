"""Room in pods that serve: what would end them is not opened, and the condition says how much is needed."""

from dataclasses import replace

import pytest

from tidegate_operator.core.kinds import Kind, Manifest

from .desk import RULES, deployments, phases, rig_with_docs, serving, settle, table
from .rig import DESK, Rig, knowledge_base, pipeline, policy

MEBIBYTE = 2**20
DENSE = [{"name": "dense", "type": "dense", "with": {"topK": 50}}]


@pytest.fixture
def rig() -> Rig:
    return rig_with_docs()


async def another_index(rig: Rig, size_tokens: int = 100, *, mebibytes: int) -> None:
    """Build another revision; every one needs so much memory. The runtime has 1Gi and takes 64Mi itself."""
    rig.planes.load_bytes = mebibytes * MEBIBYTE
    rig.cluster.put(knowledge_base(size_tokens=size_tokens))
    await settle(rig)


def limited(memory: str) -> Manifest:
    return {"resources": {"limits": {"memory": memory}}}


def held(rig: Rig) -> set[str]:
    """Return the releases that pods are told to hold."""
    return {release.name for release in table(rig).releases}


async def test_an_index_that_does_not_fit_beside_the_one_that_serves_is_not_opened(rig: Rig) -> None:
    first = await serving(rig)
    await another_index(rig, mebibytes=500)
    candidate = rig.status(DESK)["candidate"]

    assert rig.conditions(DESK)["Ready"] == ("False", "InsufficientMemory")
    assert rig.conditions(DESK)["Stalled"] == ("True", "InsufficientMemory")
    assert rig.conditions(DESK)["Available"] == ("True", "Serving")
    assert rig.message("Ready", DESK) == (
        f"pods that hold {first} have no room for {candidate}: together with the runtime itself they need 1088Mi of "
        "memory, its limit is 1024Mi; raise spec.runtime.resources.limits.memory to 1088Mi or more"
    )
    assert (rig.status(DESK)["servingRelease"], held(rig)) == (first, {first})

    rig.cluster.put(pipeline(runtime=limited("1088Mi")))
    await settle(rig)
    assert rig.status(DESK)["servingRelease"] == candidate
    assert rig.conditions(DESK)["Ready"] == ("True", "InForce")


async def test_while_it_has_no_room_pods_are_not_asked_every_second(rig: Rig) -> None:
    await serving(rig)
    await another_index(rig, mebibytes=500)
    rig.clock.advance(600)

    assert await rig.reconciler(DESK) == 15.0


async def test_pods_with_the_earlier_limit_are_waited_for(rig: Rig) -> None:
    first = await serving(rig)
    (pod,) = [each for each in rig.cluster.of_kind(Kind.POD) if each["metadata"]["name"].startswith("desk-")]
    pod["spec"] = {"initContainers": [{"name": "runtime", "resources": {"limits": {"memory": "1Gi"}}}]}
    await another_index(rig, mebibytes=500)
    rig.cluster.put(pipeline(runtime=limited("2Gi")))
    await settle(rig)
    assert rig.conditions(DESK)["Ready"] == ("False", "InsufficientMemory")

    pod["spec"]["initContainers"][0]["resources"]["limits"]["memory"] = "2Gi"
    await settle(rig)
    assert rig.status(DESK)["servingRelease"] != first


async def test_an_encoder_counts_once_and_only_where_a_leg_needs_it(rig: Rig) -> None:
    await serving(rig, nodes=DENSE, output="dense")
    await another_index(rig, mebibytes=400)
    assert "they need 1088Mi" in rig.message("Ready", DESK)  # 64 + 192 + 2 * 400

    rig.planes.load_bytes = 380 * MEBIBYTE
    await settle(rig)
    assert rig.conditions(DESK)["Ready"] == ("True", "InForce")


async def test_one_index_in_two_releases_counts_once(rig: Rig) -> None:
    first = await serving(rig)
    rig.planes.load_bytes = 900 * MEBIBYTE
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)

    assert rig.status(DESK)["servingRelease"] != first


async def test_pods_of_their_own_are_not_judged(rig: Rig) -> None:
    first = await serving(rig)
    rig.platform = replace(rig.platform, version="2.0")
    rig.restart()
    rig.cluster.put(pipeline(top_k=10))
    await another_index(rig, mebibytes=900)

    assert rig.status(DESK)["servingRelease"] != first
    assert len(deployments(rig)) == 2


async def test_a_release_that_is_kept_for_going_back_makes_room(rig: Rig) -> None:
    first = await serving(rig)
    await another_index(rig, 100, mebibytes=400)
    second = rig.status(DESK)["servingRelease"]
    assert phases(rig)[first] == "Warm"

    rig.planes.warm = {first, second}
    await another_index(rig, 150, mebibytes=400)
    candidate = rig.status(DESK)["candidate"]
    assert held(rig) == {second, candidate}

    rig.planes.warm = None
    await settle(rig)
    assert rig.status(DESK)["servingRelease"] == candidate
    assert phases(rig) == {first: "Cold", second: "Warm", candidate: "Serving"}


async def test_what_pods_hold_already_is_not_taken_from_them_when_it_grows(rig: Rig) -> None:
    rig.cluster.put(policy(steps=[{"name": "five", "percent": 5}, {"name": "look", "pause": {}}]))
    first = await serving(rig)
    await another_index(rig, mebibytes=400)
    candidate = rig.status(DESK)["candidate"]
    rig.planes.load_bytes = 900 * MEBIBYTE
    await settle(rig)

    assert (table(rig).share, held(rig)) == (5, {first, candidate})
    assert rig.conditions(DESK)["Ready"] == ("True", "Paused")


async def test_a_pin_to_a_release_that_has_no_room_is_refused_and_the_last_policy_rules_on(rig: Rig) -> None:
    pins = [{"tenants": ["bank"], "release": "stable"}]
    rig.cluster.put(policy(pins=pins))
    first = await serving(rig)
    await another_index(rig, mebibytes=400)
    second = rig.status(DESK)["servingRelease"]
    rig.clock.advance(3 * 3600)
    rig.planes.load_bytes = 500 * MEBIBYTE
    await settle(rig)
    assert held(rig) == {second}

    rig.cluster.put(policy(pins=[{"tenants": ["bank"], "release": first}]))
    await settle(rig)
    assert rig.conditions(RULES)["Accepted"] == ("False", "InsufficientMemory")
    assert f"have no room for {first}" in rig.message("Accepted", RULES)
    assert [pin.release for pin in table(rig).pins] == [second]

    rig.planes.load_bytes = 400 * MEBIBYTE
    await settle(rig)
    assert [pin.release for pin in table(rig).pins] == [first]
    rig.planes.load_bytes = 900 * MEBIBYTE
    await settle(rig)
    assert held(rig) == {first, second}
