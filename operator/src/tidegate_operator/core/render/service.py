"""Services: the one that applications use, those between pods, and the indexer's."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidegate_operator.core.kinds import Kind, Manifest
from tidegate_operator.core.names import Component
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.render.meta import child


@dataclass(frozen=True, slots=True)
class Port:
    """A named port, the same number inside and outside."""

    name: str
    number: int


def service(
    name: str, owner: Owner, component: Component, *, selector: Mapping[str, str], ports: Iterable[Port]
) -> Manifest:
    """Return a Service that sends to the ready pods of `selector`."""
    spec: Manifest = {
        "type": "ClusterIP",
        "selector": dict(selector),
        "ports": [{"name": port.name, "port": port.number, "targetPort": port.name} for port in ports],
    }
    return child(Kind.SERVICE, name, owner, component, spec=spec)
