"""The volume of a knowledge base's revisions, unless the user brings a claim."""

from tidegate_api.v1alpha1.knowledgebase import EmbeddedStore
from tidegate_operator.core.kinds import Kind, Manifest
from tidegate_operator.core.names import Component, indexer_name
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.render.meta import child


def indexer_claim(store: EmbeddedStore, owner: Owner) -> Manifest:
    """Return the claim; its size may grow later, the rest is fixed by Kubernetes."""
    spec: Manifest = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": str(store.size)}},
    }
    if store.storage_class_name:
        spec["storageClassName"] = store.storage_class_name
    return child(Kind.CLAIM, indexer_name(owner.ref.name), owner, Component.INDEXER, spec=spec)
