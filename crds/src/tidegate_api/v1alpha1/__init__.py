"""The kinds of `tidegate.dev/v1alpha1`. Within v1alpha1 the schema only grows."""

from tidegate_api.v1alpha1.common import API_VERSION, GROUP, VERSION, Condition, ObjectMeta, Resource
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBase, KnowledgeBaseSpec, KnowledgeBaseStatus
from tidegate_api.v1alpha1.retrievalpipeline import (
    RetrievalPipeline,
    RetrievalPipelineSpec,
    RetrievalPipelineStatus,
)
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicy, RoutingPolicySpec, RoutingPolicyStatus

KINDS: tuple[type[KnowledgeBase] | type[RetrievalPipeline] | type[RoutingPolicy], ...] = (
    KnowledgeBase,
    RetrievalPipeline,
    RoutingPolicy,
)

__all__ = [
    "API_VERSION",
    "GROUP",
    "KINDS",
    "VERSION",
    "Condition",
    "KnowledgeBase",
    "KnowledgeBaseSpec",
    "KnowledgeBaseStatus",
    "ObjectMeta",
    "Resource",
    "RetrievalPipeline",
    "RetrievalPipelineSpec",
    "RetrievalPipelineStatus",
    "RoutingPolicy",
    "RoutingPolicySpec",
    "RoutingPolicyStatus",
]
