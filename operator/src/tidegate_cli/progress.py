"""What a person sees while indexes build: bars on a terminal, lines elsewhere.

Lines appear only when something has been reached, so a log of a long run stays short.
"""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class Reporter:
    """Shows messages and build progress. `say` may be called at any time."""

    def __init__(self) -> None:
        self._console = Console(file=sys.stderr, highlight=False, soft_wrap=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("documents"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._started: dict[str, float] = {}

    def say(self, text: str) -> None:
        """Print one message above the bars."""
        self._console.print(text, markup=False)

    def building(self, name: str, *, done: int, total: int) -> None:
        """Show that `done` of `total` documents of revision `name` are indexed."""
        if name not in self._started:
            self._started[name] = time.monotonic()
            self.say(f"{name}: building, {total} documents" + (f", {done} of them are done already" if done else ""))
        if not self._console.is_terminal:
            return
        if name not in self._tasks:
            self._progress.start()
            self._tasks[name] = self._progress.add_task(name, total=total)
        self._progress.update(self._tasks[name], completed=done, total=total)

    def built(self, name: str, *, documents: int, chunks: int) -> None:
        """Show that revision `name` is complete."""
        took = f" in {time.monotonic() - self._started[name]:.1f} s" if name in self._started else ""
        self.not_building(name)
        self.say(f"{name}: {documents} documents, {chunks} chunks, ready{took}")

    def not_building(self, name: str) -> None:
        """Take the bar of revision `name` away, if it has one."""
        self._started.pop(name, None)
        task = self._tasks.pop(name, None)
        if task is None:
            return
        self._progress.remove_task(task)
        if not self._tasks:
            self._progress.stop()

    def close(self) -> None:
        """Leave the terminal as it was."""
        for name in list(self._started):
            self.not_building(name)
