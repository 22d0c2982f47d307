"""Kinds that the operator reads or writes, and where the API server serves them.

One table for the adapter's paths, the start-up check of rights and the fake cluster of the tests,
so that a kind is added in one place.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

Manifest: TypeAlias = dict[str, Any]

GROUP = "tidegate.dev"
API_VERSION = f"{GROUP}/v1alpha1"
FIELD_MANAGER = "tidegate-operator"


class Kind(StrEnum):
    """Closed set of kinds."""

    KNOWLEDGE_BASE = "KnowledgeBase"
    RETRIEVAL_PIPELINE = "RetrievalPipeline"
    ROUTING_POLICY = "RoutingPolicy"
    CONFIG_MAP = "ConfigMap"
    CONTROLLER_REVISION = "ControllerRevision"
    DEPLOYMENT = "Deployment"
    LEASE = "Lease"
    NETWORK_POLICY = "NetworkPolicy"
    CLAIM = "PersistentVolumeClaim"
    POD = "Pod"
    DISRUPTION_BUDGET = "PodDisruptionBudget"
    ROLE = "Role"
    ROLE_BINDING = "RoleBinding"
    SECRET = "Secret"  # noqa: S105 - the name of a kind, not a secret
    SERVICE = "Service"
    SERVICE_ACCOUNT = "ServiceAccount"


_SERVED: dict[Kind, tuple[str, str]] = {
    Kind.KNOWLEDGE_BASE: (API_VERSION, "knowledgebases"),
    Kind.RETRIEVAL_PIPELINE: (API_VERSION, "retrievalpipelines"),
    Kind.ROUTING_POLICY: (API_VERSION, "routingpolicies"),
    Kind.CONFIG_MAP: ("v1", "configmaps"),
    Kind.CONTROLLER_REVISION: ("apps/v1", "controllerrevisions"),
    Kind.DEPLOYMENT: ("apps/v1", "deployments"),
    Kind.LEASE: ("coordination.k8s.io/v1", "leases"),
    Kind.NETWORK_POLICY: ("networking.k8s.io/v1", "networkpolicies"),
    Kind.CLAIM: ("v1", "persistentvolumeclaims"),
    Kind.POD: ("v1", "pods"),
    Kind.DISRUPTION_BUDGET: ("policy/v1", "poddisruptionbudgets"),
    Kind.ROLE: ("rbac.authorization.k8s.io/v1", "roles"),
    Kind.ROLE_BINDING: ("rbac.authorization.k8s.io/v1", "rolebindings"),
    Kind.SECRET: ("v1", "secrets"),
    Kind.SERVICE: ("v1", "services"),
    Kind.SERVICE_ACCOUNT: ("v1", "serviceaccounts"),
}

OWN_KINDS = (Kind.KNOWLEDGE_BASE, Kind.RETRIEVAL_PIPELINE, Kind.ROUTING_POLICY)


def api_version(kind: Kind) -> str:
    """Return the apiVersion of `kind`, such as `apps/v1`."""
    return _SERVED[kind][0]


def group(kind: Kind) -> str:
    """Return the API group of `kind`; empty for the core group."""
    version = api_version(kind)
    return version.split("/")[0] if "/" in version else ""


def plural(kind: Kind) -> str:
    """Return the resource name of `kind` in paths and RBAC rules."""
    return _SERVED[kind][1]


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """Names one object."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return the form used in messages: `ConfigMap docs-indexer`."""
        return f"{self.kind} {self.name}"


def with_metadata(manifest: Manifest, **members: object) -> Manifest:
    """Return the manifest with these members of its metadata replaced."""
    return {**manifest, "metadata": {**manifest["metadata"], **members}}


def ref_of(manifest: Manifest) -> Ref:
    """Return the reference of a rendered or live object."""
    metadata = manifest["metadata"]
    return Ref(Kind(manifest["kind"]), metadata["namespace"], metadata["name"])
