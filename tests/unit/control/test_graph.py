"""Graphs that can't be executed: every mistake is told, with node, field, value and next step."""

from typing import Any

import pytest

from tidegate_api.v1alpha1 import RetrievalPipelineSpec
from tidegate_operator.core.graph import graph_violations

LEXICAL = {"name": "lexical", "type": "bm25"}
DENSE = {"name": "dense", "type": "dense"}
FUSED = {"name": "fused", "type": "fuse", "inputs": ["lexical", "dense"]}


def told(*nodes: dict[str, Any], output: str | None = "fused") -> list[str]:
    """Return what a user is told of a graph."""
    spec = {"knowledgeBases": [{"name": "docs"}], "auth": {"anonymous": {}}, "nodes": list(nodes), "output": output}
    return [str(violation) for violation in graph_violations(RetrievalPipelineSpec.model_validate(spec))]


@pytest.mark.parametrize(
    ("nodes", "output"),
    [
        ([], None),
        ([], "fused"),
        ([LEXICAL], "lexical"),
        ([LEXICAL, DENSE, FUSED], "fused"),
        ([FUSED, DENSE, LEXICAL], "fused"),
        ([LEXICAL, DENSE, FUSED, {"name": "again", "type": "fuse", "inputs": ["fused", "dense"]}], "again"),
        ([LEXICAL, DENSE, {**FUSED, "with": {"weights": {"lexical": 0, "dense": 0.95}}}], "fused"),
        ([LEXICAL, DENSE, {**FUSED, "with": {"method": "rrf", "k": 60}}], "fused"),
    ],
    ids=["preset", "its output", "one leg", "hybrid", "order", "two fusions", "weights", "rrf"],
)
def test_graphs_that_can_be_executed(nodes: list[dict[str, Any]], output: str | None) -> None:
    assert told(*nodes, output=output) == []


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        (
            [LEXICAL, DENSE, {**FUSED, "inputs": ["lexical", "dense", "lexcal"]}],
            'spec.nodes[fused].inputs: "lexcal" is not a node: did you mean lexical? Correct or remove it',
        ),
        (
            [LEXICAL, DENSE, {**FUSED, "inputs": ["lexical", "dense", "x"]}],
            'spec.nodes[fused].inputs: "x" is not a node: write one of dense, fused and lexical',
        ),
        (
            [LEXICAL, DENSE, {**FUSED, "inputs": ["lexical", "dense", "dense"]}],
            'spec.nodes[fused].inputs: "dense" is given twice: remove one of the two',
        ),
        (
            [{**LEXICAL, "inputs": ["dense"]}, DENSE, FUSED],
            'spec.nodes[lexical].inputs: ["dense"]: bm25 reads the indexes, remove its inputs',
        ),
        (
            [LEXICAL, DENSE, FUSED, {"name": "spare", "type": "dense"}],
            'spec.nodes[spare]: "spare" has no way to the output "fused": use it as an input or remove it',
        ),
        (
            [LEXICAL, DENSE, {**FUSED, "inputs": ["lexical", "dense", "fused"]}],
            'spec.nodes[fused].inputs: "fused" closes the cycle fused -> fused: remove one of these inputs',
        ),
        (
            [{**LEXICAL, "with": {"topk": 5}}, DENSE, FUSED],
            "spec.nodes[lexical].with.topk: is not a setting of bm25: did you mean topK? Correct or remove it",
        ),
        (
            [{**LEXICAL, "with": {"top_k": 5}}, DENSE, FUSED],
            "spec.nodes[lexical].with.top_k: is not a setting of bm25: did you mean topK? Correct or remove it",
        ),
        (
            [{**LEXICAL, "with": {"topK": "50"}}, DENSE, FUSED],
            'spec.nodes[lexical].with.topK: "50" is wrong: it should be a valid integer, correct it',
        ),
        (
            [{**LEXICAL, "with": {"topK": 0}}, DENSE, FUSED],
            "spec.nodes[lexical].with.topK: 0 is wrong: it should be greater than or equal to 1, correct it",
        ),
        (
            [LEXICAL, DENSE, {**FUSED, "with": {"method": "max"}}],
            "spec.nodes[fused].with.method: \"max\" is wrong: it should be 'weighted' or 'rrf', correct it",
        ),
        (
            [LEXICAL, DENSE, {**FUSED, "with": {"weights": {"lexcal": 0.4}}}],
            'spec.nodes[fused].with.weights.lexcal: "lexcal" is not an input of this node: '
            "did you mean lexical? Correct or remove it",
        ),
        (
            [LEXICAL, DENSE, {**FUSED, "with": {"weights": {"lexical": 0, "dense": 0}}}],
            'spec.nodes[fused].with.weights: {"lexical": 0.0, "dense": 0.0} leaves nothing to rank by: '
            "give an input a weight above 0",
        ),
    ],
    ids=[
        "misspelt input",
        "unknown input",
        "input twice",
        "leg with inputs",
        "unused",
        "itself",
        "misspelt setting",
        "python name",
        "type",
        "bound",
        "choice",
        "unknown weight",
        "no weight",
    ],
)
def test_message(nodes: list[dict[str, Any]], line: str) -> None:
    assert told(*nodes) == [line]


def test_a_fusion_needs_inputs() -> None:
    assert told({"name": "fused", "type": "fuse"}) == [
        "spec.nodes[fused].inputs: []: fuse joins other nodes, name at least one of them"
    ]


def test_a_cycle_is_shown_whole() -> None:
    first = {"name": "first", "type": "fuse", "inputs": ["lexical", "third"]}
    second = {"name": "second", "type": "fuse", "inputs": ["first"]}
    third = {"name": "third", "type": "fuse", "inputs": ["second"]}
    [line] = told(LEXICAL, first, second, third, output="third")
    assert "closes the cycle" in line
    assert line.endswith("remove one of these inputs")
    circle = line.split("cycle ")[1].split(":")[0].split(" -> ")
    assert circle[0] == circle[-1]
    assert set(circle) == {"first", "second", "third"}
    # The blamed node is the one that has the named input.
    blamed, named = line.split("[")[1].split("]")[0], line.split('"')[1]
    inputs = {"first": ["third"], "second": ["first"], "third": ["second"]}
    assert named in inputs[blamed]


@pytest.mark.parametrize(
    ("nodes", "output", "line"),
    [
        (
            [LEXICAL],
            None,
            "spec.output: is missing: name the node whose result is the answer, one of lexical",
        ),
        ([LEXICAL], "lexcal", 'spec.output: "lexcal" is not a node: did you mean lexical? Correct or remove it'),
        ([], "lexical", 'spec.output: "lexical" is not the preset\'s output: leave it out, or write nodes too'),
    ],
    ids=["missing", "unknown", "preset"],
)
def test_output(nodes: list[dict[str, Any]], output: str | None, line: str) -> None:
    assert told(*nodes, output=output) == [line]


def test_every_mistake_is_told_at_once() -> None:
    lines = told({**LEXICAL, "with": {"k": 1}}, {**FUSED, "inputs": ["lexical", "x"]}, output="answer")
    assert [line.split(": ")[0] for line in lines] == [
        "spec.nodes[lexical].with.k",
        "spec.nodes[fused].inputs",
        "spec.output",
    ]
