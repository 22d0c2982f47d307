"""A drain takes the pods of a pipeline one at a time; with a single one it is not blocked for ever."""

from tidegate_operator.core.kinds import Kind, Manifest
from tidegate_operator.core.names import Component
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.render.meta import child, labels_of


def disruption_budget(owner: Owner) -> Manifest:
    """Return the PodDisruptionBudget over all pods of a pipeline."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": labels_of(owner, Component.RETRIEVAL)}}
    return child(Kind.DISRUPTION_BUDGET, owner.ref.name, owner, Component.RETRIEVAL, spec=spec)
