"""What the control plane counts. Labels are bounded: kinds, outcomes and names of our own resources."""

from prometheus_client import Counter, Gauge, Histogram

from tidegate_operator.core.kinds import Kind

_SECONDS = Histogram("tidegate_reconcile_seconds", "Time to bring a key to rest", ["kind"])
_TOTAL = Counter("tidegate_reconcile_total", "Reconciles by outcome", ["kind", "outcome"])
_LAST_EVENT = Gauge("tidegate_last_event_seconds", "Unix time of the last watch event", ["kind"])
_OTHER = Gauge("tidegate_other_operator", "1 while another operator is at work here, too")


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
