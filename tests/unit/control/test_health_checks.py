"""What GitOps tools make of our status: Argo CD by the health check that we ship, Flux and kubectl by kstatus.

The states come from a control plane in memory; the table is that of the status contract.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from lupa import LuaRuntime

from tidegate_operator.core.keys import Key
from tidegate_operator.core.kinds import Manifest

from .desk import RULES, ask, rig_with_docs, settle
from .rig import DESK, DOCS, Rig, knowledge_base, pipeline, policy

HEALTH = Path(__file__).parents[3] / "examples" / "argocd" / "health.yaml"
STEPS = [{"name": "five", "percent": 5}, {"name": "look", "pause": {}}]


def kstatus(manifest: Manifest) -> str:
    """Judge as kstatus does: sigs.k8s.io/cli-utils/pkg/kstatus/status, the rules for any custom resource."""
    status = manifest.get("status") or {}
    conditions = {each["type"]: each["status"] for each in status.get("conditions", [])}
    if status.get("observedGeneration", manifest["metadata"]["generation"]) != manifest["metadata"]["generation"]:
        return "InProgress"
    if conditions.get("Reconciling") == "True":
        return "InProgress"
    if conditions.get("Stalled") == "True":
        return "Failed"
    return "Current" if conditions.get("Ready", "True") == "True" else "InProgress"


def argo(manifest: Manifest) -> str:
    """Judge as Argo CD does with our check."""
    lua: Any = LuaRuntime(unpack_returned_tuples=True)
    settings = yaml.safe_load(HEALTH.read_text())["data"]
    check = settings[f"resource.customizations.health.tidegate.dev_{manifest['kind']}"]
    verdict = lua.eval(f"function(obj) {check} end")(lua.table_from(manifest, recursive=True))
    assert verdict["message"]
    return str(verdict["status"])


def judged(rig: Rig, key: Key) -> tuple[str, str]:
    """Return both judgements."""
    manifest = rig.cluster.objects[key.ref]
    return kstatus(manifest), argo(manifest)


@pytest.fixture
def rig() -> Rig:
    """Return a control plane with documents and their knowledge base."""
    return rig_with_docs()


async def serving(rig: Rig, **spec: object) -> None:
    """Let a first release serve under a policy with a pause."""
    rig.cluster.put(policy(steps=STEPS))
    rig.cluster.put(pipeline(**spec))
    await settle(rig)


async def test_what_serves_is_healthy(rig: Rig) -> None:
    await serving(rig)

    assert {key: judged(rig, key) for key in (DOCS, DESK, RULES)} == dict.fromkeys(
        (DOCS, DESK, RULES), ("Current", "Healthy")
    )


@pytest.mark.parametrize("status", [None, {"observedGeneration": -1}])
async def test_what_nobody_has_looked_at_is_under_way(rig: Rig, status: Manifest | None) -> None:
    manifest = rig.cluster.objects[DOCS.ref]
    if status is None:
        manifest.pop("status", None)
        assert argo(manifest) == "Progressing"
    else:  # what the definition's default makes of an absent one, which kstatus would take for current
        manifest["status"] = status
        assert (kstatus(manifest), argo(manifest)) == ("InProgress", "Progressing")


async def test_a_spec_that_was_just_changed_is_under_way_whatever_the_old_one_was(rig: Rig) -> None:
    await serving(rig)
    rig.cluster.put(knowledge_base(size_tokens=50))
    rig.cluster.put(pipeline(top_k=10))

    assert (judged(rig, DOCS), judged(rig, DESK)) == (("InProgress", "Progressing"), ("InProgress", "Progressing"))


async def test_a_build_and_pods_that_start_are_under_way(rig: Rig) -> None:
    rig.cluster.put(pipeline())
    for key in (DOCS, DESK):
        await rig.reconciler(key)

    assert (judged(rig, DOCS), judged(rig, DESK)) == (("InProgress", "Progressing"), ("InProgress", "Progressing"))


async def test_a_rollout_that_waits_for_a_person_is_suspended_and_current(rig: Rig) -> None:
    await serving(rig)
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)

    assert (judged(rig, DESK), judged(rig, RULES)) == (("Current", "Suspended"), ("Current", "Suspended"))


async def test_a_pipeline_that_is_suspended_is_told_as_that(rig: Rig) -> None:
    await serving(rig, suspend=True)

    assert (judged(rig, DESK), judged(rig, RULES)) == (("Current", "Suspended"), ("Current", "Suspended"))


async def test_a_change_that_was_taken_back_is_degraded_though_the_old_release_serves(rig: Rig) -> None:
    await serving(rig)
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    await ask(rig, "abort")

    assert (judged(rig, DESK), judged(rig, RULES)) == (("Failed", "Degraded"), ("Failed", "Degraded"))


async def test_a_spec_that_cannot_be_used_is_degraded(rig: Rig) -> None:
    rig.cluster.put(pipeline(auth={"apiKeys": {"secretRef": {"name": "absent"}}}))
    await settle(rig)

    assert judged(rig, DESK) == ("Failed", "Degraded")
