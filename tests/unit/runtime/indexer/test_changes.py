"""The difference between sources and a manifest, and what may be deleted."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_runtime.indexer.changes import Changes, FileWork, held_sources, next_holds, plan_changes
from tidegate_runtime.indexer.snapshot import DocumentEntry, SourceSnapshot
from tidegate_runtime.ports import DocumentKey


def snapshot(documents: Mapping[str, str], *, file: str | None = None) -> SourceSnapshot:
    entries = {name: DocumentEntry(content_hash, file or name) for name, content_hash in documents.items()}
    return SourceSnapshot(files={}, refused=(), documents=entries, failures=(), scripts={})


def plan(
    manifest: Mapping[DocumentKey, str],
    snapshots: Mapping[str, SourceSnapshot],
    *,
    configured: frozenset[str] = frozenset({"docs"}),
    frozen: frozenset[str] = frozenset(),
    refused: Mapping[DocumentKey, str] | None = None,
) -> Changes:
    return plan_changes(manifest, snapshots, configured=configured, frozen=frozen, refused=refused or {})


def test_documents_are_added_changed_and_deleted() -> None:
    manifest = {DocumentKey("docs", name): "1" for name in ("same", "other", "gone")}

    changes = plan(manifest, {"docs": snapshot({"same": "1", "other": "2", "new": "1"})})

    assert changes == Changes(
        work=(
            FileWork("docs", "new", frozenset({"new"})),
            FileWork("docs", "other", frozenset({"other"})),
        ),
        added=frozenset({DocumentKey("docs", "new")}),
        changed=frozenset({DocumentKey("docs", "other")}),
        deletes=(DocumentKey("docs", "gone"),),
    )
    assert not changes.none


def test_documents_of_one_file_are_one_piece_of_work() -> None:
    changes = plan({}, {"docs": snapshot({"b": "1", "a": "1"}, file="all.jsonl")})

    assert changes.work == (FileWork("docs", "all.jsonl", frozenset({"a", "b"})),)


def test_agreement_is_no_change() -> None:
    assert plan({DocumentKey("docs", "a"): "1"}, {"docs": snapshot({"a": "1"})}).none


def test_the_same_id_in_two_sources_is_two_documents() -> None:
    snapshots = {"docs": snapshot({"a": "1"}), "more": snapshot({"a": "1"})}

    changes = plan({DocumentKey("docs", "a"): "1"}, snapshots, configured=frozenset({"docs", "more"}))

    assert changes.added == {DocumentKey("more", "a")}


@pytest.mark.parametrize(
    ("snapshots", "configured", "frozen", "deleted"),
    [
        ({"docs": snapshot({})}, {"docs"}, set(), True),
        ({"docs": snapshot({})}, {"docs"}, {"docs"}, False),
        ({}, {"docs"}, set(), False),
        ({}, {"more"}, set(), True),
    ],
    ids=["listed without it", "held", "source not readable", "source not configured"],
)
def test_a_document_is_deleted_only_with_proof(
    snapshots: Mapping[str, SourceSnapshot], configured: set[str], frozen: set[str], deleted: bool
) -> None:
    key = DocumentKey("docs", "a")

    changes = plan({key: "1"}, snapshots, configured=frozenset(configured), frozen=frozenset(frozen))

    assert (changes.deletes == (key,)) is deleted


def test_a_document_that_a_failing_file_may_hold_is_kept() -> None:
    manifest = {DocumentKey("docs", "a"): "1", DocumentKey("docs", "b"): "1"}
    failing = SourceSnapshot({}, (), {}, (), {}, unread=frozenset({"a"}))

    assert plan(manifest, {"docs": failing}).deletes == (DocumentKey("docs", "b"),)
    assert plan(manifest, {"docs": replace(failing, unread=None)}).none


def test_a_refused_version_is_not_tried_again_but_another_one_is() -> None:
    key = DocumentKey("docs", "a")

    assert plan({}, {"docs": snapshot({"a": "1"})}, refused={key: "1"}).none
    assert plan({}, {"docs": snapshot({"a": "2"})}, refused={key: "1"}).added == {key}


hashes = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("123"))


@given(before=hashes, after=hashes)
def test_carrying_out_the_changes_gives_agreement(before: dict[str, str], after: dict[str, str]) -> None:
    manifest = {DocumentKey("docs", name): content_hash for name, content_hash in before.items()}
    changes = plan(manifest, {"docs": snapshot(after)})

    for key in changes.deletes:
        del manifest[key]
    for work in changes.work:
        manifest |= {DocumentKey("docs", name): after[name] for name in work.document_ids}

    assert {key.document_id: content_hash for key, content_hash in manifest.items()} == after
    assert plan(manifest, {"docs": snapshot(after)}).none


def test_a_source_that_lost_everything_is_held_under_the_present_token() -> None:
    holds = next_holds({}, {"docs": snapshot({})}, indexed=frozenset({"docs"}), sync="t1")

    assert holds == {"docs": "t1"}
    assert held_sources(holds, sync="t1") == {"docs"}


def test_a_hold_keeps_its_first_token_so_that_a_new_one_confirms_it() -> None:
    holds = next_holds({"docs": "t1"}, {"docs": snapshot({})}, indexed=frozenset({"docs"}), sync="t2")

    assert holds == {"docs": "t1"}
    assert held_sources(holds, sync="t2") == frozenset()


@pytest.mark.parametrize(
    ("snapshots", "indexed", "holds"),
    [
        ({"docs": snapshot({"a": "1"})}, {"docs"}, {}),
        ({"docs": snapshot({})}, set(), {}),
        ({}, {"docs"}, {"docs": "t1"}),
    ],
    ids=["documents are back", "nothing is indexed any more", "source not readable"],
)
def test_when_a_hold_ends(snapshots: Mapping[str, SourceSnapshot], indexed: set[str], holds: dict[str, str]) -> None:
    assert next_holds({"docs": "t1"}, snapshots, indexed=frozenset(indexed), sync="t1") == holds
