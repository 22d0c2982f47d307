"""The documents of `kubectl rag -o json|yaml`. Pure: typed objects in, what JSON knows out.

Members are named and shaped as in the status of the objects, and everything is named: a document
can be read without knowing what was asked.
"""

from tidegate_api.v1alpha1.knowledgebase import KnowledgeBase
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipeline
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicy
from tidegate_cli.kubectl import Document


def status_document(pipeline: RetrievalPipeline, policy: RoutingPolicy | None) -> Document:
    """Return a pipeline's status with that of the policy that rules it; no member `policy` = none does."""
    document: Document = {"name": pipeline.metadata.name, "status": pipeline.status.to_document()}
    if policy is not None:
        document["policy"] = {"name": policy.metadata.name, "status": policy.status.to_document()}
    return document


def releases_document(pipeline: RetrievalPipeline) -> Document:
    """Return the releases of a pipeline, newest first."""
    return {
        "pipeline": pipeline.metadata.name,
        "releases": [release.to_document() for release in pipeline.status.releases],
    }


def revisions_document(base: KnowledgeBase) -> Document:
    """Return the index revisions of a knowledge base, newest first, and which of them the spec asks for."""
    return {
        "knowledgeBase": base.metadata.name,
        "desiredRevision": base.status.desired_revision,
        "revisions": [revision.to_document() for revision in base.status.revisions],
    }
