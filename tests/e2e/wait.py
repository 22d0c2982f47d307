"""Waiting for conditions, with a diagnosis when one does not come true.

A test that times out must say what it saw: `wait_for` raises with the description that the caller
gives, which for objects of a cluster is the object, its events and the logs of the pods beside it.
"""

import time
from collections.abc import Callable
from typing import TypeVar

POLL_SECONDS = 0.2

Found = TypeVar("Found")


class ConditionTimeoutError(AssertionError):
    """A condition did not come true in time; the text holds the diagnosis."""


def wait_for(
    condition: Callable[[], Found | None],
    *,
    what: str,
    timeout_seconds: float,
    describe: Callable[[], str],
    pause: Callable[[], object] = lambda: time.sleep(POLL_SECONDS),
) -> Found:
    """Return what the condition finds as soon as that is neither None nor false.

    Args:
        what: what is waited for, as a statement that should become true.
        describe: the diagnosis; called only when time is up.
        pause: passes the time until it is worth looking again.

    Raises:
        ConditionTimeoutError: the condition did not hold in time.
    """
    deadline = time.monotonic() + timeout_seconds
    while not (found := condition()):
        if time.monotonic() >= deadline:
            raise ConditionTimeoutError(f"after {timeout_seconds:g} s it is still not true that {what}\n{describe()}")
        pause()
    return found
