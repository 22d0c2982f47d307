"""The lexical guard: BM25 is believed as far as the index knows the query's words.

What counts is the best share of the query's idf mass that one of BM25's first hits covers. Under the
floor (a question in another language than the documents, a text full of unknown words) what BM25 did
match is chance: its share falls to .05. Above it, lexical weights grow with coverage and are as
configured at `NEUTRAL_COVERAGE`: a hit that holds nearly every word asked for is hard to beat, most
of all where the encoder is weak. docs/adr/0004-fusion-default.md holds the figures.
"""

from collections.abc import Collection, Mapping

import numpy as np

from tidegate_runtime.ports import Scores

DEPTH = 3
COVERAGE_FLOOR = 0.30
NEUTRAL_COVERAGE = 0.50
GUARDED_SHARE = 0.05


def best_coverage(coverage: Scores) -> float:
    """Return the highest coverage among BM25's first `DEPTH` hits; 0 when there are none."""
    return float(np.max(coverage, where=np.isfinite(coverage), initial=0.0))


def guarded(weights: Mapping[str, float], lexical: Collection[str], *, coverage: float) -> dict[str, float]:
    """Return the weights that hold for a query of this coverage. Proportions inside each side stay.

    Under the floor, a share that is lower already is kept, and so is everything when no other input has
    weight: there is nobody to give it to.
    """
    inside = sum(weights[name] for name in sorted(weights) if name in lexical)
    outside = sum(weights[name] for name in sorted(weights) if name not in lexical)
    if coverage >= COVERAGE_FLOOR:
        factor = coverage / NEUTRAL_COVERAGE
    elif outside and inside > GUARDED_SHARE * (inside + outside):
        factor = GUARDED_SHARE / (1 - GUARDED_SHARE) * outside / inside
    else:
        factor = 1.0
    return {name: weight * (factor if name in lexical else 1.0) for name, weight in weights.items()}
