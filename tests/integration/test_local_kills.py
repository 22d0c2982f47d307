"""`tidegate local` on a terminal, interrupted and killed while it builds: nothing is lost and nothing stays behind."""

import fcntl
import json
import os
import re
import subprocess
import termios
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.local_server import (
    WAIT_SECONDS,
    LocalServer,
    command,
    is_alive,
    knowledge_base,
    pipeline,
    replace,
    volume_source,
    write_manifests,
)

pytestmark = [pytest.mark.models, pytest.mark.timeout(600)]

DOCUMENTS = 1024
CTRL_C = b"\x03"


def library(folder: Path) -> LocalServer:
    """Return a server over so many documents that a build can be watched."""
    lines = (
        json.dumps({"id": f"d{number}", "text": f"Shelf {number} holds volume {number * 7} of the yearbooks. " * 2})
        for number in range(DOCUMENTS)
    )
    replace(folder / "books" / "books.jsonl", "\n".join(lines))
    write_manifests(folder / "files", knowledge_base("library", volume_source("books")), pipeline("library", "library"))
    return LocalServer(folder, folder / "files", {"books": folder / "books"})


class Terminal:
    """A command on a terminal of its own, and what is shown there."""

    def __init__(self, arguments: list[str]) -> None:
        self._master, slave = os.openpty()
        self.shown = ""
        self.process = subprocess.Popen(
            arguments,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"},
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._master, keys)

    def end(self) -> int:
        """Return the exit code, once everything that was shown is read."""
        code = self.process.wait(timeout=WAIT_SECONDS)
        self._reader.join()
        os.close(self._master)
        return code

    def _read(self) -> None:
        while True:
            try:
                self.shown += os.read(self._master, 65536).decode(errors="replace")
            except OSError:  # the other side is closed
                return


@pytest.fixture
def library_server(tmp_path: Path) -> Iterator[LocalServer]:
    server = library(tmp_path)
    yield server
    if server.process is not None and server.process.poll() is None:
        server.process.kill()
        server.process.wait()


def test_a_build_goes_on_after_ctrl_c_and_after_kill_9(library_server: LocalServer) -> None:
    server = library_server
    before = _watch_a_build_on_a_terminal_and_press_ctrl_c(server)

    server.start()
    resumed = _done_at_the_start(server)
    assert resumed >= before, "what was built before Ctrl-C is kept"
    server.until(lambda: _done(server) > resumed, "another batch is committed")
    server.kill()

    printed = len(server.output)
    server.start()
    assert _done_at_the_start(server, after=printed) > resumed, "what was built before the kill is kept"
    server.until_ready()
    (revision,) = server.state_of("library-indexer")["revisions"]
    assert (revision["phase"], revision["documents"], revision["chunks"]) == ("Ready", DOCUMENTS, DOCUMENTS)
    for number in (0, DOCUMENTS // 2, DOCUMENTS - 1):
        assert server.ask(f"what does shelf {number} hold?").documents.count(f"d{number}") == 1
    server.stop()
    _refuse_an_index_of_another_version(server)


def _watch_a_build_on_a_terminal_and_press_ctrl_c(server: LocalServer) -> int:
    """Return how many documents the bar showed as done."""
    listen = f"127.0.0.1:{server.port}"
    volume = f"--volume=books={server.folder / 'books'}"
    terminal = Terminal(command("local", "-f", server.files, "--state", server.state, "--listen", listen, volume))
    server.process = terminal.process
    progress = re.compile(rf"library-[0-9a-f]{{10}} \S*[━╸].*?(\d+)/{DOCUMENTS} documents")

    def shown() -> int:
        return max((int(done) for done in progress.findall(_plain(terminal.shown))), default=0)

    done = server.until(shown, "the bar moves")
    children = server.children()
    assert set(children) == {"library-indexer", "library-runtime", "library-sidecar"}
    terminal.type(CTRL_C)
    assert terminal.end() == 0
    assert not [pid for pid in children.values() if is_alive(pid)]
    assert "Traceback" not in terminal.shown
    assert terminal.shown.rstrip("\r\n").endswith("\x1b[?25h") or "\x1b[?25l" not in terminal.shown, (
        "the cursor is back"
    )
    return done


def _refuse_an_index_of_another_version(server: LocalServer) -> None:
    """Its indexer refuses to touch it and says so; what was built goes on answering."""
    state = server.state / "indexes" / "library" / "state.json"
    replace(state, json.dumps({**json.loads(state.read_text()), "format": 0}))
    printed = len(server.output)
    server.start()
    server.until_ready()
    server.until_printed("library-indexer ended with code 1 and is started again", after=printed)
    assert f"{state} has format 0, this version reads 1; run the version that wrote it" in server.output[printed:]
    assert server.ask("what does shelf 7 hold?").results
    server.stop()


def _done_at_the_start(server: LocalServer, *, after: int = 0) -> int:
    """Return how many documents the command says it found built."""
    said = re.compile(rf"library-[0-9a-f]{{10}}: building, {DOCUMENTS} documents, (\d+) of them are done already")
    return int(server.until(lambda: said.search(server.output[after:]), "it says what it builds")[1])


def _done(server: LocalServer) -> int:
    revisions = server.state_of("library-indexer")["revisions"]
    return int(revisions[0]["documentsDone"]) if revisions and revisions[0]["phase"] == "Building" else 0


def _plain(shown: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
