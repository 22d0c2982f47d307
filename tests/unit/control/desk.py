"""Steps and looks that tests of the pipeline `desk` share."""

import json

from tidegate_api.config import RoutingTable
from tidegate_operator.core.keys import Key
from tidegate_operator.core.kinds import Kind, Manifest

from .rig import DESK, DOCS, Rig, knowledge_base, pipeline, source_map

RULES = Key(Kind.ROUTING_POLICY, "acme", "desk")


def rig_with_docs() -> Rig:
    """Return a cluster with the knowledge base `docs`, no pipeline yet."""
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


async def ask(rig: Rig, verb: str, *, to: str = "", key: Key = RULES, id: str = "", **spoilt: object) -> Manifest:
    """Write a request on an object, settle, and return the last outcome."""
    live = rig.cluster.objects[key.ref]
    request = {
        "id": id or f"{verb}-{len(rig.cluster.calls)}",
        "verb": verb,
        "to": to,
        "uid": live["metadata"]["uid"],
        "issuedAt": rig.clock.now().isoformat(),
        "by": "ann",
        "reason": "because",
        **spoilt,
    }
    live["metadata"].setdefault("annotations", {})["tidegate.dev/request"] = json.dumps(request)
    await settle(rig)
    found: Manifest = rig.status(DESK)["requests"][0]
    return found
