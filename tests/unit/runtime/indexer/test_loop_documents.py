"""Documents that fail: they are named, keep what was indexed of them, and take no other with them."""

from collections.abc import Sequence
from typing import Any

from tests.unit.runtime.indexer.steps import built, documents, failures

from tidegate_runtime.errors import UnusableVectorError
from tidegate_runtime.ports import DocumentRecord


def test_a_document_that_cannot_be_read_is_named_and_the_others_are_indexed(world: Any, shape: Any) -> None:
    documents(world, 2)
    (world.source("docs") / "bad.md").write_bytes(b"\xff\xfe\x00")
    (world.source("docs") / "gbk.md").write_bytes("年假规定".encode("gbk"))
    world.configure(shape())

    state = world.tick()

    assert (world.revision.phase, world.revision.documents) == ("Ready", 2)
    assert state.sync.failed == 2
    assert failures(world).keys() == {"docs/bad.md", "docs/gbk.md"}


def test_a_document_that_fails_now_keeps_the_version_that_was_indexed(world: Any, shape: Any) -> None:
    built(world, shape)
    (world.source("docs") / "001.md").write_bytes(b"\x00\x01")

    state = world.tick(seconds=900)

    assert len(world.ids()) == 3
    assert (state.sync.failed, world.revision.phase) == (1, "Ready")


def test_a_document_that_fails_keeps_its_version_over_a_restart(world: Any, shape: Any) -> None:
    built(world, shape)
    (world.source("docs") / "001.md").write_bytes(b"\x00\x01")
    world.start()

    world.tick()

    assert len(world.ids()) == 3


def test_a_document_id_that_two_files_claim_belongs_to_the_first(world: Any, shape: Any) -> None:
    world.write("a.jsonl", '{"id": "x", "text": "one"}\n')
    world.write("b.jsonl", '{"id": "x", "text": "two"}\n')
    world.configure(shape())

    world.tick()

    assert [r.chunks[0].content for r in world.writer.records.values()] == ["one"]
    assert "'x'" in failures(world)["docs/b.jsonl"]
    assert "a.jsonl" in failures(world)["docs/b.jsonl"]


def test_failures_are_counted_whole_and_named_up_to_twenty(world: Any, shape: Any) -> None:
    documents(world, 1)
    for number in range(30):
        (world.source("docs") / f"bad{number:02}.md").write_bytes(b"\x00")
    world.configure(shape())

    state = world.tick()

    assert (state.sync.failed, len(state.sync.failures)) == (30, 20)


def test_when_every_document_fails_the_revision_is_not_ready(world: Any, shape: Any) -> None:
    (world.source("docs") / "bad.md").write_bytes(b"\x00")
    world.configure(shape())

    world.tick()

    assert (world.revision.phase, "no document could be indexed" in world.revision.message) == ("Failed", True)


def test_a_document_without_a_usable_vector_fails_by_name_and_the_others_go_on(world: Any, shape: Any) -> None:
    documents(world, 100)
    world.embedder.poison = "document 42"
    world.configure(shape())

    world.tick()

    assert (world.revision.phase, world.revision.documents) == ("Ready", 99)
    assert "no usable vector for chunk 0" in failures(world)["docs/042.md"]
    assert (world.revision.documents_done, world.revision.documents_total) == (100, 100)


def test_a_refused_document_is_not_embedded_again_until_it_changes(world: Any, shape: Any) -> None:
    documents(world, 3)
    world.embedder.poison = "document 1"
    world.configure(shape())
    world.tick()
    world.embedder.embedded.clear()

    world.write("new.md", "more")
    world.tick(seconds=900)
    assert world.embedder.embedded == ["new more"]
    assert world.state.sync.failed == 1

    world.write("001.md", "better words")
    world.tick(seconds=900)
    assert (len(world.ids()), world.state.sync.failed) == (4, 0)


def test_a_document_that_the_store_refuses_takes_no_other_with_it(world: Any, shape: Any) -> None:
    documents(world, 5)
    world.configure(shape())
    writer = world.store.open(world.configs.config.revisions[0])

    def refuses(upserts: Sequence[DocumentRecord]) -> None:
        if any(record.key.document_id == "003.md" for record in upserts):
            raise UnusableVectorError("document '003.md': refused")

    writer.before_commit = refuses
    world.tick()

    assert world.ids() == ["docs/000.md", "docs/001.md", "docs/002.md", "docs/004.md"]
    assert failures(world) == {"docs/003.md": "document '003.md': refused"}
    assert world.revision.phase == "Ready"
