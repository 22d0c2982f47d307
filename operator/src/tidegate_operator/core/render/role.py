"""What pods may do with the API server: read ConfigMaps by name, hold a Lease by name. Nothing else, but that
an indexer may touch its own ConfigMap, to say that its state is worth a look.

A watch of one object is allowed by name when the client selects it by `metadata.name`. The Lease is
made by the operator, because `create` cannot be limited to a name.
"""

from collections.abc import Iterable

from tidegate_operator.core.kinds import Kind, Manifest
from tidegate_operator.core.names import Component
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.render.meta import child

_GROUP = "rbac.authorization.k8s.io"


def role(
    name: str,
    owner: Owner,
    component: Component,
    *,
    config_maps: Iterable[str],
    lease: str | None = None,
    touched: str | None = None,
) -> Manifest:
    """Return a Role that is limited to the named objects."""
    readable = sorted(set(config_maps))
    rules: list[Manifest] = [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": readable, "verbs": ["get", "list", "watch"]}
    ]
    if lease is not None:
        rules.append(
            {
                "apiGroups": ["coordination.k8s.io"],
                "resources": ["leases"],
                "resourceNames": [lease],
                "verbs": ["get", "update"],
            }
        )
    if touched is not None:
        rules.append({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [touched], "verbs": ["patch"]})
    return child(Kind.ROLE, name, owner, component, rules=rules)


def role_binding(name: str, owner: Owner, component: Component, *, account: str) -> Manifest:
    """Return the binding of the Role of that name to a service account of the same namespace."""
    return child(
        Kind.ROLE_BINDING,
        name,
        owner,
        component,
        roleRef={"apiGroup": _GROUP, "kind": "Role", "name": name},
        subjects=[{"kind": "ServiceAccount", "name": account, "namespace": owner.ref.namespace}],
    )


def lease(name: str, owner: Owner, component: Component) -> Manifest:
    """Return an empty Lease for the pod to hold."""
    return child(Kind.LEASE, name, owner, component)
