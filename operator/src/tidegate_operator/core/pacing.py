"""When to look again without an event: soon while something is expected, else never.

Deployments and pods are watched, so what happens to them wakes the key; the one thing that no event
tells is that time has passed. A pod that has not started for a while is in trouble then.
"""

from collections.abc import Iterable
from datetime import datetime

from tidegate_operator.core.observed import Refusal
from tidegate_operator.core.workloads import TROUBLE_AFTER, Pod


def soonest(waits: Iterable[float | None]) -> float | None:
    """Return the shortest wait, or None when nothing is waited for."""
    return min((wait for wait in waits if wait is not None), default=None)


def slower(seconds: float, most_seconds: float, *, since: str, now: datetime) -> float:
    """Return a pause that grows with the time for which a state has stood: a tenth of it."""
    stood = (now - datetime.fromisoformat(since)).total_seconds()
    return min(max(seconds, stood / 10), most_seconds)


def until_told(pods: Iterable[Pod], now: datetime) -> float | None:
    """Return how long until a pod that has just been made, and is not ready, may be called in trouble."""
    ages = [now - pod.created_at for pod in pods if pod.created_at is not None and not (pod.ready or pod.deleting)]
    return soonest((TROUBLE_AFTER - age).total_seconds() + 0.5 for age in ages if age < TROUBLE_AFTER)


def until_retry(refusals: Iterable[Refusal], now: datetime) -> float | None:
    """Return how long until the first refused write is tried again."""
    return soonest(max((refusal.retry_at - now).total_seconds(), 0.0) for refusal in refusals)
