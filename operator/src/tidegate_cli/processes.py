"""The process tree of `tidegate local`: start, watch, restart, stop.

A child dies with its parent whatever happens to the parent (PR_SET_PDEATHSIG on Linux), is
restarted with growing pauses when it ends by itself, and is asked to stop before it is killed.
What a child prints goes to a log file of its own, so the terminal stays readable.
"""

import asyncio
import ctypes
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

RESTART_PAUSE_MAX_SECONDS = 10.0
HEALTHY_AFTER_SECONDS = 30.0
STOP_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Command:
    """A Python module to run, its arguments and where its output goes."""

    name: str
    module: str
    arguments: tuple[str, ...]
    log: Path

    def argv(self) -> list[str]:
        """Return the whole command line."""
        return [sys.executable, "-m", self.module, *self.arguments]


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
        if child is not None and child.command == command and not child.keeper.done():
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
        pause_seconds = 0.5
        while not stopping.is_set():
            started = time.monotonic()
            code = await self._run(command, stopping)
            if stopping.is_set():
                return
            if time.monotonic() - started > HEALTHY_AFTER_SECONDS:
                pause_seconds = 0.5
            self._say(
                f"{command.name} ended with code {code}, starts again in {pause_seconds:g} s; last lines of {command.log}:"
            )
            self._say(_last_lines(command.log))
            try:
                await asyncio.wait_for(stopping.wait(), pause_seconds)
            except TimeoutError:
                pause_seconds = min(2 * pause_seconds, RESTART_PAUSE_MAX_SECONDS)

    async def _run(self, command: Command, stopping: asyncio.Event) -> int:
        with command.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *command.argv(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches only the parent, which then stops children in order
                preexec_fn=_die_with_parent,
            )
        ended = asyncio.create_task(process.wait())
        asked = asyncio.create_task(stopping.wait())
        await asyncio.wait({ended, asked}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if not ended.done():
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(asyncio.shield(ended), STOP_SECONDS)
            except TimeoutError:
                process.kill()
        return await ended


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _last_lines(log: Path, count: int = 8) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return "  (nothing printed)"
    return "\n".join(f"  {line}" for line in lines[-count:]) or "  (nothing printed)"
