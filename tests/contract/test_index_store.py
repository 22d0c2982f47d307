"""What every index store keeps: writing, reading and views; one class, run against each adapter."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tests.unit.runtime.store.samples import lexical_hits, make_document, make_shape, vector_of, visible_documents

from tidegate_api.shape import RevisionShape
from tidegate_api.wire import Comparison
from tidegate_runtime.errors import InvalidFilterError, RevisionUnavailableError, UnusableVectorError
from tidegate_runtime.ports import DocumentKey, IndexReader, IndexSnapshot, IndexWriter, Permission, SourceRules
from tidegate_runtime.stores.embedded import EmbeddedReader, EmbeddedWriter

SHAPE = make_shape(schema={"kind": "keyword", "year": "number"})
RULES = {"s": SourceRules(tenants=("*",), metadata={"kind": "policy"})}
LEAVE = make_document("leave.md", ["Annual leave is 25 days.", "Unused leave ends in March."], title="Leave")
PUMP = make_document("pump.md", ["The pump weighs 5 kg."], metadata={"kind": "manual", "year": 2024})
SECRET = make_document("secret.md", ["Leave of the board."], tenants=("board",), groups=("chairs",))


class Store(NamedTuple):
    """One revision from both sides."""

    writer: IndexWriter
    reader: IndexReader

    def view(self) -> IndexSnapshot:
        return self.reader.snapshot()


def open_embedded(folder: Path, shape: RevisionShape) -> Store:
    return Store(EmbeddedWriter.open(folder, revision="kb-1", shape=shape), EmbeddedReader.open(folder))


@pytest.fixture(params=[pytest.param(open_embedded, id="embedded")])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    store: Store = request.param(tmp_path / "kb-1", SHAPE)
    yield store
    store.reader.close()
    store.writer.close()


@pytest.fixture
def store(empty: Store) -> Store:
    empty.writer.commit(upserts=[LEAVE, PUMP, SECRET], rules=RULES)
    empty.writer.mark_ready(dense=True)
    return empty


class TestIndexWriter:
    """The contract of `ports.IndexWriter`."""

    def test_documents_are_told_with_their_hashes(self, store: Store) -> None:
        assert store.writer.documents() == {record.key: record.content_hash for record in (LEAVE, PUMP, SECRET)}

    def test_the_generation_grows_with_each_change_and_only_then(self, store: Store) -> None:
        before = store.writer.stats().content_generation
        assert store.writer.commit(upserts=[LEAVE], deletes=[DocumentKey("s", "unknown")], rules=RULES) == before
        assert store.writer.commit(deletes=[LEAVE.key]) == before + 1
        assert store.writer.commit(rules={}) == before + 2
        assert store.writer.stats().content_generation == before + 2

    def test_what_was_returned_does_not_change_later(self, store: Store) -> None:
        documents = store.writer.documents()
        store.writer.commit(deletes=[LEAVE.key])
        assert LEAVE.key in documents

    def test_a_refused_batch_leaves_nothing_behind(self, store: Store) -> None:
        broken = make_document("broken.md", ["x"])
        broken = replace(broken, chunks=(replace(broken.chunks[0], vector=vector_of("x") * np.float32(0)),))
        before = store.writer.stats()
        with pytest.raises(UnusableVectorError, match=r"broken\.md"):
            store.writer.commit(upserts=[make_document("fine.md", ["y"]), broken], deletes=[LEAVE.key])
        assert store.writer.stats() == before
        assert LEAVE.key in store.writer.documents()

    def test_figures_follow_content(self, store: Store) -> None:
        assert (store.writer.stats().documents, store.writer.stats().chunks) == (3, 4)
        store.writer.commit(deletes=[LEAVE.key])
        assert (store.writer.stats().documents, store.writer.stats().chunks) == (2, 2)
        assert store.writer.stats().size_bytes > 0
        assert store.writer.stats().load_bytes > 0

    def test_readers_wait_for_readiness(self, empty: Store) -> None:
        with pytest.raises(RevisionUnavailableError):
            empty.view()
        assert not empty.writer.ready
        empty.writer.mark_ready(dense=False)
        assert (empty.writer.ready, empty.writer.dense) == (True, False)
        assert empty.view().provides == {"bm25"}


class TestIndexSnapshot:
    """The contract of `ports.IndexReader` and `ports.IndexSnapshot`."""

    def test_it_says_what_it_is(self, store: Store) -> None:
        view = store.view()
        assert view.revision == "kb-1"
        assert view.content_generation == store.writer.stats().content_generation
        assert view.provides == {"bm25", "dense"}
        assert view.fingerprint == SHAPE.embedder

    def test_a_view_stays_as_it_is_and_a_new_one_follows(self, store: Store) -> None:
        view = store.view()
        store.writer.commit(deletes=[LEAVE.key])
        assert lexical_hits(view, "annual") == [("leave.md", "Annual leave is 25 days.")]
        assert lexical_hits(store.view(), "annual") == []

    def test_merging_changes_no_bit_of_an_answer(self, store: Store) -> None:
        store.writer.commit(upserts=[make_document(f"{i}.md", [f"leave {i}"]) for i in range(20)], deletes=[PUMP.key])
        before, selection = store.view(), store.view().select(Permission(), None)
        query, vector = before.analyse("leave 7 days"), vector_of("leave")
        expected = before.lexical(query, selection, top_k=50), before.dense(vector, selection, top_k=50)
        store.writer.compact()
        after = store.view()
        selection = after.select(Permission(), None)
        found = after.lexical(query, selection, top_k=50), after.dense(vector, selection, top_k=50)
        for leg, merged in zip(expected, found, strict=True):
            assert before.chunk_ids(leg.rows) == after.chunk_ids(merged.rows)
            assert leg.scores.tobytes() == merged.scores.tobytes()

    def test_legs_are_sorted_cut_and_agree_with_the_scores_of_their_rows(self, store: Store) -> None:
        view = store.view()
        selection = view.select(Permission(), None)
        query, vector = view.analyse("leave days pump"), vector_of("leave")
        for top_k in (1, 2, 50):
            lexical, dense = view.lexical(query, selection, top_k=top_k), view.dense(vector, selection, top_k=top_k)
            assert len(lexical.rows) == len(dense.rows) == min(top_k, 3)
            assert lexical.scores.tolist() == sorted(lexical.scores.tolist(), reverse=True)
            assert view.lexical_scores(query, lexical.rows).tobytes() == lexical.scores.tobytes()
            assert view.dense_scores(vector, dense.rows).tobytes() == dense.scores.tobytes()

    def test_a_chunk_finds_itself_in_both_legs(self, store: Store) -> None:
        view = store.view()
        selection = view.select(Permission(tenant="board", groups=frozenset({"chairs"})), None)
        for record in (LEAVE, PUMP, SECRET):
            for chunk in record.chunks:
                rows = [
                    view.lexical(view.analyse(chunk.content), selection, top_k=1).rows,
                    view.dense(vector_of(chunk.content), selection, top_k=1).rows,
                ]
                assert [view.chunks(row)[0].content for row in rows] == [chunk.content] * 2

    def test_the_lexical_leg_leaves_out_what_matches_no_term(self, store: Store) -> None:
        assert lexical_hits(store.view(), "quantum entanglement") == []
        assert lexical_hits(store.view(), "") == []

    def test_a_chunk_is_shown_whole_with_the_source_s_constants(self, store: Store) -> None:
        view = store.view()
        rows = view.lexical(view.analyse("march"), view.select(Permission(), None), top_k=1).rows
        chunk = view.chunks(rows)[0]
        assert (chunk.document_id, chunk.source, chunk.title) == ("leave.md", "s", "Leave")
        assert (chunk.content, chunk.start, chunk.end) == ("Unused leave ends in March.", 0, 27)
        assert chunk.chunk_id == view.chunk_ids(rows)[0]
        assert chunk.metadata == {"kind": "policy"}

    def test_coverage_is_a_share(self, store: Store) -> None:
        view = store.view()
        query = view.analyse("annual leave of unicorns")
        rows = view.lexical(query, view.select(Permission(), None), top_k=9).rows
        coverage = view.idf_coverage(query, rows)
        assert all(0 < share < 1 for share in coverage.tolist())
        assert view.idf_coverage(view.analyse("leave"), rows).tolist() == [1.0] * len(rows)

    def test_callers_see_what_is_theirs(self, store: Store) -> None:
        view = store.view()
        assert visible_documents(view) == {"leave.md", "pump.md"}
        assert visible_documents(view, permission=Permission(tenant="board")) == {"leave.md", "pump.md"}
        chair = Permission(tenant="board", groups=frozenset({"chairs"}))
        assert visible_documents(view, permission=chair) == {"leave.md", "pump.md", "secret.md"}
        store.writer.commit(rules={})
        assert visible_documents(store.view(), permission=chair) == set()

    def test_filters_hold_in_both_legs(self, store: Store) -> None:
        view = store.view()
        manuals = Comparison(type="eq", key="kind", value="manual")
        assert lexical_hits(view, "leave pump", filters=manuals) == [("pump.md", "The pump weighs 5 kg.")]
        assert visible_documents(view, filters=manuals) == {"pump.md"}
        with pytest.raises(InvalidFilterError, match="color"):
            view.select(Permission(), Comparison(type="eq", key="color", value="red"))

    def test_many_threads_get_their_own_answers(self, store: Store) -> None:
        store.writer.commit(upserts=[make_document(f"{i}", [f"token{i} leave"]) for i in range(40)])
        view = store.view()

        def ask(number: int) -> bool:
            selection = view.select(Permission(tenant=f"t{number % 5}"), None)
            lexical = view.lexical(view.analyse(f"token{number}"), selection, top_k=5)
            dense = view.dense(vector_of(f"token{number} leave"), selection, top_k=1)
            ids = {chunk.document_id for rows in (lexical.rows, dense.rows) for chunk in view.chunks(rows)}
            return ids == {str(number)}

        with ThreadPoolExecutor(max_workers=16) as pool:
            assert all(pool.map(ask, [number % 40 for number in range(400)]))
