"""Graphs are put in order once, and what cannot run is refused with a message that names it."""

import pytest

from tidegate_api.config import NodeConfig, PipelineConfig
from tidegate_runtime.errors import InvalidPipelineError
from tidegate_runtime.pipeline.graph import compile_graph

LEXICAL = NodeConfig(name="lexical", type="bm25", settings={"topK": 20})
DENSE = NodeConfig(name="dense", type="dense")


def pipeline(*nodes: NodeConfig, output: str) -> PipelineConfig:
    return PipelineConfig(knowledge_bases=["docs"], nodes=list(nodes), output=output)


def fuse(name: str, *inputs: str, **settings: object) -> NodeConfig:
    return NodeConfig(name=name, type="fuse", inputs=list(inputs), settings=settings)


def test_inputs_come_before_the_nodes_that_use_them() -> None:
    graph = compile_graph(
        pipeline(fuse("last", "first", "dense"), DENSE, fuse("first", "lexical", "dense"), LEXICAL, output="last")
    )
    assert [node.name for node in graph.fusions] == ["first", "last"]
    assert {(leg.name, leg.kind, leg.top_k) for leg in graph.legs} == {("lexical", "bm25", 20), ("dense", "dense", 50)}
    assert graph.output_kind == "fused"


def test_nodes_that_the_output_does_not_need_are_left_out() -> None:
    graph = compile_graph(pipeline(LEXICAL, DENSE, output="lexical"))
    assert graph.kinds == {"bm25"}
    assert graph.output_kind == "bm25"


def test_an_input_that_is_named_twice_counts_once() -> None:
    graph = compile_graph(pipeline(DENSE, fuse("fused", "dense", "dense"), output="fused"))
    assert graph.fusions[0].inputs == ("dense",)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (pipeline(DENSE, output="ranked"), r"output names node 'ranked', which is not there; nodes are \['dense'\]"),
        (pipeline(fuse("fused", "words"), output="fused"), "'fused' has the input 'words', which is not there"),
        (pipeline(fuse("a", "b"), fuse("b", "a"), output="a"), "form a cycle; take one of the inputs away"),
        (pipeline(NodeConfig(name="x", type="rerank"), output="x"), "'x' has the type 'rerank'"),
        (pipeline(fuse("fused"), output="fused"), "'fused' of type 'fuse' has the inputs .*give it at least one"),
        (
            pipeline(NodeConfig(name="x", type="bm25", inputs=["dense"]), DENSE, output="x"),
            "'x' of type 'bm25' has the inputs .*give it no inputs",
        ),
        (
            pipeline(NodeConfig(name="x", type="bm25", settings={"topk": 5}), output="x"),
            "'x' has a wrong setting `with.topk`",
        ),
    ],
)
def test_a_graph_that_cannot_run_is_refused_by_name(bad: PipelineConfig, message: str) -> None:
    with pytest.raises(InvalidPipelineError, match=message):
        compile_graph(bad)
