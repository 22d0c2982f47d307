"""What stops work for a while - a full volume, a missing model, a damaged folder - is told and tried again."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from tests.unit.runtime.indexer.steps import built, documents

from tidegate_runtime.errors import ModelUnavailableError, RevisionUnavailableError, StoreFullError
from tidegate_runtime.ports import DocumentRecord


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
