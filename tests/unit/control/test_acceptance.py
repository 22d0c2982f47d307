"""What CEL can't say about one object by itself."""

from typing import Any

import pytest

from tidegate_api.v1alpha1 import KnowledgeBaseSpec, RetrievalPipelineSpec, RoutingPolicySpec
from tidegate_operator.core.acceptance import (
    knowledge_base_violations,
    pipeline_violations,
    policy_violations,
)


def knowledge_base(metadata: dict[str, Any] | None = None, **spec: Any) -> list[str]:
    """Return what a user is told of a knowledge base whose source has these constants."""
    source = {"name": "docs", "from": {"configMap": {"name": "docs"}}, "metadata": metadata or {}}
    found = knowledge_base_violations(KnowledgeBaseSpec.model_validate({"sources": [source], **spec}))
    return [str(violation) for violation in found]


def pipeline(**spec: Any) -> list[str]:
    """Return what a user is told of a pipeline."""
    whole = {"knowledgeBases": [{"name": "docs"}], "auth": {"anonymous": {}}, **spec}
    return [str(violation) for violation in pipeline_violations(RetrievalPipelineSpec.model_validate(whole))]


def policy(**spec: Any) -> list[str]:
    """Return what a user is told of a policy while one old release can be served."""
    whole = RoutingPolicySpec.model_validate({"pipeline": {"name": "docs"}, **spec})
    return [str(violation) for violation in policy_violations(whole, releases=["rel-0000000000"])]


def test_defaults_are_accepted() -> None:
    assert knowledge_base() == pipeline() == policy() == []


def test_an_unknown_model_is_told_with_those_that_are_known() -> None:
    assert knowledge_base(embedding={"model": "bge-m3"}) == [
        'spec.embedding.model: "bge-m3" is not a known model: write one of auto, minilm and use-m3'
    ]


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("keyword", 2024),
        ("keyword", "hr"),
        ("number", 2024),
        ("number", "1.5"),
        ("bool", "true"),
        ("bool", "False"),
        ("date", "2026-01-31"),
        ("date", "2026-01-31T12:00:00+01:00"),
    ],
)
def test_constants_that_fit_their_declaration(declared: str, value: str | int) -> None:
    assert knowledge_base({"key": value}, metadataSchema={"key": declared}) == []


@pytest.mark.parametrize(
    ("declared", "value"),
    [("number", "many"), ("number", "nan"), ("bool", "yes"), ("bool", 1), ("date", "31.1.2026"), ("date", 20260131)],
)
def test_constants_that_do_not_fit_their_declaration(declared: str, value: str | int) -> None:
    [line] = knowledge_base({"key": value}, metadataSchema={"key": declared})
    assert line.startswith("spec.sources[docs].metadata[key]: ")
    assert line.endswith(f"is no {declared}, which metadataSchema says of key: correct the value or the schema")


def test_constants_that_are_not_declared_are_only_shown() -> None:
    assert knowledge_base({"note": "anything"}) == []


def test_a_member_of_the_pod_that_is_ours_to_decide_is_refused() -> None:
    [line] = pipeline(runtime={"pod": {"hostNetwork": True, "affinity": {}}})
    assert line.startswith(
        "spec.runtime.pod.hostNetwork: can't be set: remove it, or write one of affinity, annotations"
    )


def test_a_query_must_have_room_for_a_byte() -> None:
    assert pipeline(limits={"maxQueryBytes": "500m"}) == [
        'spec.limits.maxQueryBytes: "500m" is less than a byte: write for example 8Ki'
    ]


def test_the_graph_is_part_of_what_a_pipeline_is_judged_by() -> None:
    assert pipeline(output="ranked") == [
        'spec.output: "ranked" is not the preset\'s output: leave it out, or write nodes too'
    ]


def test_a_release_that_can_not_serve_is_refused() -> None:
    assert policy(
        pins=[{"tenants": ["a"], "release": "rel-0000000000"}, {"tenants": ["b"], "release": "rel-9999999999"}],
        rules=[{"name": "staff", "match": {"users": ["u"]}, "serve": "rel-8888888888"}],
    ) == [
        'spec.pins[1].release: "rel-9999999999" is not a release that can serve: '
        "write one of candidate, rel-0000000000 and stable",
        'spec.rules[staff].serve: "rel-8888888888" is not a release that can serve: '
        "write one of candidate, rel-0000000000 and stable",
    ]


def test_a_tenant_has_one_pin() -> None:
    pins = [{"tenants": ["a", "b"], "release": "stable"}, {"tenants": ["c", "b"], "release": "candidate"}]
    assert policy(pins=pins) == [
        'spec.pins[1].tenants: "b" is pinned by spec.pins[0] already: remove it from one of the two'
    ]
