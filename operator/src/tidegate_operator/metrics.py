"""What the control plane counts. Labels are bounded: kinds, outcomes and names of our own resources.

Names of resources come with their namespace: one operator serves many. What is shown about an object
goes with it.
"""

from collections.abc import Iterable

from prometheus_client import Counter, Gauge, Histogram

from tidegate_operator.core import plan
from tidegate_operator.core.keys import Key
from tidegate_operator.core.kinds import Kind, Ref

_SECONDS = Histogram("tidegate_reconcile_seconds", "Time to bring a key to rest", ["kind"])
_TOTAL = Counter("tidegate_reconcile_total", "Reconciles by outcome", ["kind", "outcome"])
_LAST_EVENT = Gauge("tidegate_last_event_seconds", "Unix time of the last watch event", ["kind"])
_OTHER = Gauge("tidegate_other_operator", "1 while another operator is at work here, too")
_ROLLBACKS = Counter("tidegate_rollbacks_total", "Releases taken back, by cause", ["namespace", "pipeline", "cause"])
_READINGS = {
    plan.Gauge.INDEX_DOCUMENTS: Gauge(
        plan.Gauge.INDEX_DOCUMENTS, "Documents of an index revision", ["namespace", "knowledge_base", "revision"]
    ),
    plan.Gauge.ROLLOUT_SHARE: Gauge(
        plan.Gauge.ROLLOUT_SHARE, "Percent of units that the candidate serves", ["namespace", "pipeline"]
    ),
}
_shown: dict[Key, frozenset[tuple[plan.Gauge, tuple[str, ...]]]] = {}


def reconciled(kind: Kind, outcome: str, seconds: float) -> None:
    """Count a reconcile."""
    _SECONDS.labels(str(kind)).observe(seconds)
    _TOTAL.labels(str(kind), outcome).inc()


def event_seen(kind: Kind) -> None:
    """Note that a watch delivered something."""
    _LAST_EVENT.labels(str(kind)).set_to_current_time()


def other_operator(*, there: bool) -> None:
    """Note whether another operator is at work here."""
    _OTHER.set(there)


def rolled_back(pipeline: Ref, cause: str) -> None:
    """Count a release that was taken back."""
    _ROLLBACKS.labels(pipeline.namespace, pipeline.name, cause).inc()


def show(key: Key, readings: Iterable[plan.Reading]) -> None:
    """Show what is true of an object, and nothing of it that was shown before and is true no more."""
    shown = set()
    for reading in readings:
        _READINGS[reading.gauge].labels(*reading.labels).set(reading.value)
        shown.add((reading.gauge, reading.labels))
    for gauge, labels in _shown.pop(key, frozenset()) - shown:
        _READINGS[gauge].remove(*labels)
    if shown:
        _shown[key] = frozenset(shown)
    if key.kind is Kind.RETRIEVAL_PIPELINE:
        _keep_rollbacks(key, kept=bool(shown))


def _keep_rollbacks(pipeline: Key, *, kept: bool) -> None:
    """Show the count from the start, so that a rate sees the first one, and no longer than there is a pipeline."""
    for cause in plan.ROLLBACK_CAUSES:
        labels = (pipeline.namespace, pipeline.name, cause)
        if kept:
            _ROLLBACKS.labels(*labels)
        else:
            _ROLLBACKS.remove(*labels)
