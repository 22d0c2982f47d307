"""Which segments are merged, and what that costs while an index grows."""

from pathlib import Path

import pytest
from tests.unit.runtime.store.samples import PUBLIC, make_document, make_shape

from tidegate_runtime.stores.embedded import EmbeddedWriter
from tidegate_runtime.stores.embedded.compaction import FULL_CHUNKS, SMALL_CHUNKS, Load, plan_merges


def loads(*live: int) -> list[Load]:
    return [Load(stored_chunks=chunks, live_chunks=chunks, dead_documents=False) for chunks in live]


@pytest.mark.parametrize(
    ("segments", "merged"),
    [
        (loads(), []),
        (loads(10), []),
        (loads(10, 10), [[0, 1]]),
        (loads(100_000, 10), []),
        (loads(*[FULL_CHUNKS - 1] * 3), [[0, 1]]),
        (loads(100_000, 10, 20), [[1, 2]]),
        (loads(100_000, 900, 600, 600), [[1, 2, 3]]),
        (loads(10, 100_000, 20), [[0, 2]]),
        (loads(60_000, 40_000, 22_000), [[0, 1, 2]]),
        (loads(FULL_CHUNKS - 1, 50_000, 20_000), []),
        (loads(FULL_CHUNKS, FULL_CHUNKS), []),
        ([Load(1000, 900, dead_documents=True)], []),
        ([Load(1000, 700, dead_documents=True)], [[0]]),
        ([Load(100_000, 70_000, dead_documents=True), *loads(10)], [[0]]),
    ],
    ids=str,
)
def test_what_is_merged(segments: list[Load], merged: list[list[int]]) -> None:
    assert plan_merges(segments) == merged


def test_a_purge_rewrites_whatever_holds_dead_documents() -> None:
    segments = [Load(100_000, 99_999, dead_documents=True), *loads(90_000), Load(500, 500, dead_documents=True)]
    assert plan_merges(segments, purge=True) == [[0], [2]]


@pytest.mark.parametrize(("edit", "chunks"), [(1, 10_000), (64, 100_000), (700, 100_000)])
def test_there_are_few_segments_and_few_rewrites_while_an_index_grows(edit: int, chunks: int) -> None:
    segments: list[Load] = []
    total, written = 0, 0
    while total < chunks:
        segments += loads(edit)
        total += edit
        while groups := plan_merges(segments):
            merged = sum(segments[position].live_chunks for position in groups[0])
            segments = [load for position, load in enumerate(segments) if position not in groups[0]] + loads(merged)
            written += merged
        assert len(segments) <= 10
    if edit >= SMALL_CHUNKS / 4:
        assert written / total < 12


def files_in(folder: Path, suffix: str) -> int:
    return len(list(folder.glob(f"*{suffix}")))


def test_steady_edits_keep_the_folder_small(tmp_path: Path) -> None:
    writer = EmbeddedWriter.open(tmp_path, revision="r", shape=make_shape())
    writer.commit(upserts=[make_document(f"{i}", ["leave", "rules"]) for i in range(300)], rules=PUBLIC)
    for edit in range(40):
        writer.commit(upserts=[make_document(f"{edit % 7}", [f"edit {edit}"])])
        writer.compact()
        assert files_in(tmp_path, ".segment") <= 3
        assert files_in(tmp_path, ".deletions") <= 3
    assert writer.stats().documents == 300


SECRETS = (b"secret-id", b"secret-text", b"secret-title", b"secret-kind", b"secret-tenant", b"secret-source")


def found_secrets(folder: Path) -> set[bytes]:
    content = b"".join(path.read_bytes() for path in folder.iterdir())
    return {secret for secret in SECRETS if secret in content}


def test_a_purge_leaves_no_trace_of_deleted_documents(tmp_path: Path) -> None:
    writer = EmbeddedWriter.open(tmp_path, revision="r", shape=make_shape(schema={"kind": "keyword"}))
    secret = make_document(
        "secret-id",
        ["secret-text"],
        source="secret-source",
        title="secret-title",
        metadata={"kind": "secret-kind"},
        tenants=("secret-tenant",),
    )
    writer.commit(upserts=[secret, *(make_document(f"{i}", ["plain"]) for i in range(50))], rules=PUBLIC)
    writer.commit(deletes=[secret.key])
    writer.compact()
    assert found_secrets(tmp_path) == set(SECRETS)  # one of 51: not worth a rewrite
    writer.compact(purge=True)
    assert found_secrets(tmp_path) == set()
