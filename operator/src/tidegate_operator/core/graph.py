"""What is wrong with a pipeline's graph, beyond what CEL can say.

Every violation is found, not only the first, so that a user mends the graph in one go. Names of nodes
stand in the paths, as in `spec.nodes[fused].inputs`. A graph without violations can be executed: it
has no cycle, every node counts, and every setting is known to its type and within its bounds.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tidegate_api.config import NodeConfig
from tidegate_api.nodes import HYBRID_OUTPUT, SETTINGS, FuseSettings
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipelineSpec
from tidegate_api.violation import Violation, listed, shown
from tidegate_operator.core.desired import effective_graph


def graph_violations(spec: RetrievalPipelineSpec) -> list[Violation]:
    """Return what is wrong with the nodes and the output of `spec`."""
    written, output = effective_graph(spec)
    if not spec.nodes:
        return _preset_violations(output)
    nodes = {node.name: node for node in written}
    found = [violation for node in written for violation in _node_violations(node, nodes)]
    found += _output_violations(output, nodes)
    found += _cycle_violations(nodes)
    if output in nodes:
        found += _unused_violations(output, nodes)
    return found


def _node_violations(node: NodeConfig, nodes: Mapping[str, NodeConfig]) -> Iterator[Violation]:
    path = f"spec.nodes[{node.name}]"
    if node.type not in SETTINGS:
        yield Violation(f"{path}.type", f"{shown(node.type)} is not a type of node: write one of {listed(SETTINGS)}")
        return
    yield from _input_violations(node, nodes, f"{path}.inputs")
    yield from _setting_violations(node, f"{path}.with")


def _input_violations(node: NodeConfig, nodes: Mapping[str, NodeConfig], path: str) -> Iterator[Violation]:
    joins = issubclass(SETTINGS[node.type], FuseSettings)
    if joins and not node.inputs:
        yield Violation(path, f"{shown(node.inputs)}: {node.type} joins other nodes, name at least one of them")
    if not joins and node.inputs:
        yield Violation(path, f"{shown(node.inputs)}: {node.type} reads the indexes, remove its inputs")
    for name in dict.fromkeys(node.inputs):
        if name not in nodes:
            yield Violation(path, f"{shown(name)} is not a node: {_instead(name, nodes)}")
        if node.inputs.count(name) > 1:
            yield Violation(path, f"{shown(name)} is given twice: remove one of the two")


def _setting_violations(node: NodeConfig, path: str) -> Iterator[Violation]:
    model = SETTINGS[node.type]
    try:
        settings = model.model_validate(node.settings, strict=True, by_alias=True, by_name=False)
    except ValidationError as invalid:
        known = [field.alias or name for name, field in model.model_fields.items()]
        for error in invalid.errors():
            yield _setting_violation(error, path, f"{node.type}: {_instead(str(error['loc'][0]), known)}")
        return
    if isinstance(settings, FuseSettings):
        yield from _weight_violations(node, settings, f"{path}.weights")


def _setting_violation(error: ErrorDetails, path: str, unknown: str) -> Violation:
    where = ".".join([path, *map(str, error["loc"])])
    if error["type"] == "extra_forbidden":
        return Violation(where, f"is not a setting of {unknown}")
    expected = error["msg"].replace("Input should be", "it should be")
    return Violation(where, f"{shown(error['input'])} is wrong: {expected}, correct it")


def _weight_violations(node: NodeConfig, settings: FuseSettings, path: str) -> Iterator[Violation]:
    for name in settings.weights:
        if name not in node.inputs:
            yield Violation(
                f"{path}.{name}", f"{shown(name)} is not an input of this node: {_instead(name, node.inputs)}"
            )
    if node.inputs and all(settings.weights.get(name, 1.0) == 0 for name in node.inputs):
        yield Violation(path, f"{shown(settings.weights)} leaves nothing to rank by: give an input a weight above 0")


def _preset_violations(output: str) -> list[Violation]:
    if output == HYBRID_OUTPUT:
        return []
    return [Violation("spec.output", f"{shown(output)} is not the preset's output: leave it out, or write nodes too")]


def _output_violations(output: str, nodes: Mapping[str, NodeConfig]) -> Iterator[Violation]:
    if not output:
        yield Violation("spec.output", f"is missing: name the node whose result is the answer, one of {listed(nodes)}")
    elif output not in nodes:
        yield Violation("spec.output", f"{shown(output)} is not a node: {_instead(output, nodes)}")


def _cycle_violations(nodes: Mapping[str, NodeConfig]) -> Iterator[Violation]:
    needs = {name: [each for each in node.inputs if each in nodes] for name, node in nodes.items()}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        circle: Sequence[str] = error.args[1]
        yield Violation(
            f"spec.nodes[{circle[1]}].inputs",
            f"{shown(circle[0])} closes the cycle {' -> '.join(circle)}: remove one of these inputs",
        )


def _unused_violations(output: str, nodes: Mapping[str, NodeConfig]) -> Iterator[Violation]:
    reached: set[str] = set()
    waiting = [output]
    while waiting:
        name = waiting.pop()
        if name in nodes and name not in reached:
            reached.add(name)
            waiting.extend(nodes[name].inputs)
    for name in nodes:
        if name not in reached:
            yield Violation(
                f"spec.nodes[{name}]",
                f"{shown(name)} has no way to the output {shown(output)}: use it as an input or remove it",
            )


def _instead(name: str, known: Iterable[str]) -> str:
    """Return what to write instead of an unknown name."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}? Correct or remove it" if near else f"write one of {listed(names)}"
