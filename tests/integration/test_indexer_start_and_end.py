"""How the indexer process starts, sees, ends, and what it says when it cannot start."""

import random
import signal
import socket
import subprocess
import sys
import time

import pytest
from tests.integration.indexer_process import WAIT_SECONDS, Indexer, fill, make_shape, wait_for

from tidegate_api.builtins import BUILTINS
from tidegate_api.config import RevisionConfig


def test_an_edit_is_seen_in_seconds_when_the_sources_are_watched(indexer: Indexer) -> None:
    fill(indexer.folder / "docs", range(3), random.Random(1))
    indexer.configure()
    indexer.start("--watch")
    indexer.settle()
    began = time.monotonic()
    (indexer.folder / "docs" / "new.md").write_text("words of a new document")

    def seen() -> bool:
        state = indexer.state()
        return state is not None and state.revisions[0].documents == 4

    wait_for(seen, what=indexer.said)
    assert time.monotonic() - began < 5


def test_it_ends_cleanly_when_asked_to(indexer: Indexer) -> None:
    indexer.configure()
    indexer.start()
    indexer.settle()
    process = indexer.process
    assert process is not None

    process.send_signal(signal.SIGTERM)

    assert process.wait(10) == 0
    indexer.process = None


def test_a_second_indexer_of_the_same_folder_says_who_holds_it_and_ends(indexer: Indexer) -> None:
    indexer.configure()
    indexer.start()
    indexer.settle()
    first = indexer.process
    assert first is not None

    indexer.start()
    second = indexer.process
    assert second is not None

    assert second.wait(WAIT_SECONDS) == 1
    assert f"is held by process {first.pid} on " in indexer.said()
    indexer.process = first


def test_a_state_folder_of_another_version_is_refused_with_the_next_step(indexer: Indexer) -> None:
    indexer.configure()
    indexer.root.mkdir()
    (indexer.root / "state.json").write_text('{"format": 99}')
    indexer.start()
    process = indexer.process
    assert process is not None

    assert process.wait(WAIT_SECONDS) == 1
    assert "state.json has format 99, this version reads 1; run the version that wrote it" in indexer.said()


def test_a_port_that_is_taken_is_named(indexer: Indexer) -> None:
    indexer.configure()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [sys.executable, "-m", "tidegate_runtime.indexer", "--config", str(indexer.folder / "config.json")]
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = subprocess.run(
            [*command, "--root", str(indexer.root), "--listen", address],
            capture_output=True,
            timeout=WAIT_SECONDS,
            check=False,
        )

    assert ended.returncode == 1
    assert b"address already in use" in ended.stderr.lower()


@pytest.mark.models
def test_it_ends_within_seconds_in_the_middle_of_a_batch_and_goes_on_later(indexer: Indexer) -> None:
    fill(indexer.folder / "docs", range(200), random.Random(3))  # one batch keeps the encoder busy for half a minute
    shape = make_shape(200, embedder=BUILTINS["minilm"])
    indexer.configure(revisions=[RevisionConfig(name=shape.revision_name("kb"), shape=shape)])
    indexer.start()
    process = indexer.process
    assert process is not None

    def embeds() -> bool:
        state = indexer.state()
        return state is not None and any(revision.phase == "Building" for revision in state.revisions)

    wait_for(embeds, what=indexer.said)
    asked = time.monotonic()
    process.send_signal(signal.SIGTERM)

    assert process.wait(WAIT_SECONDS) == 0
    assert time.monotonic() - asked < 5  # about one second; twice as many processes as cores may run beside
    assert "the next start makes it again" in indexer.said()
    for path in sorted((indexer.folder / "docs").iterdir())[20:]:
        path.unlink()
    indexer.start()
    assert indexer.settle().revisions[0].documents == 20
