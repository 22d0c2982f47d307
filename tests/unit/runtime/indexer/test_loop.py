"""Building and staying in step: what the loop does, through its ports."""

from collections.abc import Sequence
from typing import Any

import pytest

from tidegate_runtime.ports import DocumentRecord


def words(count: int, *, of: str = "word") -> str:
    return " ".join(f"{of}{number}" for number in range(count))


def documents(world: Any, count: int) -> None:
    for number in range(count):
        world.write(f"{number:03}.md", f"# Title {number}\n\n{words(12, of=f'd{number}w')}\n")


def test_builds_a_revision_from_nothing_and_calls_it_ready(world: Any, shape: Any) -> None:
    documents(world, 3)
    world.configure(shape())

    state = world.tick()

    assert world.ids() == ["docs/000.md", "docs/001.md", "docs/002.md"]
    assert (world.revision.phase, world.revision.documents, world.revision.message) == ("Ready", 3, "")
    assert world.revision.provides == ["bm25", "dense"]
    assert world.revision.ready_at == "2026-01-01T00:00:00Z"
    assert (state.sync.added, state.sync.changed, state.sync.deleted, state.sync.failed) == (3, 0, 0, 0)
    assert state.config_hash == world.configs.config.config_hash()


def test_the_census_is_told_before_any_revision_is_asked_for(world: Any) -> None:
    world.write("a.md", "员工的年假规定在这里说明")
    world.configure()

    state = world.tick()

    assert state.census is not None
    assert (state.census.language, state.census.documents) == ("zh", 1)
    assert state.revisions == []


def test_there_is_no_census_while_a_source_cannot_be_read(world: Any) -> None:
    world.write("a.md", "words")
    world.configure(sources=[world.source_config("docs"), world.source_config("absent")])

    assert world.tick().census is None


def test_a_look_that_finds_nothing_new_embeds_and_commits_nothing(world: Any, shape: Any) -> None:
    documents(world, 3)
    world.configure(shape())
    world.tick()
    commits, embedded = len(world.writer.commits), len(world.embedder.embedded)

    state = world.tick(seconds=900)

    assert (len(world.writer.commits), len(world.embedder.embedded)) == (commits, embedded)
    assert (state.sync.added, state.sync.last_at) == (0, "2026-01-01T00:15:00Z")


def test_an_edit_embeds_only_the_document_that_changed(world: Any, shape: Any) -> None:
    documents(world, 3)
    world.configure(shape())
    world.tick()
    world.embedder.embedded.clear()
    world.write("001.md", "other words")

    state = world.tick(seconds=900)

    assert world.embedder.embedded == ["001 other words"]
    assert (state.sync.added, state.sync.changed, state.sync.deleted) == (0, 1, 0)


def test_a_deleted_document_goes(world: Any, shape: Any) -> None:
    documents(world, 2)
    world.configure(shape())
    world.tick()
    (world.source("docs") / "000.md").unlink()

    state = world.tick(seconds=900)

    assert world.ids() == ["docs/001.md"]
    assert state.sync.deleted == 1


def test_a_renamed_document_goes_together_with_its_successor(world: Any, shape: Any) -> None:
    documents(world, 200)
    world.configure(shape())
    world.tick()
    world.writer.commits.clear()
    world.source("docs").rename(world.folder / "moved")
    (world.source("docs")).mkdir()
    (world.folder / "moved").rename(world.source("docs") / "sub")

    world.tick(seconds=900)

    assert len(world.ids()) == 200
    for upserts, deletes in world.writer.commits:
        assert sorted(f"sub/{key.document_id}" for key in deletes) == sorted(r.key.document_id for r in upserts)


def test_batches_are_bounded_and_each_is_committed(world: Any, shape: Any) -> None:
    documents(world, 150)
    world.configure(shape())

    world.tick()

    sizes = [len(upserts) for upserts, _ in world.writer.commits]
    assert (sum(sizes), max(sizes)) == (150, 64)


def test_a_batch_ends_where_its_chunks_are_enough(world: Any, shape: Any) -> None:
    for number in range(4):
        world.write(f"{number}.md", words(50 * 150, of=f"d{number}w"))
    world.configure(shape())

    world.tick()

    assert [len(upserts) for upserts, _ in world.writer.commits] == [2, 2]


class KilledError(BaseException):
    """Stands for a kill: nothing in the loop may catch it."""


def test_a_new_start_goes_on_after_the_last_commit(world: Any, shape: Any) -> None:
    documents(world, 150)
    world.configure(shape())
    writer = world.store.open(world.configs.config.revisions[0])

    def dies_in_the_second_batch(upserts: Sequence[DocumentRecord]) -> None:
        if upserts and writer.commits:
            raise KilledError

    writer.before_commit = dies_in_the_second_batch
    with pytest.raises(KilledError):
        world.tick()
    assert len(world.ids()) == 64
    writer.before_commit = lambda _: None
    world.embedder.embedded.clear()
    world.start()

    world.tick()

    assert (len(world.ids()), world.revision.phase) == (150, "Ready")
    assert len(world.embedder.embedded) <= 1.1 * (150 - 64)


@pytest.mark.parametrize("batch", [2, 10, 20], ids=["10 %", "50 %", "99 %"])
def test_a_kill_repeats_at_most_one_batch(world: Any, shape: Any, batch: int) -> None:
    count = 20 * 64
    world.write("all.jsonl", "".join(f'{{"id": "{n}", "text": "words of document {n}"}}\n' for n in range(count)))
    world.configure(shape())
    writer = world.store.open(world.configs.config.revisions[0])

    def dies(upserts: Sequence[DocumentRecord]) -> None:
        if upserts and len(writer.commits) == batch - 1:
            raise KilledError

    writer.before_commit = dies
    with pytest.raises(KilledError):
        world.tick()
    assert len(writer.records) == (batch - 1) * 64
    writer.before_commit = lambda _: None
    world.start()

    world.tick()

    assert (len(writer.records), world.revision.phase) == (count, "Ready")
    assert len(world.embedder.embedded) <= 1.1 * count


def test_rules_of_a_source_reach_the_store_without_embedding(world: Any, shape: Any) -> None:
    documents(world, 2)
    world.configure(shape())
    world.tick()
    world.embedder.embedded.clear()

    world.configure(shape(), sources=[world.source_config("docs", tenants=["acme"], metadata={"department": "hr"})])
    world.tick()

    assert world.writer.rules["docs"].tenants == ("acme",)
    assert world.writer.rules["docs"].metadata == {"department": "hr"}
    assert world.embedder.embedded == []


def test_an_old_revision_stays_in_step_while_a_new_one_builds(world: Any, shape: Any) -> None:
    documents(world, 100)
    world.configure(shape(size_tokens=20))
    world.tick()
    old, new = shape(size_tokens=20), shape(size_tokens=40)
    world.configure(old, new)
    names = [one.revision_name("kb") for one in (old, new)]
    new_writer = world.store.open(world.configs.config.revisions[1])
    changed_at: list[int] = []

    def edits(upserts: Sequence[DocumentRecord]) -> None:
        if upserts and not changed_at:
            changed_at.append(len(upserts))
            world.write("050.md", "changed in the middle of the build")
            world.clock.seconds += 900

    new_writer.before_commit = edits
    world.tick()
    states = {revision.name: revision for revision in world.state.revisions}
    assert states[names[1]].phase == "Building"
    assert (states[names[1]].documents_done, states[names[1]].documents_total) == (64, 100)

    world.tick()

    old_contents = [c.content for r in world.store.writers[names[0]].records.values() for c in r.chunks]
    assert "changed in the middle of the build" in old_contents
    assert {revision.phase for revision in world.state.revisions} == {"Ready"}


def test_a_config_change_interrupts_a_build_between_batches(world: Any, shape: Any) -> None:
    documents(world, 150)
    world.configure(shape())
    writer = world.store.open(world.configs.config.revisions[0])

    def reconfigures(upserts: Sequence[DocumentRecord]) -> None:
        if upserts:
            world.configure(shape(), sources=[world.source_config("docs", tenants=["acme"])])
            writer.before_commit = lambda _: None

    writer.before_commit = reconfigures
    world.tick()
    assert (world.revision.phase, world.revision.documents) == ("Building", 64)

    world.tick()

    assert (world.revision.phase, world.revision.documents) == ("Ready", 150)
    assert writer.rules["docs"].tenants == ("acme",)


def test_a_revision_is_removed_once_the_config_is_without_it(world: Any, shape: Any) -> None:
    documents(world, 2)
    old, new = shape(size_tokens=20), shape(size_tokens=40)
    world.configure(old, new)
    world.tick()
    writer = world.store.writers[old.revision_name("kb")]

    world.configure(new)
    world.tick()

    assert writer.closed
    assert world.store.dropped == [old.revision_name("kb")]
    assert [revision.name for revision in world.state.revisions] == [new.revision_name("kb")]


def test_a_revision_dropped_from_the_config_while_nothing_ran_is_removed_at_the_start(world: Any, shape: Any) -> None:
    documents(world, 2)
    old, new = shape(size_tokens=20), shape(size_tokens=40)
    world.configure(old)
    world.tick()
    world.configure(new)
    world.start()

    world.tick()

    assert world.store.dropped == [old.revision_name("kb")]


def test_a_revision_whose_config_changed_is_opened_anew(world: Any, shape: Any) -> None:
    documents(world, 2)
    world.configure(shape())
    world.tick()
    (revision,) = world.configs.config.revisions
    opened: list[str] = []
    world.store.before_open = lambda revision: opened.append(revision.name)

    world.configure(revisions=[revision.model_copy(update={"shape": shape(languages=["en"])})])
    world.tick()

    assert opened == [revision.name]
    assert world.writer.closed
    assert world.revision.phase == "Ready"


def test_a_config_without_revisions_drops_nothing(world: Any, shape: Any) -> None:
    documents(world, 2)
    world.configure(shape())
    world.tick()

    world.configure()
    world.tick()

    assert (world.store.dropped, world.revision.phase) == ([], "Ready")


def test_chunk_sizes_there_and_back_leave_one_copy_of_every_text(world: Any, shape: Any) -> None:
    for number in range(30):
        world.write(f"{number}.md", words(1000, of=f"d{number}w"))
    for size in (400, 200, 400):
        world.configure(shape(size_tokens=size))
        world.tick()

    chunks = [chunk.content for record in world.writer.records.values() for chunk in record.chunks]
    assert (len(world.ids()), len(chunks), len(set(chunks))) == (30, 90, 90)


def test_the_same_text_under_two_names_is_two_documents(world: Any, shape: Any) -> None:
    for name in ("leave.md", "copy-of-leave.md"):
        world.write(name, words(500))
    world.configure(shape())
    world.tick()

    assert {key.document_id: len(record.chunks) for key, record in world.writer.records.items()} == {
        "leave.md": 10,
        "copy-of-leave.md": 10,
    }


def test_a_document_that_shrinks_leaves_no_old_chunk(world: Any, shape: Any) -> None:
    world.write("a.md", words(500))
    world.configure(shape())
    world.tick()
    assert world.revision.chunks == 10

    world.write("a.md", words(200))
    world.tick(seconds=900)

    assert world.revision.chunks == 4


def test_every_source_is_due_when_the_sync_token_changes(world: Any, shape: Any) -> None:
    documents(world, 1)
    sources = [world.source_config("docs", refresh_seconds=0)]
    world.configure(shape(), sources=sources)
    world.tick()
    documents(world, 2)
    world.tick(seconds=100_000)
    assert len(world.ids()) == 1

    world.configure(shape(), sources=sources, sync="now")
    state = world.tick()

    assert len(world.ids()) == 2
    assert state.sync.last_handled == "now"


def test_a_file_that_goes_while_it_is_indexed_is_looked_at_again(world: Any, shape: Any) -> None:
    documents(world, 65)
    world.configure(shape())
    writer = world.store.open(world.configs.config.revisions[0])

    def removes_the_next_file(upserts: Sequence[DocumentRecord]) -> None:
        (world.source("docs") / "064.md").unlink(missing_ok=True)

    writer.before_commit = removes_the_next_file
    world.tick()
    assert world.revision.phase == "Building"

    world.tick()

    assert (world.revision.phase, world.revision.documents) == ("Ready", 64)


def test_a_file_that_changes_while_it_is_indexed_ends_as_it_stands(world: Any, shape: Any) -> None:
    documents(world, 65)
    world.configure(shape())
    writer = world.store.open(world.configs.config.revisions[0])

    def rewrites_the_next_file(upserts: Sequence[DocumentRecord]) -> None:
        world.write("064.md", "words of another version")

    writer.before_commit = rewrites_the_next_file
    world.tick()
    writer.before_commit = lambda _: None

    world.tick()

    contents = [chunk.content for record in writer.records.values() for chunk in record.chunks]
    assert "words of another version" in contents
    assert world.revision.phase == "Ready"


def test_a_watched_source_is_looked_at_every_second(world: Any, shape: Any) -> None:
    world.watch = True
    world.start()
    documents(world, 1)
    world.configure(shape())
    world.tick()
    documents(world, 2)

    world.tick(seconds=0.5)
    assert len(world.ids()) == 1
    world.tick(seconds=0.5)
    assert len(world.ids()) == 2
