"""The queue: merged, never lost, never two workers on a key, and repeated with growing pauses."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from tidegate_operator.core.keys import Key
from tidegate_operator.core.kinds import Kind
from tidegate_operator.errors import RefusedError, UnavailableError
from tidegate_operator.workqueue import Pace, WorkQueue

KEY = Key(Kind.KNOWLEDGE_BASE, "acme", "docs")
OTHER = Key(Kind.KNOWLEDGE_BASE, "acme", "other")
QUICK = Pace(workers=4, debounce_seconds=0.005, deadline_seconds=0.05, backoff_seconds=0.001, backoff_max_seconds=0.01)


@asynccontextmanager
async def running(work: Callable[[Key], Awaitable[float | None]], pace: Pace = QUICK) -> AsyncIterator[WorkQueue]:
    queue = WorkQueue(work, pace=pace, jitter=lambda: 0.5)
    task = asyncio.create_task(queue.run())
    try:
        async with asyncio.timeout(5):
            yield queue
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Recorder:
    """Records runs; `script` says what each does, the last entry for all that follow."""

    def __init__(self, *script: float | Exception | None) -> None:
        self.runs: list[Key] = []
        self.script = list(script) or [None]
        self.ran = asyncio.Condition()

    async def __call__(self, key: Key) -> float | None:
        step = self.script[min(len(self.runs), len(self.script) - 1)]
        self.runs.append(key)
        async with self.ran:
            self.ran.notify_all()
        if isinstance(step, Exception):
            raise step
        return step

    async def until(self, count: int) -> None:
        async with self.ran:
            await self.ran.wait_for(lambda: len(self.runs) >= count)


async def test_many_wake_ups_before_a_run_are_one_run() -> None:
    work = Recorder()
    async with running(work) as queue:
        for _ in range(100):
            queue.wake(KEY)
        queue.wake(OTHER, after_seconds=0.02)
        await work.until(2)
    assert work.runs == [KEY, OTHER]


async def test_an_earlier_wake_up_replaces_a_later_one_and_not_the_reverse() -> None:
    work = Recorder()
    async with running(work) as queue:
        queue.wake(KEY, after_seconds=60)
        queue.wake(KEY, after_seconds=0)
        queue.wake(KEY, after_seconds=30)
        await work.until(1)
    assert work.runs == [KEY]


async def test_a_key_woken_while_it_runs_runs_once_more_and_never_twice_at_a_time() -> None:
    running_now = 0
    runs = 0
    begun, go_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work(key: Key) -> None:
        nonlocal running_now, runs
        running_now += 1
        runs += 1
        assert running_now == 1
        begun.set()
        await go_on.wait()
        running_now -= 1
        if runs == 2:
            done.set()

    async with running(work, Pace(debounce_seconds=0.001)) as queue:
        queue.wake(KEY)
        await begun.wait()
        for _ in range(5):
            queue.wake(KEY)
        go_on.set()
        await done.wait()
    assert runs == 2


async def test_work_says_when_to_look_again() -> None:
    work = Recorder(0.001, None)
    async with running(work) as queue:
        queue.wake(KEY)
        await work.until(2)
    assert work.runs == [KEY, KEY]


@pytest.mark.parametrize(
    "failure", [UnavailableError("away"), RefusedError("no", reason="Forbidden"), KeyError("defect")]
)
async def test_a_failed_run_is_repeated_and_the_other_keys_go_on(failure: Exception) -> None:
    failing = Recorder(failure, failure, None)
    quick = UnavailableError("away", retry_after_seconds=0.0)
    failing.script = [quick if isinstance(step, UnavailableError) else step for step in failing.script]
    async with running(failing) as queue:
        queue.wake(KEY)
        await failing.until(3)
        queue.wake(OTHER)
        await failing.until(4)
    assert failing.runs == [KEY, KEY, KEY, OTHER]


async def test_a_run_that_hangs_is_cut_off_at_the_deadline() -> None:
    runs: list[Key] = []
    again = asyncio.Event()

    async def work(key: Key) -> None:
        runs.append(key)
        if len(runs) > 1:
            again.set()
            return
        await asyncio.Event().wait()

    async with running(work) as queue:
        queue.wake(KEY)
        await again.wait()
    assert runs == [KEY, KEY]


async def test_pauses_grow_up_to_the_cap_and_a_good_run_starts_them_anew() -> None:
    queue = WorkQueue(Recorder(), pace=Pace(backoff_seconds=1, backoff_max_seconds=60), jitter=lambda: 0.5)

    pauses = [queue._backoff(KEY, hint=None) for _ in range(8)]

    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    assert queue._backoff(OTHER, hint=7.0) == 7.0


async def test_keys_that_nobody_works_on_are_noticed() -> None:
    queue = WorkQueue(Recorder(), pace=Pace(deadline_seconds=0.001))
    assert not queue.stuck()

    queue.wake(KEY, after_seconds=-1.0)
    assert queue.stuck()


async def test_a_key_woken_again_and_again_long_before_it_is_due_takes_no_more_room() -> None:
    work = Recorder(3600.0)
    async with running(work, Pace(workers=1, debounce_seconds=0)) as queue:
        for count in range(1, 300):
            queue.wake(KEY)
            await work.until(count)
        assert len(queue._heap) < 100
    assert len(work.runs) == 299
