"""When to look again without an event: soon while something is expected, rarely while nothing moves.

Pods that do not start are looked at less and less often, but always within a minute, so that the
reason is in the condition before a person starts to search for it.
"""

from collections.abc import Iterable
from datetime import datetime

from tidegate_operator.core.observed import Refusal
from tidegate_operator.core.workloads import Workload

_STARTING_MIN_SECONDS = 5.0
_STARTING_MAX_SECONDS = 45.0


def soonest(waits: Iterable[float | None]) -> float | None:
    """Return the shortest wait, or None when nothing is waited for."""
    return min((wait for wait in waits if wait is not None), default=None)


def while_starting(workload: Workload | None, now: datetime) -> float | None:
    """Return how long to wait for pods that are missing; None when all are there."""
    if workload is None or (workload.current and workload.ready >= workload.desired):
        return None
    waited = (now - workload.since).total_seconds() if workload.since is not None else 0.0
    return min(max(waited / 4, _STARTING_MIN_SECONDS), _STARTING_MAX_SECONDS)


def until_retry(refusals: Iterable[Refusal], now: datetime) -> float | None:
    """Return how long until the first refused write is tried again."""
    return soonest(max((refusal.retry_at - now).total_seconds(), 0.0) for refusal in refusals)
