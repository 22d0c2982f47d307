"""Retrieval measures for one query, over sets: always between 0 and 1.

A ranking may hold a document twice (two of its chunks were found) or an entry without an id; a
document counts where it stands first and an entry without an id does not count at all, so neither can
raise a figure. Gains are linear, as in the reference figures. A query without any relevant document
has no figure: None, which is neither good nor bad and must not enter a mean.
"""

import math
from collections.abc import Iterable, Mapping, Sequence


def distinct(ranking: Iterable[str | None]) -> list[str]:
    """Return the documents of a ranking, each where it stands first."""
    return list(dict.fromkeys(document for document in ranking if document is not None))


def ndcg(ranking: Sequence[str | None], gains: Mapping[str, float], *, k: int) -> float | None:
    """Return the discounted gain of the first `k` documents as a share of the best possible."""
    best = _discounted(sorted((gain for gain in gains.values() if gain > 0), reverse=True)[:k])
    if best == 0:
        return None
    return min(1.0, _discounted([max(0.0, gains.get(document, 0.0)) for document in distinct(ranking)[:k]]) / best)


def recall(ranking: Sequence[str | None], gains: Mapping[str, float], *, k: int) -> float | None:
    """Return the share of relevant documents that are among the first `k`."""
    relevant = {document for document, gain in gains.items() if gain > 0}
    if not relevant:
        return None
    return len(relevant.intersection(distinct(ranking)[:k])) / len(relevant)


def reciprocal_rank(ranking: Sequence[str | None], gains: Mapping[str, float], *, k: int) -> float | None:
    """Return 1 / rank of the first relevant document among the first `k`, 0 when there is none."""
    if not any(gain > 0 for gain in gains.values()):
        return None
    ranks = (rank for rank, document in enumerate(distinct(ranking)[:k], 1) if gains.get(document, 0.0) > 0)
    return 1 / next(ranks, math.inf)


def mean(figures: Iterable[float | None]) -> float | None:
    """Return the mean of the queries that have a figure; None when none has."""
    measured = [figure for figure in figures if figure is not None]
    return math.fsum(measured) / len(measured) if measured else None


def _discounted(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
