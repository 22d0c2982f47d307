"""A file of JSON lines that cannot be read whole keeps its own documents, and nobody else's."""

from typing import Any

import pytest
from tests.unit.runtime.indexer.steps import documents, failures

from tidegate_runtime.indexer import sources

WHOLE = '{"id": "a", "text": "one"}\n{"id": "b", "text": "two"}\n'
BROKEN = '{"id": "a", "text": "one"}\n{"id": "b", "te\n'


def built_with_lines(world: Any, shape: Any) -> None:
    world.write("all.jsonl", WHOLE)
    documents(world, 2)
    world.configure(shape())
    world.tick()
    assert world.ids() == ["docs/000.md", "docs/001.md", "docs/a", "docs/b"]


def test_a_broken_line_keeps_the_documents_that_it_may_stand_for(world: Any, shape: Any) -> None:
    world.write("all.jsonl", '{"id": "a", "text": "one"}\n{"id": "b", "text": "two"}\n')
    documents(world, 1)
    world.configure(shape())
    world.tick()
    world.write("all.jsonl", '{"id": "a", "text": "one"}\n{"id": "b", "te\n')
    (world.source("docs") / "000.md").unlink()

    state = world.tick(seconds=900)

    assert world.ids() == ["docs/a", "docs/b"]
    (reason,) = failures(world).values()
    assert reason.endswith("; until then documents that the file held before and does not show now stay indexed")
    assert state.sync.deleted == 1


@pytest.mark.parametrize("edited", ["before", "after"], ids=["while it ran", "while it was down"])
def test_after_a_restart_other_files_deletions_go_through(world: Any, shape: Any, edited: str) -> None:
    built_with_lines(world, shape)
    if edited == "before":
        world.write("all.jsonl", BROKEN)
        world.tick(seconds=900)
    world.start()
    world.write("all.jsonl", BROKEN)
    (world.source("docs") / "000.md").unlink()

    world.tick()

    assert world.ids() == ["docs/001.md", "docs/a", "docs/b"]


def test_a_mended_file_loses_what_is_no_longer_in_it(world: Any, shape: Any) -> None:
    built_with_lines(world, shape)
    world.write("all.jsonl", BROKEN)
    world.start()
    world.tick()

    world.write("all.jsonl", '{"id": "a", "text": "one"}\n')
    world.tick(seconds=900)

    assert world.ids() == ["docs/000.md", "docs/001.md", "docs/a"]
    assert failures(world) == {}


def test_a_file_that_was_broken_from_the_first_look_on_holds_back_nothing(world: Any, shape: Any) -> None:
    world.write("all.jsonl", BROKEN)
    documents(world, 2)
    world.configure(shape())
    world.tick()
    world.start()
    (world.source("docs") / "000.md").unlink()

    world.tick()

    assert world.ids() == ["docs/001.md", "docs/a"]
    (reason,) = failures(world).values()
    assert reason.endswith("correct the line")


def test_a_file_that_grew_too_large_keeps_its_documents(
    world: Any, shape: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    built_with_lines(world, shape)
    world.start()
    monkeypatch.setattr(sources, "MAX_FILE_BYTES", 60)
    world.write("all.jsonl", WHOLE + '{"id": "c", "text": "three"}\n')
    (world.source("docs") / "000.md").unlink()

    world.tick()

    assert world.ids() == ["docs/001.md", "docs/a", "docs/b"]
    assert failures(world).keys() == {"docs/all.jsonl"}


def test_where_no_record_can_be_trusted_nothing_of_the_source_is_deleted_and_that_is_said(
    world: Any, shape: Any
) -> None:
    built_with_lines(world, shape)
    (world.root / ".histories" / "complete").unlink()
    (record,) = (world.root / ".histories" / "docs").iterdir()
    record.write_text("[")
    world.write("all.jsonl", BROKEN)
    world.start()
    (world.source("docs") / "000.md").unlink()

    world.tick()

    assert world.ids() == ["docs/000.md", "docs/001.md", "docs/a", "docs/b"]
    (reason,) = failures(world).values()
    assert reason.endswith("; until then no document of this source is deleted")
