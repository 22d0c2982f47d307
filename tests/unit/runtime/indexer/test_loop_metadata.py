"""A document whose metadata does not fit the schema is refused by name, until it or the schema is corrected."""

import json
from typing import Any

from tests.unit.runtime.indexer.steps import documents, failures

REASON = 'metadata.year: "next" is no number, which metadataSchema says of year: correct the value or the schema'


def line(document_id: str, year: object, *, text: str = "words") -> str:
    return json.dumps({"id": document_id, "text": f"{text} of {document_id}", "metadata": {"year": year}}) + "\n"


def typed(shape: Any, **schema: str) -> Any:
    return shape().model_copy(update={"metadata_schema": schema})


def test_it_is_counted_and_named_and_the_others_are_indexed(world: Any, shape: Any) -> None:
    documents(world, 100)
    world.write("all.jsonl", line("a", 2024) + line("b", "next") + line("c", "2025") + line("d", None))
    world.configure(typed(shape, year="number"))

    state = world.tick()

    assert (world.revision.phase, world.revision.documents) == ("Ready", 103)
    assert (state.sync.failed, failures(world)) == (1, {"docs/b": REASON})
    assert (world.revision.documents_done, world.revision.documents_total) == (104, 104)
    assert "docs/b" not in world.ids()


def test_it_is_neither_cut_nor_embedded_and_needs_no_encoder(world: Any, shape: Any) -> None:
    documents(world, 1)
    world.configure(typed(shape, year="number"))
    world.tick()
    world.embedder.embedded.clear()
    opened: list[object] = []
    world.open_embedder = lambda fingerprint: opened.append(fingerprint) or world.embedder

    world.write("all.jsonl", line("b", "next"))
    state = world.tick(seconds=900)

    assert (state.sync.failed, opened, world.embedder.embedded) == (1, [], [])


def test_metadata_that_is_not_declared_is_never_refused(world: Any, shape: Any) -> None:
    world.write("all.jsonl", line("a", ["next", True]))
    world.configure(typed(shape, other="number"))

    state = world.tick()

    assert (state.sync.failed, world.ids()) == (0, ["docs/a"])


def test_a_changed_document_keeps_the_version_that_was_indexed_until_it_is_corrected(world: Any, shape: Any) -> None:
    world.write("all.jsonl", line("a", 2024, text="old words"))
    world.configure(typed(shape, year="number"))
    world.tick()

    world.write("all.jsonl", line("a", "next", text="new words"))
    world.tick(seconds=900)
    assert failures(world) == {"docs/a": REASON}
    (kept,) = world.writer.records.values()
    assert (kept.metadata, kept.chunks[0].content) == ({"year": 2024}, "old words of a")

    world.write("all.jsonl", line("a", 2026, text="new words"))
    state = world.tick(seconds=900)
    (corrected,) = world.writer.records.values()
    assert (state.sync.failed, state.sync.changed) == (0, 1)
    assert (corrected.metadata, corrected.chunks[0].content) == ({"year": 2026}, "new words of a")


def test_it_is_named_again_after_a_restart(world: Any, shape: Any) -> None:
    world.write("all.jsonl", line("a", 2024) + line("b", "next"))
    world.configure(typed(shape, year="number"))
    world.tick()
    world.start()

    world.tick()

    assert (failures(world), world.ids()) == ({"docs/b": REASON}, ["docs/a"])


def test_a_corrected_schema_indexes_it_in_the_new_revision_and_ends_the_failure(world: Any, shape: Any) -> None:
    world.write("all.jsonl", line("a", 2024) + line("b", "next"))
    before, after = typed(shape, year="number"), typed(shape, year="keyword")
    world.configure(before)
    world.tick()
    assert failures(world) == {"docs/b": REASON}

    world.configure(before, after)  # the old revision stays for as long as something refers to it
    state = world.tick(seconds=1)

    assert {revision.name: revision.documents for revision in state.revisions} == {
        before.revision_name("kb"): 1,
        after.revision_name("kb"): 2,
    }
    assert (state.sync.failed, state.sync.failures) == (0, [])


def test_a_newer_revision_that_refuses_it_is_heard_although_an_older_one_serves_it(world: Any, shape: Any) -> None:
    world.write("all.jsonl", line("a", 2024) + line("b", "next"))
    before, after = typed(shape, year="keyword"), typed(shape, year="number")
    world.configure(before)
    world.tick()
    assert failures(world) == {}

    world.configure(before, after)
    world.tick(seconds=1)

    assert failures(world) == {"docs/b": REASON}


def test_while_the_newer_revision_is_not_ready_the_failure_stands(world: Any, shape: Any) -> None:
    world.write("all.jsonl", line("a", 2024) + line("b", "next"))
    before, after = typed(shape, year="number"), typed(shape, year="keyword")
    world.configure(before)
    world.tick()

    world.store.sound = False
    world.configure(before, after)
    state = world.tick(seconds=1)

    assert {revision.phase for revision in state.revisions} == {"Ready", "Failed"}
    assert failures(world) == {"docs/b": REASON}


def test_when_no_document_fits_the_revision_is_not_ready(world: Any, shape: Any) -> None:
    world.write("all.jsonl", line("b", "next"))
    world.configure(typed(shape, year="number"))

    world.tick()

    assert (world.revision.phase, "no document could be indexed" in world.revision.message) == ("Failed", True)


def test_a_restart_never_tells_fewer_failures_on_the_way(world: Any, shape: Any) -> None:
    world.write("all.jsonl", line("a", 2024) + line("b", "next"))
    world.configure(typed(shape, year="number"))
    world.tick()
    world.states.clear()
    world.start()

    world.tick()

    assert {state.sync.failed for state in world.states} == {1}
