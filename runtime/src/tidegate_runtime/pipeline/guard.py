"""The lexical guard: BM25 is believed as far as its own list gives reason to.

Two signs. *Coverage*, the best share of the query's idf mass that one of its first hits holds: under
the floor (a question in another language than the documents, a text full of unknown words) what BM25
did match is chance, and its share falls to .05. *Decisiveness*, how far the best hit stands above the
fifth to tenth as a share of its score: one clear winner is hard to beat, most of all where the encoder
is weak, while a list of near ties says little. The odds of the lexical side are multiplied by
e ** (1.7 * (decisiveness - .25)), so weights are as configured at .25. Margins between the first scores
of a list as a sign of its worth: query performance prediction, e.g. Zhou and Croft, SIGIR 2007.
docs/adr/0004-fusion-default.md holds the figures.
"""

import math
from collections.abc import Mapping

import numpy as np

from tidegate_runtime.ports import Scores

DEPTH = 3
COVERAGE_FLOOR = 0.30
GUARDED_SHARE = 0.05
NEUTRAL_DECISIVENESS = 0.25
_STEEPNESS = 1.7
_COMPARED = slice(4, 10)
# The last bit of `exp` may differ between machines; scores must not.
_FACTOR_DIGITS = 9


def best_coverage(coverage: Scores) -> float:
    """Return the highest coverage among BM25's first `DEPTH` hits; 0 when there are none."""
    return float(np.max(coverage, where=np.isfinite(coverage), initial=0.0))


def decisiveness(scores: Scores) -> float:
    """Return how far the best of descending positive scores stands above the fifth to tenth, 0 to 1.

    A list without a fifth is neutral: it is short because few chunks were there or asked for.
    """
    compared = scores[_COMPARED]
    if not len(compared) or not scores[0] > 0:
        return NEUTRAL_DECISIVENESS
    return float((scores[0] - compared.mean()) / scores[0])


def guarded(weights: Mapping[str, float], lexical: Mapping[str, float], *, coverage: float) -> dict[str, float]:
    """Return the weights that hold for one query; `lexical` holds the decisiveness of each lexical input.

    Under the floor proportions inside each side stay, a share that is lower already is kept, and so is everything
    when no other input has weight: there is nobody to give it to.
    """
    if coverage >= COVERAGE_FLOOR:
        factors = {name: _factor(lexical[name]) for name in lexical}
    else:
        factors = dict.fromkeys(lexical, _distrust(weights, lexical))
    return {name: weight * factors.get(name, 1.0) for name, weight in weights.items()}


def _factor(decisive: float) -> float:
    return round(math.exp(_STEEPNESS * (decisive - NEUTRAL_DECISIVENESS)), _FACTOR_DIGITS)


def _distrust(weights: Mapping[str, float], lexical: Mapping[str, float]) -> float:
    inside = sum(weights[name] for name in sorted(weights) if name in lexical)
    outside = sum(weights[name] for name in sorted(weights) if name not in lexical)
    if outside and inside > GUARDED_SHARE * (inside + outside):
        return GUARDED_SHARE / (1 - GUARDED_SHARE) * outside / inside
    return 1.0
