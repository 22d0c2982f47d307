"""The metadata that every child carries: name, namespace, labels of its parent."""

from tidegate_operator.core.kinds import Kind, Manifest, api_version
from tidegate_operator.core.names import Component, Label, child_labels
from tidegate_operator.core.observed import Owner

_PARENT_LABELS = {Kind.KNOWLEDGE_BASE: Label.KNOWLEDGE_BASE, Kind.RETRIEVAL_PIPELINE: Label.PIPELINE}


def labels_of(owner: Owner, component: Component) -> dict[str, str]:
    """Return the labels of a child, among them the one by which its events wake the parent."""
    return {**child_labels(component, owner.ref.name), _PARENT_LABELS[owner.ref.kind].value: owner.ref.name}


def child(kind: Kind, name: str, owner: Owner, component: Component, **members: object) -> Manifest:
    """Return a child of `owner` in its own namespace: an owner reference never crosses namespaces."""
    return {
        "apiVersion": api_version(kind),
        "kind": str(kind),
        "metadata": {"name": name, "namespace": owner.ref.namespace, "labels": labels_of(owner, component)},
        **members,
    }


def with_labels(manifest: Manifest, labels: dict[str, str]) -> Manifest:
    """Return `manifest` with further labels."""
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "labels": {**metadata["labels"], **labels}}}
