"""What goes wrong around the loop: it says so, keeps what is indexed, and goes on with the rest."""

import shutil
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from tidegate_runtime.errors import ModelUnavailableError, RevisionUnavailableError, StoreFullError, UnusableVectorError
from tidegate_runtime.ports import DocumentRecord


def documents(world: Any, count: int, *, source: str = "docs") -> None:
    for number in range(count):
        world.write(f"{number:03}.md", f"words of document {number}", source=source)


def built(world: Any, shape: Any, count: int = 3) -> None:
    documents(world, count)
    world.configure(shape())
    world.tick()
    assert world.revision.phase == "Ready"


def failures(world: Any) -> dict[str, str]:
    return {failure.document: failure.reason for failure in world.state.sync.failures}


# --- sources ---------------------------------------------------------------------------------------


def test_a_source_that_vanishes_deletes_nothing_and_is_named(world: Any, shape: Any) -> None:
    built(world, shape)
    shutil.rmtree(world.source("docs"))

    state = world.tick(seconds=900)

    assert len(world.ids()) == 3
    assert world.revision.phase == "Ready"
    for part in ("source 'docs'", str(world.source("docs")), "does not exist", "claim 'claim'", "stays"):
        assert part in state.message


def test_a_source_that_comes_back_is_in_step_again_and_the_message_goes(world: Any, shape: Any) -> None:
    built(world, shape)
    world.source("docs").rename(world.folder / "away")
    world.tick(seconds=900)
    (world.folder / "away").rename(world.source("docs"))
    documents(world, 4)

    state = world.tick(seconds=1)

    assert (len(world.ids()), state.message) == (4, "")


def test_a_missing_source_leaves_the_others_in_step(world: Any, shape: Any) -> None:
    documents(world, 2)
    world.configure(shape(), sources=[world.source_config("docs"), world.source_config("absent")], sync="t1")

    state = world.tick()

    assert len(world.ids()) == 2
    assert world.revision.phase == "Pending"
    assert "every source can be read" in world.revision.message
    assert state.sync.last_handled == ""


def test_a_revision_is_ready_once_the_missing_source_is_there(world: Any, shape: Any) -> None:
    documents(world, 2)
    world.configure(shape(), sources=[world.source_config("docs"), world.source_config("late")], sync="t1")
    world.tick()
    documents(world, 1, source="late")

    state = world.tick(seconds=1)

    assert (world.revision.phase, world.revision.documents, world.revision.message) == ("Ready", 3, "")
    assert state.sync.last_handled == "t1"


def test_an_empty_source_makes_an_empty_revision_that_is_ready_and_says_so(world: Any, shape: Any) -> None:
    world.configure(shape())

    state = world.tick()

    assert (world.revision.phase, world.revision.documents) == ("Ready", 0)
    assert "source 'docs' holds no document to index" in state.message


def test_a_source_that_is_suddenly_empty_is_held(world: Any, shape: Any) -> None:
    built(world, shape)
    for path in world.source("docs").iterdir():
        path.unlink()

    state = world.tick(seconds=900)

    assert len(world.ids()) == 3
    assert "source 'docs' lists no document any more" in state.message
    assert "new sync token" in state.message


def test_a_held_deletion_is_made_after_a_new_sync_token(world: Any, shape: Any) -> None:
    built(world, shape)
    for path in world.source("docs").iterdir():
        path.unlink()
    world.tick(seconds=900)

    world.configure(shape(), sync="confirmed")
    state = world.tick()

    assert world.ids() == []
    assert state.sync.deleted == 3


def test_a_hold_survives_a_restart_and_the_token_of_its_beginning_does_not_confirm_it(world: Any, shape: Any) -> None:
    built(world, shape)
    world.configure(shape(), sync="t1")
    world.tick()
    for path in world.source("docs").iterdir():
        path.unlink()
    world.tick(seconds=900)
    world.start()

    world.tick()

    assert len(world.ids()) == 3


def test_a_hold_ends_when_documents_are_back(world: Any, shape: Any) -> None:
    built(world, shape)
    for path in world.source("docs").iterdir():
        path.unlink()
    world.tick(seconds=900)
    documents(world, 2)

    state = world.tick(seconds=900)

    assert (world.ids(), state.message) == (["docs/000.md", "docs/001.md"], "")


def test_a_new_revision_is_not_ready_while_a_source_is_held(world: Any, shape: Any) -> None:
    built(world, shape)
    for path in world.source("docs").iterdir():
        path.unlink()
    world.tick(seconds=900)

    world.configure(shape(), shape(size_tokens=20))
    world.tick()

    phases = {revision.name: revision.phase for revision in world.state.revisions}
    assert phases == {shape().revision_name("kb"): "Ready", shape(size_tokens=20).revision_name("kb"): "Pending"}


def test_documents_of_a_source_that_is_configured_no_more_go_without_asking(world: Any, shape: Any) -> None:
    documents(world, 2)
    documents(world, 2, source="other")
    world.configure(shape(), sources=[world.source_config("docs"), world.source_config("other")])
    world.tick()

    world.configure(shape())
    world.tick()

    assert world.ids() == ["docs/000.md", "docs/001.md"]


# --- documents -------------------------------------------------------------------------------------


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


def test_a_broken_line_keeps_the_documents_that_it_may_stand_for(world: Any, shape: Any) -> None:
    world.write("all.jsonl", '{"id": "a", "text": "one"}\n{"id": "b", "text": "two"}\n')
    documents(world, 1)
    world.configure(shape())
    world.tick()
    world.write("all.jsonl", '{"id": "a", "text": "one"}\n{"id": "b", "te\n')
    (world.source("docs") / "000.md").unlink()

    state = world.tick(seconds=900)

    assert world.ids() == ["docs/a", "docs/b"]
    assert failures(world).keys() == {"docs/all.jsonl:2"}
    assert state.sync.deleted == 1


def test_after_a_restart_a_broken_line_holds_back_every_deletion_it_could_explain(world: Any, shape: Any) -> None:
    world.write("all.jsonl", '{"id": "a", "text": "one"}\n{"id": "b", "text": "two"}\n')
    world.configure(shape())
    world.tick()
    world.write("all.jsonl", '{"id": "a", "text": "one"}\n{"id": "b", "te\n')
    world.start()
    world.tick()
    assert world.ids() == ["docs/a", "docs/b"]

    world.write("all.jsonl", '{"id": "a", "text": "one"}\n')
    world.tick(seconds=900)

    assert world.ids() == ["docs/a"]


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


# --- volume, models, folders -----------------------------------------------------------------------


def test_a_full_volume_pauses_the_build_and_leaves_the_serving_revision_alone(world: Any, shape: Any) -> None:
    built(world, shape, 100)
    old, new = shape(), shape(size_tokens=20)
    world.configure(old, new)
    writer = world.store.open(world.configs.config.revisions[1])

    def full_after_one_batch(upserts: Sequence[DocumentRecord]) -> None:
        if upserts and writer.commits:
            raise StoreFullError("the volume is full; enlarge it")

    writer.before_commit = full_after_one_batch
    world.tick()
    states = {revision.name: revision for revision in world.state.revisions}
    assert states[old.revision_name("kb")].phase == "Ready"
    assert states[new.revision_name("kb")].phase == "Building"
    assert states[new.revision_name("kb")].message == "the volume is full; enlarge it"

    world.write("new.md", "an edit while the build is paused")
    world.clock.seconds += 900
    world.tick()
    assert len(world.store.writers[old.revision_name("kb")].records) == 101

    writer.before_commit = lambda _: None
    world.tick(seconds=60)
    assert {revision.phase for revision in world.state.revisions} == {"Ready"}
    assert len(writer.records) == 101


def test_a_full_volume_is_no_longer_told_once_the_build_goes_on(world: Any, shape: Any) -> None:
    documents(world, 200)
    world.configure(shape())
    writer = world.store.open(world.configs.config.revisions[0])

    def full_once(upserts: Sequence[DocumentRecord]) -> None:
        writer.before_commit = lambda _: None
        raise StoreFullError("full")

    writer.before_commit = full_once
    world.tick()
    assert world.revision.message == "full"
    told: list[tuple[str, str]] = []
    writer.before_commit = lambda _: told.append((world.revision.phase, world.revision.message))

    world.tick(seconds=1)

    assert ("Building", "") in told
    assert ("Building", "full") not in told[2:]


def test_a_new_config_tries_again_at_once(world: Any, shape: Any) -> None:
    documents(world, 1)
    world.configure(shape())
    writer = world.store.open(world.configs.config.revisions[0])

    def full(upserts: Sequence[DocumentRecord]) -> None:
        raise StoreFullError("full")

    writer.before_commit = full
    for _ in range(10):
        world.tick(seconds=30)
    writer.before_commit = lambda _: None

    world.configure(shape(), sync="try again")
    world.tick()

    assert (world.revision.phase, world.revision.message) == ("Ready", "")


def test_a_volume_without_room_for_the_notes_stops_everything_and_says_so(world: Any, shape: Any) -> None:
    built(world, shape)

    world.state_file.full = True
    world.configure(shape(), shape(size_tokens=20))
    state = world.tick()
    assert state.message == "no room to write state.json; enlarge the volume"
    assert [revision.phase for revision in state.revisions] == ["Ready"]

    world.state_file.full = False
    state = world.tick(seconds=1)
    assert (state.message, len(state.revisions)) == ("", 2)


def test_pauses_grow_while_the_volume_stays_full(world: Any, shape: Any) -> None:
    documents(world, 1)
    world.configure(shape())
    tries: list[float] = []

    def full(upserts: Sequence[DocumentRecord]) -> None:
        tries.append(world.clock.seconds)
        raise StoreFullError("full")

    world.store.open(world.configs.config.revisions[0]).before_commit = full
    for _ in range(40):
        world.tick(seconds=1)

    pauses = [later - earlier for earlier, later in pairwise(tries)]
    assert pauses == [1, 2, 4, 8, 16]


def test_a_model_that_is_missing_is_told_and_deletions_are_made_all_the_same(world: Any, shape: Any) -> None:
    built(world, shape)

    def missing(_: object) -> Any:
        raise ModelUnavailableError("model 'x' is not installed; install it")

    world.open_embedder = missing
    (world.source("docs") / "000.md").unlink()
    world.write("new.md", "words")
    world.tick(seconds=900)

    assert world.ids() == ["docs/001.md", "docs/002.md"]
    assert (world.revision.phase, world.revision.message) == ("Ready", "model 'x' is not installed; install it")

    world.open_embedder = None
    world.tick(seconds=1)
    assert (len(world.ids()), world.revision.message) == (3, "")


def test_a_revision_that_cannot_be_opened_is_failed_and_tried_again(world: Any, shape: Any) -> None:
    documents(world, 1)
    world.configure(shape())

    def damaged(_: object) -> None:
        raise RevisionUnavailableError("the manifest is damaged; remove the folder")

    world.store.before_open = damaged
    world.tick()
    assert (world.revision.phase, world.revision.message) == ("Failed", "the manifest is damaged; remove the folder")

    world.store.before_open = lambda _: None
    world.tick(seconds=1)
    assert (world.revision.phase, world.revision.message) == ("Ready", "")


def test_a_revision_that_does_not_pass_its_proof_is_failed_and_proven_again(world: Any, shape: Any) -> None:
    documents(world, 1)
    world.configure(shape())
    world.store.sound = False
    world.tick()
    assert (world.revision.phase, world.revision.provides, world.writer.ready) == ("Failed", [], False)
    assert "the analyzer treats" in world.revision.message

    world.store.sound = True
    world.tick(seconds=1)

    assert (world.revision.phase, world.revision.message, world.writer.ready) == ("Ready", "", True)


def test_a_folder_that_was_removed_is_built_again_and_not_called_ready_before(world: Any, shape: Any) -> None:
    built(world, shape, 100)
    world.store.writers.clear()
    world.start()
    writer = world.store.open(world.configs.config.revisions[0])
    phases: list[str] = []
    writer.before_commit = lambda _: phases.extend(revision.phase for revision in world.state.revisions)

    world.tick()

    assert "Ready" not in phases
    assert (world.revision.phase, world.revision.documents) == ("Ready", 100)


def test_the_folder_of_another_knowledge_base_is_left_alone(world: Any, shape: Any) -> None:
    built(world, shape)

    world.configure(shape(), knowledge_base="other")
    state = world.tick()

    assert "belongs to knowledge base ns/kb" in state.message
    assert len(world.ids()) == 3
    assert world.store.dropped == []


def test_a_mistake_of_ours_ends_the_loop(world: Any, shape: Any) -> None:
    documents(world, 1)
    world.configure(shape())

    def mistake(_: object) -> None:
        raise ZeroDivisionError

    world.store.open(world.configs.config.revisions[0]).before_commit = mistake

    with pytest.raises(ZeroDivisionError):
        world.tick()


def test_a_config_that_cannot_be_obeyed_is_told(world: Any) -> None:
    world.configs.problem = "config x: revisions: wrong"

    assert world.tick().message == "config x: revisions: wrong"


# --- languages -------------------------------------------------------------------------------------


def test_too_many_chunks_beyond_the_encoder_mean_no_dense_leg(world: Any, shape: Any) -> None:
    documents(world, 15)
    world.write("zh.md", "员工的年假规定在这里说明")
    world.configure(shape(languages=["en"]))

    world.tick()

    assert (world.revision.phase, world.revision.provides) == ("Ready", ["bm25"])
    assert world.revision.message.startswith("EmbedderLanguageMismatch: ")
    assert not world.writer.dense


def test_the_dense_leg_follows_the_content(world: Any, shape: Any) -> None:
    documents(world, 15)
    world.write("zh.md", "员工的年假规定在这里说明")
    world.configure(shape(languages=["en"]))
    world.tick()
    world.start()
    documents(world, 40)

    world.tick()

    assert (world.revision.provides, world.revision.message, world.writer.dense) == (["bm25", "dense"], "", True)
