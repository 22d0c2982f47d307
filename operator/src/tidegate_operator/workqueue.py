"""Which key is looked at next: wake-ups are merged, spread and never lost.

A key is worked on by one worker at a time. Waking it meanwhile makes it run once more afterwards;
waking it many times before it runs is one run. A run that fails is repeated with growing, jittered
pauses up to a cap; one that hangs is cut off at the deadline and counts as failed. A defect that one
object brings to light stays that object's: the other keys go on.
"""

import asyncio
import heapq
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tidegate_operator.core.keys import Key
from tidegate_operator.errors import OperatorError

logger = logging.getLogger(__name__)

# So many entries of the heap may be older ones before they are cleared away.
SLACK = 64

Work = Callable[[Key], Awaitable[float | None]]


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast keys are worked on."""

    workers: int = 16
    debounce_seconds: float = 0.1
    deadline_seconds: float = 120.0
    backoff_seconds: float = 1.0
    backoff_max_seconds: float = 60.0


class WorkQueue:
    """Runs `work` for each key that was woken. `work` returns after how many seconds to look again."""

    def __init__(self, work: Work, *, pace: Pace | None = None, jitter: Callable[[], float] = random.random) -> None:
        self._work = work
        self._pace = pace or Pace()
        self._jitter = jitter
        # When each waiting key is due. The heap may hold older entries of a key; only an equal one counts.
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, Key]] = []
        self._running: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._changed = asyncio.Event()

    def wake(self, key: Key, *, after_seconds: float | None = None) -> None:
        """Look at `key` soon, or after a while; an earlier wake-up that waits already stays."""
        pause = self._pace.debounce_seconds if after_seconds is None else after_seconds
        due = asyncio.get_running_loop().time() + pause
        if key in self._due and self._due[key] <= due:
            return
        self._due[key] = due
        if key not in self._running:
            self._push(key)

    def stuck(self) -> bool:
        """Return whether a key has been due for longer than any run may take: nobody works."""
        limit = asyncio.get_running_loop().time() - 2 * self._pace.deadline_seconds
        waiting = [due for key, due in self._due.items() if key not in self._running]
        return min(waiting, default=limit) < limit

    async def run(self) -> None:
        """Work until cancelled; then running work is cancelled too."""
        slots = asyncio.Semaphore(self._pace.workers)
        async with asyncio.TaskGroup() as tasks:
            while True:
                await slots.acquire()
                key = await self._next()
                self._running.add(key)
                tasks.create_task(self._run(key, slots), name=f"reconcile {key.kind} {key.namespace}/{key.name}")

    async def _next(self) -> Key:
        """Wait for a key that is due and that nobody works on."""
        while True:
            self._changed.clear()
            now = asyncio.get_running_loop().time()
            while self._heap and self._heap[0][0] <= now:
                due, key = heapq.heappop(self._heap)
                if self._due.get(key) == due and key not in self._running:
                    del self._due[key]
                    return key
            pause = self._heap[0][0] - now if self._heap else None
            try:
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _run(self, key: Key, slots: asyncio.Semaphore) -> None:
        again: float | None = None
        try:
            async with asyncio.timeout(self._pace.deadline_seconds):
                again = await self._work(key)
            self._failures.pop(key, None)
        except (OperatorError, TimeoutError) as error:
            again = self._backoff(key, hint=error.retry_after_seconds if isinstance(error, OperatorError) else None)
            logger.warning("reconcile failed", extra={"key": str(key), "error": str(error), "again_seconds": again})
        except Exception:
            # A defect, not a state of the world: said with its trace, and kept away from the other keys.
            again = self._backoff(key, hint=self._pace.backoff_max_seconds)
            logger.exception("reconcile broke", extra={"key": str(key), "again_seconds": again})
        finally:
            self._running.discard(key)
            slots.release()
            if key in self._due:
                self._push(key)
        if again is not None:
            self.wake(key, after_seconds=again)

    def _push(self, key: Key) -> None:
        heapq.heappush(self._heap, (self._due[key], key))
        if len(self._heap) > 2 * len(self._due) + SLACK:
            # A key that was to be looked at in hours, and is woken every minute, leaves an entry each time.
            self._heap = [(due, waiting) for waiting, due in self._due.items() if waiting not in self._running]
            heapq.heapify(self._heap)
        self._changed.set()

    def _backoff(self, key: Key, *, hint: float | None) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = min(self._pace.backoff_max_seconds, self._pace.backoff_seconds * 2.0 ** min(failures - 1, 16))
        return round(max(pause, hint or 0.0) * (0.75 + 0.5 * self._jitter()), 1)
