"""Sources that vanish, come back, or are suddenly empty: nothing is deleted without proof, and it is said."""

import shutil
from typing import Any

from tests.unit.runtime.indexer.steps import built, documents


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
