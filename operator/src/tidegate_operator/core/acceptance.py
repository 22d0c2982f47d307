"""What CEL can't say about a spec and no other object is needed for: reasons for `Accepted=False`.

The graph of a pipeline has a module of its own. What depends on other objects (a Secret, a
KnowledgeBase, a claim) is judged where they are read.
"""

from collections.abc import Collection, Iterator

from tidegate_api.builtins import UnknownModelError, resolve_embedder
from tidegate_api.metadata import misfit
from tidegate_api.v1alpha1.common import quantity_value
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseSpec
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipelineSpec
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicySpec
from tidegate_api.violation import Violation, listed, shown
from tidegate_operator.core.graph import graph_violations

# Members of `runtime.pod`; what they hold is the API server's to judge.
POD_MEMBERS = frozenset(
    {
        "affinity",
        "annotations",
        "env",
        "imagePullSecrets",
        "labels",
        "nodeSelector",
        "priorityClassName",
        "runtimeClassName",
        "serviceAccountName",
        "tolerations",
        "topologySpreadConstraints",
        "volumeMounts",
        "volumes",
    }
)


def knowledge_base_violations(spec: KnowledgeBaseSpec) -> list[Violation]:
    """Return what is wrong with a KnowledgeBase that the schema accepts."""
    return [*_model_violations(spec.embedding.model), *_constant_violations(spec)]


def pipeline_violations(spec: RetrievalPipelineSpec) -> list[Violation]:
    """Return what is wrong with a RetrievalPipeline that the schema accepts."""
    found = graph_violations(spec)
    for member in sorted(spec.runtime.pod.keys() - POD_MEMBERS):
        path = f"spec.runtime.pod.{member}"
        found.append(Violation(path, f"can't be set: remove it, or write one of {listed(POD_MEMBERS)}"))
    if quantity_value(spec.limits.max_query_bytes) < 1:
        value = shown(spec.limits.max_query_bytes)
        found.append(Violation("spec.limits.maxQueryBytes", f"{value} is less than a byte: write for example 8Ki"))
    return found


def policy_violations(spec: RoutingPolicySpec, *, releases: Collection[str]) -> list[Violation]:
    """Return what is wrong with a RoutingPolicy that the schema accepts. `releases` are those that can be served."""
    servable = {"stable", "candidate", *releases}
    targets = [(f"spec.pins[{position}].release", pin.release) for position, pin in enumerate(spec.pins)]
    targets += [(f"spec.rules[{rule.name}].serve", rule.serve) for rule in spec.rules]
    found = [
        Violation(path, f"{shown(target)} is not a release that can serve: write one of {listed(servable)}")
        for path, target in targets
        if target not in servable
    ]
    return [*found, *_pinned_twice(spec)]


def _model_violations(model: str) -> Iterator[Violation]:
    try:
        resolve_embedder(model, "en")
    except UnknownModelError as error:
        yield Violation("spec.embedding.model", str(error))


def _constant_violations(spec: KnowledgeBaseSpec) -> Iterator[Violation]:
    """Yield constants of sources that do not fit what metadataSchema says of their key."""
    for source in spec.sources:
        for key, value in source.metadata.items():
            declared = spec.metadata_schema.get(key)
            if declared is not None and (reason := misfit(value, key=key, declared=declared)):
                yield Violation(f"spec.sources[{source.name}].metadata[{key}]", reason)


def _pinned_twice(spec: RoutingPolicySpec) -> Iterator[Violation]:
    first: dict[str, int] = {}
    for position, pin in enumerate(spec.pins):
        for tenant in pin.tenants:
            if first.setdefault(tenant, position) != position:
                yield Violation(
                    f"spec.pins[{position}].tenants",
                    f"{shown(tenant)} is pinned by spec.pins[{first[tenant]}] already: remove it from one of the two",
                )
