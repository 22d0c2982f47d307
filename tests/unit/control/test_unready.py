"""Pods that run and do not get ready: their own reason reaches the conditions, and they are asked less and less often."""

from dataclasses import replace

import pytest

from tidegate_operator.core.kinds import Kind, Ref

from .desk import deployments, rig_with_docs, serving, settle
from .rig import DESK, Rig, pipeline, secret

NO_ENTRY = "the Secret that spec.auth.apiKeys.secretRef names has no entry; add one entry for each key"
KEYS = {"apiKeys": {"secretRef": {"name": "keys"}}}


@pytest.fixture
def rig() -> Rig:
    rig = rig_with_docs()
    rig.cluster.put(secret("keys"))
    return rig


async def unready(rig: Rig, reason: str, message: str) -> str:
    """Let no pod of the serving release be ready and say why; return the release."""
    release = await serving(rig, auth=KEYS)
    rig.planes.unready = (reason, message)
    rig.controllers.unprobed = {deployments(rig)[0]["metadata"]["name"]}
    await settle(rig)
    return release


def turn(rig: Rig) -> None:
    """Note on every pod that it has just stopped being ready."""
    turned = {"type": "Ready", "status": "False", "lastTransitionTime": rig.clock.now().isoformat()}
    for pod in rig.cluster.of_kind(Kind.POD):
        rig.cluster.set_status(Ref(Kind.POD, "acme", pod["metadata"]["name"]), {"conditions": [turned]})


async def test_a_secret_without_a_usable_key_is_said_with_its_reason(rig: Rig) -> None:
    release = await unready(rig, "SecretInvalid", NO_ENTRY)

    conditions = rig.conditions(DESK)
    assert conditions["Ready"] == ("False", "SecretInvalid")
    assert conditions["Stalled"] == ("True", "SecretInvalid")
    assert conditions["Available"] == ("False", "NoReadyPod")
    assert "Reconciling" not in conditions
    assert rig.message("Ready", DESK) == f"pods of {release} do not get ready: {NO_ENTRY}"
    assert rig.message("Available", DESK) == f"no pod of the serving release is ready: {NO_ENTRY}"

    rig.planes.unready, rig.controllers.unprobed = None, set()
    await settle(rig)
    assert rig.conditions(DESK)["Ready"] == ("True", "InForce")


async def test_a_first_release_that_cannot_get_ready_says_why(rig: Rig) -> None:
    rig.planes.unready = ("SecretInvalid", NO_ENTRY)
    rig.planes.warm = set()
    await serving(rig, auth=KEYS)
    rig.controllers.unprobed = {deployments(rig)[0]["metadata"]["name"]}
    await settle(rig)

    assert rig.conditions(DESK)["Ready"] == ("False", "SecretInvalid")
    assert rig.message("Ready", DESK).endswith(NO_ENTRY)


async def test_a_pod_that_is_not_ready_beside_one_that_is_degrades(rig: Rig) -> None:
    release = await serving(rig, auth=KEYS, runtime={"replicas": 2})
    (deployment,) = deployments(rig)
    name = deployment["metadata"]["name"]
    rig.planes.unready = ("SecretInvalid", NO_ENTRY)
    rig.cluster.set_status(Ref(Kind.DEPLOYMENT, "acme", name), {"readyReplicas": 1})
    rig.cluster.set_status(Ref(Kind.POD, "acme", f"{name}-1"), {"conditions": [{"type": "Ready", "status": "False"}]})
    await rig.reconciler(DESK)

    told = f"some pods of {release} do not get ready, the others serve: {NO_ENTRY}"
    assert (rig.message("Ready", DESK), rig.message("Degraded", DESK)) == (told, told)
    assert rig.conditions(DESK)["Available"] == ("True", "Serving")


async def test_a_pod_that_names_no_reason_is_given_the_time_of_a_start(rig: Rig) -> None:
    release = await unready(rig, "", "the runtime can't be reached")
    turn(rig)
    await rig.reconciler(DESK)
    assert rig.conditions(DESK)["Ready"] == ("Unknown", "Starting")

    rig.clock.advance(121)
    await rig.reconciler(DESK)
    assert rig.conditions(DESK)["Ready"] == ("False", "PodNotReady")
    assert rig.message("Ready", DESK) == f"pods of {release} do not get ready: the runtime can't be reached"


async def test_a_pod_that_loads_is_on_its_way_however_long_it_takes(rig: Rig) -> None:
    await unready(rig, "", "release rel-1 is Loading")
    rig.planes.warm = set()
    rig.clock.advance(1000)
    await rig.reconciler(DESK)

    assert rig.conditions(DESK)["Ready"] == ("Unknown", "Starting")


async def test_pods_are_asked_the_less_the_longer_they_have_stood(rig: Rig) -> None:
    await unready(rig, "SecretInvalid", NO_ENTRY)
    waits = []
    for _ in range(5):
        waits.append(await rig.reconciler(DESK))
        rig.clock.advance(60)
    before = len(rig.cluster.writes)
    await rig.reconciler(DESK)

    assert waits == [1.0, 6.0, 12.0, 15.0, 15.0]
    assert len(rig.cluster.writes) == before


async def test_pods_that_start_are_asked_the_less_too_and_a_candidate_often(rig: Rig) -> None:
    await unready(rig, "", "")
    rig.clock.advance(100)
    assert await rig.reconciler(DESK) == 10.0

    rig.planes.warm = {rig.status(DESK)["servingRelease"]}
    rig.cluster.put(pipeline(top_k=10, auth=KEYS))
    assert await rig.reconciler(DESK) == 1.0


async def test_a_candidate_whose_pods_find_no_node_is_asked_for_less_and_less_often_until_they_do(rig: Rig) -> None:
    await serving(rig)
    rig.platform = replace(rig.platform, version="2.0")
    rig.restart()
    rig.cluster.put(pipeline(top_k=10))
    await rig.reconciler(DESK)
    new = max(deployments(rig), key=lambda each: int(each["metadata"]["resourceVersion"]))["metadata"]["name"]
    rig.controllers.pending = {new: "0/1 nodes are available: 1 Insufficient cpu."}
    await settle(rig)
    rig.clock.advance(600)
    assert await rig.reconciler(DESK) == 15.0

    rig.controllers.pending, rig.controllers.unprobed = {}, {new}
    await settle(rig)
    assert await rig.reconciler(DESK) == 1.0
