"""The process tree of `tidegate local`: start, watch, restart, stop.

A child dies with its parent whatever happens to the parent (PR_SET_PDEATHSIG on Linux), is
restarted with growing pauses when it ends by itself, and is asked to stop before it is killed.
What a child prints goes to a log file of its own, so the terminal stays readable: the first failure
in a row is shown with its last lines, the others are in the log.
"""

import asyncio
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

RESTART_PAUSE_SECONDS = 0.5
RESTART_PAUSE_MAX_SECONDS = 10.0
HEALTHY_AFTER_SECONDS = 30.0
STOP_SECONDS = 10.0
SHOWN_LINES = 8
SHOWN_BYTES_MAX = 8192
_PR_SET_PDEATHSIG = 1
# Loaded here: between fork and exec a child may not load libraries.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True)
class Command:
    """A Python module to run, its arguments, the folder it runs in, where its output goes, and how long it may end."""

    name: str
    module: str
    arguments: tuple[str, ...]
    folder: Path
    log: Path
    stop_seconds: float = STOP_SECONDS

    def argv(self) -> list[str]:
        """Return the whole command line. `-P`: no module is taken from the folder by accident."""
        return [sys.executable, "-P", "-m", self.module, *self.arguments]


@dataclass(slots=True)
class _Child:
    command: Command
    keeper: asyncio.Task[None]
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


class ProcessTree:
    """Keeps one process running for every command it was given. Not thread-safe: use it from one event loop."""

    def __init__(self, *, say: Callable[[str], None]) -> None:
        self._say = say
        self._children: dict[str, _Child] = {}

    async def keep(self, command: Command) -> None:
        """Run `command` from now on; a running one of the same name with other arguments is replaced."""
        child = self._children.get(command.name)
        if child is not None and child.command == command:
            return
        if child is not None:
            await self.stop([command.name])
        stopping = asyncio.Event()
        keeper = asyncio.create_task(self._keep(command, stopping), name=command.name)
        self._children[command.name] = _Child(command, keeper, stopping)

    async def stop(self, names: Sequence[str] | None = None) -> None:
        """Stop the named children, or all, in the order they were started last first."""
        for name in reversed(list(self._children) if names is None else list(names)):
            child = self._children.pop(name, None)
            if child is not None:
                child.stopping.set()
                await child.keeper

    async def _keep(self, command: Command, stopping: asyncio.Event) -> None:
        pause_seconds = RESTART_PAUSE_SECONDS
        while not stopping.is_set():
            started = time.monotonic()
            try:
                what = f"ended with {_reason(await self._run(command, stopping))}"
            except OSError as error:  # no memory, no room for the log, too many open files
                what = f"could not be started ({error.strerror})"
            if stopping.is_set():
                return
            if time.monotonic() - started > HEALTHY_AFTER_SECONDS:
                pause_seconds = RESTART_PAUSE_SECONDS
            if pause_seconds == RESTART_PAUSE_SECONDS:
                shown = f"last lines of {command.log}:\n{_last_lines(command.log)}"
                self._say(f"{command.name} {what} and is started again; {shown}")
            try:
                await asyncio.wait_for(stopping.wait(), pause_seconds)
            except TimeoutError:
                pause_seconds = min(2 * pause_seconds, RESTART_PAUSE_MAX_SECONDS)

    async def _run(self, command: Command, stopping: asyncio.Event) -> int:
        parent = os.getpid()
        with command.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *command.argv(),
                cwd=command.folder,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches only the parent, which then stops children in order
                preexec_fn=lambda: _die_with_parent(parent),
            )
        ended = asyncio.create_task(process.wait())
        asked = asyncio.create_task(stopping.wait())
        await asyncio.wait({ended, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if not ended.done():
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(asyncio.shield(ended), command.stop_seconds)
            except TimeoutError:
                process.kill()
        return await ended


def _die_with_parent(parent: int) -> None:
    if _LIBC is None:
        return
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before it could be said
        os._exit(1)


def _reason(code: int) -> str:
    if code >= 0:
        return f"code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


def _last_lines(log: Path) -> str:
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - SHOWN_BYTES_MAX))
            lines = stream.read().decode(errors="replace").splitlines()
    except OSError:
        lines = []
    return "\n".join(f"  {line}" for line in lines[-SHOWN_LINES:]) or "  (nothing printed)"
