"""Names of children, labels and annotations: deterministic, legal and never the same for two parents.

Parents are at most 40 characters and never end like a child (CEL refuses both), so every name made
here is legal as it is. What comes from elsewhere and may be longer, or hold other characters, is cut
and ends in a hash of the whole, so two that agree in what is kept still differ.
"""

import re
from enum import StrEnum

from tidegate_api.hashing import content_hash

NAME_CHARACTERS = 63

MANAGED_BY = "tidegate-operator"

_LEGAL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?|")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_.-]")


class Label(StrEnum):
    """Labels that we set or select by."""

    NAME = "app.kubernetes.io/name"
    INSTANCE = "app.kubernetes.io/instance"
    COMPONENT = "app.kubernetes.io/component"
    PART_OF = "app.kubernetes.io/part-of"
    MANAGED_BY = "app.kubernetes.io/managed-by"
    KNOWLEDGE_BASE = "tidegate.dev/knowledge-base"
    PIPELINE = "tidegate.dev/pipeline"
    RELEASE = "tidegate.dev/release"
    DEPLOYMENT = "tidegate.dev/deployment"
    WATCH = "tidegate.dev/watch"


class Annotation(StrEnum):
    """Annotations that we write or obey."""

    REQUEST = "tidegate.dev/request"
    SYNC = "tidegate.dev/sync"
    PAUSED = "tidegate.dev/paused"
    FORCE_DELETE = "tidegate.dev/force-delete"
    CONFIRM_DELETIONS = "tidegate.dev/confirm-deletions"
    INPUTS = "tidegate.dev/inputs"
    TEMPLATE = "tidegate.dev/template"
    SERVED_FROM = "tidegate.dev/served-from"
    SERVED_UNTIL = "tidegate.dev/served-until"
    REJECTED = "tidegate.dev/rejected"


class Component(StrEnum):
    """What a child is part of."""

    INDEXER = "indexer"
    ROUTING = "routing"
    RETRIEVAL = "retrieval"


def indexer_name(knowledge_base: str) -> str:
    """Return the name of everything that makes up the indexer of a knowledge base."""
    return f"{knowledge_base}-{Component.INDEXER}"


def routing_name(pipeline: str) -> str:
    """Return the name of the ConfigMap that holds the routing table."""
    return f"{pipeline}-{Component.ROUTING}"


def override_name(pipeline: str) -> str:
    """Return the name of the break-glass ConfigMap."""
    return f"{pipeline}-override"


def release_object_name(pipeline: str, release: str) -> str:
    """Return the name of the ControllerRevision that freezes `release`, such as `rel-0123456789`."""
    return f"{pipeline}-{release}"


def deployment_name(pipeline: str, deployment_hash: str) -> str:
    """Return the name of a Deployment of runtime pods, and of its peer Service."""
    return f"{pipeline}-{deployment_hash}"


def index_label(knowledge_base: str) -> str:
    """Return the label by which a release refers to a revision of a knowledge base."""
    return f"index.tidegate.dev/{knowledge_base}"


def child_labels(component: Component, parent: str) -> dict[str, str]:
    """Return the labels that every child carries."""
    return {
        Label.NAME.value: "tidegate",
        Label.INSTANCE.value: label_value(parent),
        Label.COMPONENT.value: component.value,
        Label.PART_OF.value: "tidegate",
        Label.MANAGED_BY.value: MANAGED_BY,
    }


def label_value(text: str) -> str:
    """Return `text` where it is a legal label value, else what is legal of it and a hash of the whole."""
    return text if _LEGAL.fullmatch(text) and len(text) <= NAME_CHARACTERS else _hashed(text)


def _hashed(text: str) -> str:
    digits = content_hash(text)
    head = _ILLEGAL.sub("-", text)[: NAME_CHARACTERS - len(digits) - 1].strip("-_.")
    return f"{head}-{digits}" if head else digits
