"""The graph of a release, checked and put in order once, when the release is opened.

Admission has refused what cannot work; a routing table is a file, though, and this process must say
what is wrong with it instead of failing at the first request. Only nodes that the output depends on
are kept. Names of inputs that stand twice count once.
"""

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Literal, cast

from pydantic import ValidationError

from tidegate_api.config import NodeConfig, PipelineConfig
from tidegate_api.nodes import SETTINGS, FuseSettings, LegSettings
from tidegate_runtime.errors import InvalidPipelineError

LegKind = Literal["bm25", "dense"]
LEG_KINDS: tuple[LegKind, ...] = ("bm25", "dense")


@dataclass(frozen=True, slots=True)
class LegNode:
    """A node that reads candidates from the indexes."""

    name: str
    kind: LegKind
    top_k: int


@dataclass(frozen=True, slots=True)
class FuseNode:
    """A node that makes one list of several."""

    name: str
    inputs: tuple[str, ...]
    settings: FuseSettings


@dataclass(frozen=True, slots=True)
class Graph:
    """What to run: legs in any order, then `fusions` from first to last."""

    legs: tuple[LegNode, ...]
    fusions: tuple[FuseNode, ...]
    output: str

    @property
    def output_kind(self) -> Literal["fused", "bm25", "dense"]:
        """Return the scale that the output's scores are on."""
        return next((leg.kind for leg in self.legs if leg.name == self.output), "fused")

    @property
    def kinds(self) -> frozenset[LegKind]:
        """Return the legs that the output depends on."""
        return frozenset(leg.kind for leg in self.legs)


def compile_graph(pipeline: PipelineConfig) -> Graph:
    """Return the executable form of `pipeline`.

    Raises:
        InvalidPipelineError: a type or setting is unknown, an input names no node, or nodes form a cycle.
    """
    nodes = {node.name: node for node in pipeline.nodes}
    ordered = _in_order(nodes, pipeline.output)
    legs, fusions = [], []
    for node in ordered:
        settings = _settings(node)
        if isinstance(settings, FuseSettings):
            fusions.append(FuseNode(name=node.name, inputs=tuple(dict.fromkeys(node.inputs)), settings=settings))
        else:
            legs.append(LegNode(name=node.name, kind=cast(LegKind, node.type), top_k=settings.top_k))
    return Graph(legs=tuple(legs), fusions=tuple(fusions), output=pipeline.output)


def _in_order(nodes: dict[str, NodeConfig], output: str) -> list[NodeConfig]:
    """Return the nodes that `output` depends on, inputs before the nodes that use them."""
    if output not in nodes:
        raise InvalidPipelineError(f"output names node {output!r}, which is not there; nodes are {sorted(nodes)}")
    needs: dict[str, list[str]] = {}
    waiting = [output]
    while waiting:
        name = waiting.pop()
        if name in needs:
            continue
        needs[name] = nodes[name].inputs
        for source in nodes[name].inputs:
            if source not in nodes:
                raise InvalidPipelineError(
                    f"node {name!r} has the input {source!r}, which is not there; nodes are {sorted(nodes)}"
                )
            waiting.append(source)
    try:
        return [nodes[name] for name in TopologicalSorter(needs).static_order()]
    except CycleError as error:
        raise InvalidPipelineError(
            f"nodes {' -> '.join(error.args[1])} form a cycle; take one of the inputs away"
        ) from error


def _settings(node: NodeConfig) -> LegSettings | FuseSettings:
    if node.type not in SETTINGS:
        raise InvalidPipelineError(
            f"node {node.name!r} has the type {node.type!r}, which this runtime does not know; use one of {sorted(SETTINGS)}"
        )
    try:
        settings = SETTINGS[node.type].model_validate(node.settings)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidPipelineError(f"node {node.name!r} has a wrong setting `with.{where}`: {first['msg']}") from error
    if isinstance(settings, FuseSettings) != bool(node.inputs):
        wanted = "at least one input" if isinstance(settings, FuseSettings) else "no inputs"
        raise InvalidPipelineError(
            f"node {node.name!r} of type {node.type!r} has the inputs {node.inputs}; give it {wanted}"
        )
    return cast(LegSettings | FuseSettings, settings)
