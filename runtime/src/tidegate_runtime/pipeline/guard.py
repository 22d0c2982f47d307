"""The lexical guard: words that the index hardly knows must not outvote meaning.

When the best of BM25's first hits covers little of the query's idf mass (a question in another
language than the documents, a text full of unknown words), what BM25 did match is chance. Its weight
then falls to .05 and the rest goes to the other inputs; retrieval.md 1 holds the figures.
"""

from collections.abc import Collection, Mapping

import numpy as np

from tidegate_runtime.ports import Scores

DEPTH = 3
COVERAGE_FLOOR = 0.30
GUARDED_SHARE = 0.05


def query_is_unknown(coverage: Scores) -> bool:
    """Tell whether no hit covers enough of the query. `coverage` is of BM25's first `DEPTH` hits; none = nothing covered."""
    known = coverage[np.isfinite(coverage)]
    return not len(known) or float(known.max()) < COVERAGE_FLOOR


def guarded(weights: Mapping[str, float], lexical: Collection[str]) -> dict[str, float]:
    """Return weights in which the `lexical` inputs together hold at most `GUARDED_SHARE`.

    Proportions inside each side stay. A share that is lower already is kept, and so is everything
    when no other input has weight: there is nobody to give it to.
    """
    inside = sum(weights[name] for name in sorted(weights) if name in lexical)
    outside = sum(weights[name] for name in sorted(weights) if name not in lexical)
    if not outside or inside <= GUARDED_SHARE * (inside + outside):
        return dict(weights)
    return {
        name: weight * (GUARDED_SHARE / inside if name in lexical else (1 - GUARDED_SHARE) / outside)
        for name, weight in weights.items()
    }
