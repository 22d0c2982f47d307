"""What a search answers: fusion over fakes, subsets, top_k, scores, several knowledge bases."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate_api.config import NodeConfig
from tidegate_api.wire import Degraded, SearchResponse
from tidegate_runtime.errors import InvalidFilterError, InvalidQueryError, ReleaseUnavailableError

LEXICAL = NodeConfig(name="lexical", type="bm25")
DENSE = NodeConfig(name="dense", type="dense")
WORDS_ONLY = frozenset({"bm25"})
MISMATCH = [Degraded(node="dense", reason="language_mismatch", after_ms=0.0)]


def fuse(*inputs: str, name: str = "fused", **settings: object) -> NodeConfig:
    return NodeConfig(name=name, type="fuse", inputs=list(inputs or ("lexical", "dense")), settings=settings)


def scored(response: SearchResponse) -> dict[str, float]:
    return {result.chunk_id: result.score for result in response.results}


async def test_every_member_of_the_union_is_scored_in_every_leg(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(lexical_hits={"a": 10.0, "b": 5.0, "c": 1.0}, dense_hits={"a": 0.1, "b": 0.5, "c": 0.9})
    nodes = (
        NodeConfig(name="lexical", type="bm25", settings={"topK": 1}),
        NodeConfig(name="dense", type="dense", settings={"topK": 1}),
        fuse(weights={"lexical": 0.4, "dense": 0.6}),
    )
    name = await runtime.serve(index, nodes=nodes)
    response = await runtime.ask(name, top_k=1)
    assert [result.chunk_id for result in response.results] == ["c"]
    both = await runtime.ask(name, top_k=2)
    assert scored(both) == {"c": 0.6, "b": pytest.approx(0.4 * 4 / 9 + 0.6 * 0.5, abs=1e-6)}


async def test_without_completion_a_leg_knows_only_what_it_listed(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(
        lexical_hits={"a": 10.0, "b": 5.0, "c": 2.0}, dense_hits={"c": 0.9, "d": 0.5, "a": 0.4, "b": 0.1}
    )
    nodes = (LEXICAL, NodeConfig(name="dense", type="dense", settings={"topK": 2}), fuse(completion=False))
    name = await runtime.serve(index, nodes=nodes)
    assert scored(await runtime.ask(name, top_k=1)) == {"a": 0.5}
    assert (await runtime.ask(name, top_k=1)).results[0].score_kind == "fused"


async def test_reciprocal_rank_fusion_is_by_configuration(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(lexical_hits={"a": 3.0, "b": 2.0}, dense_hits={"b": 0.9, "c": 0.8})
    name = await runtime.serve(index, nodes=(LEXICAL, DENSE, fuse(method="rrf")))
    assert scored(await runtime.ask(name)) == {
        "b": round(1 / 62 + 1 / 61, 6),
        "a": round(1 / 61, 6),
        "c": round(1 / 62, 6),
    }


async def test_a_fusion_may_be_fused_again(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(lexical_hits={"a": 3.0, "b": 1.0}, dense_hits={"b": 0.9, "a": 0.1})
    nodes = (LEXICAL, DENSE, fuse(name="first", weights={"lexical": 0.9, "dense": 0.1}), fuse("first", "dense"))
    assert scored(await runtime.ask(await runtime.serve(index, nodes=nodes))) == {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize(("output", "order"), [("lexical", ["a", "b"]), ("dense", ["b", "a"])])
async def test_a_leg_may_be_the_output(runtime: Any, fakes: SimpleNamespace, output: str, order: list[str]) -> None:
    index = fakes.Index(lexical_hits={"a": 3.0, "b": 1.0}, dense_hits={"b": 0.9, "a": 0.1})
    response = await runtime.ask(await runtime.serve(index, nodes=(LEXICAL, DENSE), output=output))
    assert [result.chunk_id for result in response.results] == order
    assert {result.score_kind for result in response.results} == {"bm25" if output == "lexical" else "dense"}


async def test_words_without_any_hit_add_no_candidates(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(dense_hits={"a": 0.1, "b": 0.9}, coverage=0.0)
    assert scored(await runtime.ask(await runtime.serve(index))) == {"b": 0.95, "a": 0.0}


async def test_words_that_the_index_hardly_knows_weigh_little(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(lexical_hits={"a": 3.0, "b": 1.0}, dense_hits={"b": 0.9, "a": 0.1}, coverage=0.2)
    assert scored(await runtime.ask(await runtime.serve(index))) == {"b": 0.95, "a": 0.05}


async def test_a_hit_far_above_the_others_of_its_list_weighs_more(runtime: Any, fakes: SimpleNamespace) -> None:
    words = {"a": 9.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 1.0, "f": 1.0}
    index = fakes.Index(lexical_hits=words, dense_hits={"b": 0.9, "a": 0.1}, coverage=1.0)
    found = scored(await runtime.ask(await runtime.serve(index)))
    assert found["a"] > found["b"]


async def test_the_guard_can_be_switched_off(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(lexical_hits={"a": 3.0, "b": 1.0}, dense_hits={"b": 0.9, "a": 0.1}, coverage=0.2)
    name = await runtime.serve(index, nodes=(LEXICAL, DENSE, fuse(lexicalGuard=False)))
    assert scored(await runtime.ask(name)) == {"a": 0.5, "b": 0.5}


async def test_a_score_that_is_no_number_never_reaches_an_answer(runtime: Any, fakes: SimpleNamespace) -> None:
    hits = {"a": 0.9, "b": math.nan, "c": 0.1, "d": math.inf, "e": -math.inf}
    index = fakes.Index(lexical_hits={"a": 1.0, "b": 2.0}, dense_hits=hits)
    fused = await runtime.ask(await runtime.serve(index), explain=True)
    assert scored(fused) == {"a": 0.8, "b": 0.4, "c": 0.0}
    assert "dense" not in (fused.results[1].scores or {})
    only_dense = await runtime.ask(await runtime.serve(index, nodes=(DENSE,)))
    assert scored(only_dense) == {"a": 0.9, "c": 0.1}


async def test_ten_results_unless_the_request_says_how_many(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(dense_hits={f"c{number:03}": 1 - number / 1000 for number in range(500)})
    name = await runtime.serve(index)
    assert len((await runtime.ask(name)).results) == 10
    assert len((await runtime.ask(name, top_k=1)).results) == 1
    assert len((await runtime.ask(name, top_k=200)).results) == 200


@pytest.mark.parametrize("top_k", [0, -1, 1001])
async def test_an_impossible_number_of_results_is_refused(runtime: Any, fakes: SimpleNamespace, top_k: int) -> None:
    name = await runtime.serve(fakes.Index(dense_hits={"a": 1.0}))
    with pytest.raises(InvalidQueryError, match=f"top_k is {top_k}; ask for 1 to 1000"):
        await runtime.ask(name, top_k=top_k)


async def test_a_result_tells_where_it_comes_from(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(dense_hits={"a": 1.0}, content_generation=118)
    result = (await runtime.ask(await runtime.serve(index))).results[0]
    assert result.model_dump() == {
        "chunk_id": "a",
        "document_id": "a.md",
        "title": "title of a",
        "content": "text of a",
        "score": 0.0,
        "score_kind": "fused",
        "scores": None,
        "source": "policies",
        "knowledge_base": "docs",
        "revision": "docs-1",
        "content_generation": 118,
        "location": {"start": 0, "end": 10},
        "metadata": {"year": 2026},
    }


async def test_raw_scores_are_shown_only_when_asked_for(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(lexical_hits={"a": 7.1, "b": 1.0}, dense_hits={"a": 0.71, "b": 0.2})
    name = await runtime.serve(index)
    assert (await runtime.ask(name)).results[0].scores is None
    assert (await runtime.ask(name, explain=True)).results[0].scores == {"bm25": 7.1, "dense": 0.71, "fused": 1.0}


async def test_timings_name_every_node(runtime: Any, fakes: SimpleNamespace) -> None:
    response = await runtime.ask(await runtime.serve(fakes.Index(dense_hits={"a": 1.0})))
    assert set(response.timings_ms) == {"lexical", "dense", "fused", "embed", "total"}
    assert all(value >= 0 for value in response.timings_ms.values())


async def test_a_caller_sees_only_documents_of_its_tenant(runtime: Any, fakes: SimpleNamespace) -> None:
    index = fakes.Index(dense_hits={"a": 0.9, "b": 0.5}, tenants={"a": "acme"})
    name = await runtime.serve(index)
    assert list(scored(await runtime.ask(name))) == ["b"]
    assert list(scored(await runtime.ask(name, scope={"tenant": "acme"}))) == ["a", "b"]


async def test_a_filter_that_does_not_fit_is_the_callers_error(runtime: Any, fakes: SimpleNamespace) -> None:
    name = await runtime.serve(fakes.Index(dense_hits={"a": 0.9}))
    with pytest.raises(InvalidFilterError, match="undeclared"):
        await runtime.ask(name, filters={"type": "eq", "key": "undeclared", "value": 1})


async def test_a_release_that_is_not_open_is_unavailable(runtime: Any) -> None:
    with pytest.raises(ReleaseUnavailableError, match="release rel-0 is not open"):
        await runtime.ask("rel-0")


async def test_an_index_in_a_language_of_no_vectors_answers_by_words_and_the_answer_says_so(
    runtime: Any, fakes: SimpleNamespace
) -> None:
    index = fakes.Index(lexical_hits={"a": 3.0, "b": 1.0}, provides=WORDS_ONLY)
    response = await runtime.ask(await runtime.serve(index))
    assert scored(response) == {"a": 1.0, "b": 0.0}
    assert response.degraded == MISMATCH
    assert runtime.encoders.opened == []


@pytest.mark.parametrize("provides", [WORDS_ONLY, WORDS_ONLY | {"dense"}], ids=["words only", "both"])
async def test_a_pipeline_that_reads_no_vectors_misses_none(
    runtime: Any, fakes: SimpleNamespace, provides: frozenset[str]
) -> None:
    index = fakes.Index(lexical_hits={"a": 3.0}, provides=provides)
    response = await runtime.ask(await runtime.serve(index, nodes=(LEXICAL,)))
    assert response.degraded == []


async def two(runtime: Any, fakes: SimpleNamespace, **second: Any) -> str:
    docs = fakes.Index(lexical_hits={"a": 4.0, "b": 2.0}, dense_hits={"a": 0.8, "b": 0.4})
    wiki = {"lexical_hits": {"a": 3.0, "c": 2.0}, "dense_hits": {"a": 0.6, "c": 0.4}, "revision": "wiki-1", **second}
    return await runtime.serve(docs, fakes.Index(**wiki))


async def test_knowledge_bases_are_searched_together(runtime: Any, fakes: SimpleNamespace) -> None:
    response = await runtime.ask(await two(runtime, fakes), explain=True)
    assert [(result.knowledge_base, result.chunk_id, result.score) for result in response.results] == [
        ("docs", "a", 1.0),
        ("wiki", "a", 0.5),
        ("docs", "b", 0.0),
        ("wiki", "c", 0.0),
    ]
    assert [result.revision for result in response.results] == ["docs-1", "wiki-1", "docs-1", "wiki-1"]
    assert len(runtime.encoders.opened) == 1


async def test_a_request_may_choose_among_the_releases_knowledge_bases(runtime: Any, fakes: SimpleNamespace) -> None:
    response = await runtime.ask(await two(runtime, fakes), knowledge_bases=["wiki", "wiki"])
    assert {result.knowledge_base for result in response.results} == {"wiki"}


@pytest.mark.parametrize(("names", "said"), [(["wiki", "hr"], "hr"), ([], "nothing")])
async def test_an_unknown_knowledge_base_is_named(
    runtime: Any, fakes: SimpleNamespace, names: list[str], said: str
) -> None:
    name = await two(runtime, fakes)
    with pytest.raises(InvalidQueryError, match=f"knowledge_bases names {said}; this release has docs, wiki"):
        await runtime.ask(name, knowledge_bases=names)


async def test_cosines_of_different_encoders_meet_on_one_scale(runtime: Any, fakes: SimpleNamespace) -> None:
    other = {"fingerprint": fakes.fingerprint("other"), "dense_hits": {"a": 0.99, "c": 0.97}, "lexical_hits": {}}
    docs = fakes.Index(dense_hits={"a": 0.3, "b": 0.1})
    name = await runtime.serve(docs, fakes.Index(revision="wiki-1", **other), nodes=(DENSE,))
    response = await runtime.ask(name, explain=True)
    assert [(result.knowledge_base, result.score) for result in response.results] == [
        ("docs", 1.0),
        ("wiki", 1.0),
        ("docs", 0.0),
        ("wiki", 0.0),
    ]
    assert runtime.encoders.encoders["other"].started[-1] == "q"


async def test_an_index_without_vectors_is_judged_by_its_words(runtime: Any, fakes: SimpleNamespace) -> None:
    name = await two(runtime, fakes, provides=WORDS_ONLY)
    response = await runtime.ask(name)
    assert {(result.knowledge_base, result.chunk_id): result.score for result in response.results} == {
        ("docs", "a"): 1.0,
        ("wiki", "a"): 0.5,
        ("docs", "b"): 0.0,
        ("wiki", "c"): 0.0,
    }
    assert response.degraded == MISMATCH
    assert (await runtime.ask(name, knowledge_bases=["docs"])).degraded == []
