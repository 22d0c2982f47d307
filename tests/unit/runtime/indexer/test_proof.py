"""What a proof finds out about the lexical leg and the analyzer. The dense leg is tested over a real store."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tidegate_runtime.indexer.proof import prove
from tidegate_runtime.ports import InspectedChunk, RevisionInspection

CHUNKS = 800
SAMPLE = [InspectedChunk(row=row, title="", heading="", content=f"content{row}") for row in range(16)]


def inspection(
    *, found: Mapping[int, list[int]], scores: Mapping[int, float], terms: Mapping[str, tuple[str, ...]]
) -> RevisionInspection:
    """Return a look at a revision: rows found per chunk and own scores (else itself, 1), terms per phrase (else `x`)."""

    def analyse(text: str) -> Any:
        return SimpleNamespace(
            terms=terms.get(text, ("x",)), row=int(text.removeprefix("content") if "content" in text else 0)
        )

    def lexical(query: Any, selection: object, *, top_k: int) -> Any:
        return SimpleNamespace(rows=np.array(found.get(query.row, [query.row])))

    def lexical_scores(query: Any, rows: Any) -> Any:
        return np.array([scores.get(int(row), 1.0) for row in rows])

    snapshot = SimpleNamespace(analyse=analyse, lexical=lexical, lexical_scores=lexical_scores)
    looked = SimpleNamespace(snapshot=snapshot, everything=None, sample=lambda count: SAMPLE[:count])
    return cast(RevisionInspection, looked)


def problem(
    *,
    found: Mapping[int, list[int]] | None = None,
    scores: Mapping[int, float] | None = None,
    terms: Mapping[str, tuple[str, ...]] | None = None,
    language: Any = "en",
    chunks: int = CHUNKS,
) -> str | None:
    looked = inspection(found=found or {}, scores=scores or {}, terms=terms or {})
    return prove(looked, language=language, embedder=None, chunks=chunks)


def test_a_chunk_that_its_own_words_do_not_reach_is_found_out() -> None:
    assert "not found by its own words" in str(problem(scores={5: 0.0}))


def test_short_chunks_behind_longer_ones_are_no_problem_but_most_chunks_are() -> None:
    others = {row: [99] for row in range(16)}

    assert problem(found={row: others[row] for row in range(8)}) is None
    assert "most chunks of a sample" in str(problem(found={row: others[row] for row in range(9)}))
    assert problem(found=others, chunks=99) is None


def test_a_chunk_without_terms_is_not_asked_for() -> None:
    assert problem(terms={"content3": ()}, scores={3: 0.0}) is None


@pytest.mark.parametrize("terms", [{"running policies": ("run",)}, {"running policies": (), "run policy": ()}])
def test_an_analyzer_that_does_not_stem_or_finds_nothing_is_found_out(terms: Mapping[str, tuple[str, ...]]) -> None:
    assert "'running policies' and 'run policy' differently" in str(problem(terms=terms))


def test_chinese_phrases_are_tried_where_they_matter() -> None:
    broken: Mapping[str, tuple[str, ...]] = {"数据库": ()}

    assert problem(terms=broken, language="en") is None
    assert "'数据库'" in str(problem(terms=broken, language="zh"))
    assert "'数据库'" in str(problem(terms=broken, language="multi"))
