"""Messages of the offline check: each names the field, the value and what to do next."""

import datetime
from typing import Any

import pytest

from tidegate_api.cel import unknown_fields, violations

SOURCE = {"name": "docs", "from": {"configMap": {"name": "docs"}}}


def knowledge_base(**spec: object) -> dict[str, Any]:
    """Return a manifest, all of it right but for `spec`."""
    return {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "KnowledgeBase",
        "metadata": {"name": "docs"},
        "spec": {"sources": [SOURCE], **spec},
    }


def lines(manifest: dict[str, Any], kind: str = "KnowledgeBase") -> list[str]:
    """Return what a user is told."""
    return [str(violation) for violation in (*violations(kind, manifest), *unknown_fields(kind, manifest))]


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ({"language": "de"}, 'spec.language: "de" is not allowed: write one of auto, en, zh, multi'),
        ({"language": 5}, "spec.language: 5 has the wrong type: write a string, in quotes"),
        ({"sources": {}}, "spec.sources: {} has the wrong type: write a list"),
        ({"chunking": []}, "spec.chunking: [] has the wrong type: write an object"),
        ({"chunking": {"sizeTokens": True}}, "spec.chunking.sizeTokens: true has the wrong type: write an integer"),
        ({"chunking": {"sizeTokens": 9}}, "spec.chunking.sizeTokens: 9 is too small: write at least 16"),
        ({"chunking": {"sizeTokens": 9000}}, "spec.chunking.sizeTokens: 9000 is too large: write at most 8192"),
        ({"sources": []}, "spec.sources: [] is too short: give at least one item"),
        ({"sources": [SOURCE, SOURCE]}, 'spec.sources[1].name: "docs" is given twice: rename or remove one of the two'),
        ({"sources": [None]}, "spec.sources[0]: null has the wrong type: write an object"),
        ({"sources": [{"name": "docs"}]}, "spec.sources[0].from: is missing: add it"),
        (
            {"sources": [{**SOURCE, "refresh": "5 min"}]},
            'spec.sources[0].refresh: "5 min" is malformed: write a duration such as 30s, 15m or 1h30m',
        ),
        (
            {"sources": [{**SOURCE, "metadata": {"day": datetime.date(2026, 1, 31)}}]},
            'spec.sources[0].metadata[day]: "2026-01-31" has the wrong type: write an integer or a string, in quotes',
        ),
        (
            {"store": {"index": {"embedded": {"size": "10 GB"}}}},
            'spec.store.index.embedded.size: "10 GB" is malformed: write a quantity such as 8Ki, 512Mi or 2',
        ),
        (
            {"embedding": {"model": "m" * 64}},
            f'spec.embedding.model: "{"m" * 59}…(64 characters) is too long: at most 63 characters are allowed, shorten it',
        ),
        ({"lenguage": "en"}, "spec.lenguage: is an unknown field; did you mean language? Correct or remove it"),
        (
            {"embedding": {"xyz": 1}},
            "spec.embedding.xyz: is an unknown field; known here: model. Correct or remove it",
        ),
        (
            {"sources": [{"name": "docs", "from": {"configMap": {"name": "a"}, "volume": {"claimName": "b"}}}]},
            'spec.sources[0].from: {"configMap": {"name": "a"}, "volume": {"claimName": "b"}}: '
            "set exactly one of configMap and volume: it says where the documents come from",
        ),
    ],
    ids=lambda value: value.split(":")[0] + str(len(value)) if isinstance(value, str) else "",
)
def test_message(spec: dict[str, object], line: str) -> None:
    assert lines(knowledge_base(**spec)) == [line]


def test_several_mistakes_are_told_at_once_rules_among_them() -> None:
    manifest = knowledge_base(language="de", sources=[{"name": "docs", "from": {}}])
    manifest["metadata"]["name"] = "x" * 253
    told = lines(manifest)
    assert [line.split(": ")[0] for line in told] == ["spec.language", "metadata.name", "spec.sources[0].from"]
    assert told[1] == (
        f'metadata.name: "{"x" * 59}…(253 characters): must have at most 40 characters, because names of other objects '
        "are made from it: choose a shorter name"
    )


def test_a_rule_that_can_not_run_on_a_broken_part_stays_quiet() -> None:
    pipeline = {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "RetrievalPipeline",
        "metadata": {"name": "docs"},
        "spec": {
            "knowledgeBases": [{"name": "docs"}],
            "auth": {"anonymous": {}},
            "limits": {"requestTimeout": "soon"},
        },
    }
    assert lines(pipeline, "RetrievalPipeline") == [
        'spec.limits.requestTimeout: "soon" is malformed: write a duration such as 30s, 15m or 1h30m'
    ]


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ({}, {"apiVersion", "kind", "metadata.name", "spec"}),
        ({**knowledge_base(), "apiVersion": "tidegate.dev/v2"}, {"apiVersion"}),
        ({**knowledge_base(), "metadata": {}}, {"metadata.name"}),
        ({**knowledge_base(), "spec": None}, {"spec"}),
    ],
    ids=["nothing", "version", "name", "spec"],
)
def test_what_makes_a_manifest_ours_is_checked(manifest: dict[str, Any], told: set[str]) -> None:
    assert {violation.path for violation in violations("KnowledgeBase", manifest)} == told


def test_an_unknown_kind_is_refused() -> None:
    [violation] = violations("KnowledgeBse", {})
    assert violation.message == (
        '"KnowledgeBse" is not a kind of tidegate.dev/v1alpha1: '
        "write one of KnowledgeBase, RetrievalPipeline and RoutingPolicy"
    )
    assert unknown_fields("KnowledgeBse", {"x": 1}) == []


def test_a_number_too_large_for_the_api_is_a_violation_and_no_crash() -> None:
    manifest = knowledge_base(sources=[{**SOURCE, "metadata": {"n": 10**30}}])
    assert lines(manifest) == [
        "spec.sources[0].metadata[n]: 1000000000000000000000000000000 is too large: write at most 9007199254740992"
    ]


def test_numbers_that_json_has_not_are_refused() -> None:
    manifest = {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "RoutingPolicy",
        "metadata": {"name": "docs"},
        "spec": {"pipeline": {"name": "docs"}, "rollout": {"steps": [{"name": "a", "percent": float("nan")}]}},
    }
    assert lines(manifest, "RoutingPolicy") == ["spec.rollout.steps[0].percent: NaN has the wrong type: write a number"]


def test_keys_that_are_no_strings_are_unknown_fields() -> None:
    manifest = knowledge_base()
    manifest["spec"][True] = "on"
    [line] = lines(manifest)
    assert line.startswith("spec.True: is an unknown field")
