"""The demo's frame: numbered steps with their times, commands shown as they are typed, progress while one is silent."""

import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tidegate_cli.rag_views import table

SILENCE_SECONDS = 15.0
POLL_SECONDS = 1.0
LINES_KEPT = 15

Result = TypeVar("Result")


class DemoError(Exception):
    """A step did not get where it should; the text says what was waited for or what a command said."""


class Steps:
    """Times steps as they are told."""

    def __init__(self) -> None:
        self._taken: list[tuple[str, float]] = []

    def add(self, title: str, seconds: float) -> None:
        """Note a step that was taken before this process began."""
        self._taken.append((title, seconds))

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Head a step and time it. One that fails is not listed."""
        say(f"\n== {len(self._taken) + 1}. {title}")
        started = time.monotonic()
        yield
        self.add(title, time.monotonic() - started)

    def times(self) -> str:
        """Return how long each step took."""
        rows = [(str(number), title, f"{seconds:6.1f} s") for number, (title, seconds) in enumerate(self._taken, 1)]
        total = sum(seconds for _, seconds in self._taken)
        return table(("#", "STEP", "TOOK"), [*rows, ("", "all", f"{total:6.1f} s")])


def say(text: str) -> None:
    """Print at once: somebody watches."""
    print(text, flush=True)


def run_shown(shown: str, command: Sequence[str | Path], *, environment: Mapping[str, str]) -> str:
    """Run a command, show it and what it says line by line, and return its output.

    Raises:
        DemoError: it exited non-zero; the text holds its last lines.
    """
    say(f"$ {shown}")
    started, lines = time.monotonic(), []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        told: queue.Queue[str | None] = queue.Queue()
        reader = threading.Thread(target=_read, args=(process, told), daemon=True)
        reader.start()
        while True:
            try:
                line = told.get(timeout=SILENCE_SECONDS)
            except queue.Empty:
                say(f"   … {time.monotonic() - started:.0f} s")
                continue
            if line is None:
                break
            lines.append(line)
            say(f"   {line}")
        reader.join()
    if process.returncode:
        raise DemoError(f"{shown}: exit {process.returncode}\n" + "\n".join(lines[-LINES_KEPT:]))
    return "\n".join(lines)


def wait_shown(
    attempt: Callable[[], Result | None], *, progress: Callable[[], str], what: str, seconds: float
) -> Result:
    """Return the first result of `attempt`, and show `progress` whenever it says something new.

    Raises:
        DemoError: time is up.
    """
    end, last = time.monotonic() + seconds, ""
    while True:
        result = attempt()
        told = progress()
        if told != last:
            last = told
            say(f"   {told}")
        if result is not None:
            return result
        if time.monotonic() > end:
            raise DemoError(f"after {seconds:.0f} s it is still not true that {what}")
        time.sleep(POLL_SECONDS)


def _read(process: "subprocess.Popen[str]", told: "queue.Queue[str | None]") -> None:
    for line in process.stdout or ():
        told.put(line.rstrip())
    told.put(None)
