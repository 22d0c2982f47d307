"""What must be true of a revision before it may be called ready, beyond ids and content hashes.

Counts prove nothing: a sample of chunks is embedded again and has to find itself by its vector and
by its own words, every row needs a vector that is not zero, and the analyzer has to treat known
phrases alike. Limits are wide enough for near-duplicates and for encoders that differ in the last
bits between devices, and far from what a shifted row or a wrong model gives.
"""

from collections.abc import Sequence

import numpy as np

from tidegate_api.shape import Language
from tidegate_runtime.indexer.chunkers import passage_text
from tidegate_runtime.ports import Embedder, InspectedChunk, RevisionInspection, Rows

MAX_SAMPLE = 16
# One chunk in so many is embedded once more than the build itself needs.
_CHUNKS_PER_SAMPLE = 50
_LEXICAL_TOP = 50
_REAL_SAMPLE = 8
_COSINE_TOLERANCE = 0.02
# Phrases that must have the same terms. The dictionary for Chinese is loaded only where it is used.
_SAME_TERMS = (("running policies", "run policy"), ("ＡＢＣ１２３", "abc123"))
_SAME_HAN_TERMS = (("数据库", "数据库。"),)


def prove(inspection: RevisionInspection, *, language: Language, embedder: Embedder | None, chunks: int) -> str | None:
    """Return what is wrong with a revision, or None.

    Args:
        inspection: a look at the revision as it is.
        language: the revision's.
        embedder: the revision's encoder, None when it will have no dense leg.
        chunks: how many chunks it holds.
    """
    problem = _analyzer_problem(inspection, language)
    if problem or not chunks:
        return problem
    sample = inspection.sample(min(MAX_SAMPLE, max(1, chunks // _CHUNKS_PER_SAMPLE)))
    return _lexical_problem(inspection, sample) or (
        _dense_problem(inspection, sample, embedder) if embedder is not None else None
    )


def _analyzer_problem(inspection: RevisionInspection, language: Language) -> str | None:
    for left, right in _SAME_TERMS if language == "en" else _SAME_TERMS + _SAME_HAN_TERMS:
        terms = inspection.snapshot.analyse(left).terms
        if not terms or terms != inspection.snapshot.analyse(right).terms:
            return (
                f"the analyzer treats {left!r} and {right!r} differently; its packages are damaged, install them again"
            )
    return None


def _lexical_problem(inspection: RevisionInspection, sample: Sequence[InspectedChunk]) -> str | None:
    asked = lost = 0
    for chunk in sample:
        query = inspection.snapshot.analyse(chunk.content)
        if not query.terms:
            continue
        asked += 1
        rows = inspection.snapshot.lexical(query, inspection.everything, top_k=_LEXICAL_TOP).rows
        if inspection.snapshot.lexical_scores(query, _row(chunk))[0] <= 0:
            return "a chunk is not found by its own words; remove the revision's folder to build it again"
        lost += chunk.row not in rows
    # A short chunk may stand behind longer ones that repeat its words, but not most chunks of a real sample.
    if asked >= _REAL_SAMPLE and 2 * lost > asked:
        return (
            "most chunks of a sample are not found by their own words; remove the revision's folder to build it again"
        )
    return None


def _dense_problem(inspection: RevisionInspection, sample: Sequence[InspectedChunk], embedder: Embedder) -> str | None:
    if inspection.rows_without_vector():
        return "some chunks have no usable vector; remove the revision's folder to build it again"
    tokenizer = embedder.tokenizer
    vectors = embedder.embed_passages(
        [passage_text(chunk.title, chunk.heading, chunk.content, tokenizer=tokenizer) for chunk in sample]
    )
    for chunk, vector in zip(sample, vectors, strict=True):
        if not np.isfinite(vector).all():
            return "the encoder gave no usable vector for a chunk that it had embedded before; check its device"
        best = inspection.snapshot.dense(vector, inspection.everything, top_k=1).scores[0]
        if inspection.snapshot.dense_scores(vector, _row(chunk))[0] < best - _COSINE_TOLERANCE:
            return "a chunk is not found by its own vector; remove the revision's folder to build it again"
    return None


def _row(chunk: InspectedChunk) -> Rows:
    return np.array([chunk.row], dtype=np.int64)
