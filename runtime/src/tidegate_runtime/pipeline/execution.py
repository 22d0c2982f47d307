"""One request's way through a graph.

State lives here and nowhere else, so two requests cannot see each other. A leg that fails is recorded
and left out, and its weight goes to the others; a dense leg that an index does not have because of its
language is left out, too, and is no failure. The clock is an argument. Execution is in two halves
because words can be looked up while the encoder still works: `run_lexical` needs no vector, `run_rest`
needs what vectors there are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tidegate_runtime.errors import ModelUnavailableError, RuntimePlaneError
from tidegate_runtime.pipeline import guard
from tidegate_runtime.pipeline.fuse import Members, Signal, aligned, pooled, reciprocal_rank, weighted
from tidegate_runtime.pipeline.graph import FuseNode, Graph, LegKind, LegNode
from tidegate_runtime.pipeline.panel import Hits, Panel
from tidegate_runtime.ports import FloatVector

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Failure:
    """A node that could not do its part."""

    error: RuntimePlaneError
    after_seconds: float


@dataclass(slots=True)
class Execution:
    """Runs `graph` over `panel`. `depth` is the least number of candidates that a leg is asked for."""

    graph: Graph
    panel: Panel
    depth: int
    clock: Clock
    outputs: dict[str, Hits] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def output(self) -> Hits | None:
        """Return what the graph's output node found; None when nothing it depends on could answer."""
        return self.outputs.get(self.graph.output)

    @property
    def mismatched(self) -> tuple[str, ...]:
        """Return the dense legs where an index of this request has none, since its encoder can't read its documents."""
        return () if self.panel.provided("dense") else self._dense_legs

    @property
    def _dense_legs(self) -> tuple[str, ...]:
        return tuple(leg.name for leg in self.graph.legs if leg.kind == "dense")

    def run_lexical(self) -> None:
        """Run the legs that need words only."""
        self._run_legs("bm25")

    def fail_dense(self, failure: Failure) -> None:
        """Record why the query has no vector, or not one for every encoder."""
        self.failures.update(dict.fromkeys(self._dense_legs, failure))

    def run_rest(self, vectors: Mapping[str, FloatVector]) -> None:
        """Run the legs that need vectors, then every fusion."""
        self.panel = self.panel.with_vectors(vectors)
        if self.panel.lacks_vectors():
            self._miss_encoder()
        self._run_legs("dense")
        for node in self.graph.fusions:
            started = self.clock()
            fused = self._fuse(node)
            if fused is not None:
                self.outputs[node.name] = fused
                self.seconds[node.name] = self.clock() - started

    def _miss_encoder(self) -> None:
        """Record why dense legs lack a vector, unless that is known: their index had none when the release was opened."""
        for leg in self._dense_legs:
            error = ModelUnavailableError("the index had no dense leg when the release was opened; start the pod again")
            self.failures.setdefault(leg, Failure(error, 0.0))

    def _run_legs(self, kind: LegKind) -> None:
        if not self.panel.reaches(kind):
            return
        for leg in self.graph.legs:
            if leg.kind == kind:
                self._run_leg(leg)

    def _run_leg(self, leg: LegNode) -> None:
        started = self.clock()
        try:
            self.outputs[leg.name] = self.panel.best(leg.kind, max(leg.top_k, self.depth))
        except RuntimePlaneError as error:
            self.failures[leg.name] = Failure(error, self.clock() - started)
        else:
            self.seconds[leg.name] = self.clock() - started

    def _fuse(self, node: FuseNode) -> Hits | None:
        inputs = {name: self.outputs[name] for name in node.inputs if name in self.outputs}
        if not inputs:
            return None
        pool = pooled([hits.members for hits in inputs.values()])
        if node.settings.method == "rrf":
            scores = reciprocal_rank(self._ranks(node, inputs, pool), len(pool), k=node.settings.k)
        else:
            scores = weighted(self._signals(node, inputs, pool), len(pool))
        return self.panel.ranked(pool, scores)

    def _ranks(self, node: FuseNode, inputs: Mapping[str, Hits], pool: Members) -> list[Signal]:
        return [
            Signal(name, _weight(node, name), aligned(pool, hits.members, np.arange(1.0, len(hits.members) + 1)))
            for name, hits in inputs.items()
        ]

    def _signals(self, node: FuseNode, inputs: Mapping[str, Hits], pool: Members) -> list[Signal]:
        """Describe inputs over the pool: a leg is completed where that is asked for, others are as they are."""
        weights = self._weights(node, inputs)
        signals = []
        for name, hits in inputs.items():
            leg = next((leg for leg in self.graph.legs if leg.name == name), None)
            reach = None if leg is None else self.panel.reach(leg.kind, pool)
            if leg is not None and node.settings.completion:
                scores = self.panel.scores(leg.kind, pool)
            else:
                scores = aligned(pool, hits.members, hits.scores)
            signals.append(Signal(name, weights[name], scores, reach))
        return signals

    def _weights(self, node: FuseNode, inputs: Mapping[str, Hits]) -> dict[str, float]:
        """Return the weights of the inputs that are there, after the lexical guard."""
        weights = {name: _weight(node, name) for name in inputs}
        lexical = [leg.name for leg in self.graph.legs if leg.kind == "bm25" and leg.name in inputs]
        if not node.settings.lexical_guard or not lexical:
            return weights
        first = pooled([inputs[name].members[: guard.DEPTH] for name in lexical])
        decisive = {name: guard.decisiveness(inputs[name].scores) for name in lexical}
        return guard.guarded(weights, decisive, coverage=guard.best_coverage(self.panel.coverage(first)))


def _weight(node: FuseNode, name: str) -> float:
    return node.settings.weights.get(name, 1.0)
