"""What is counted: for Prometheus, and by release for the control plane.

Labels are bounded: arms, outcomes, nodes and reasons; never tenants, users, releases or queries.
Counters by release are part of the state document only.
"""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

OUTCOME_OK = "ok"
OUTCOME_CANCELLED = "cancelled"
# The arm of a request that ended before one was chosen.
ARM_NONE = "none"
MAX_COUNTED_RELEASES = 64
SECONDS_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class Recorder:
    """Counts what happened to requests, since the start of the process."""

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "tidegate_requests", "Requests by outcome", ["pipeline", "arm", "outcome"], registry=self._registry
        )
        self._seconds = Histogram(
            "tidegate_request_seconds",
            "Time from the whole request to its answer",
            ["pipeline", "arm"],
            buckets=SECONDS_BUCKETS,
            registry=self._registry,
        )
        self._degraded = Counter(
            "tidegate_degraded", "Nodes that did not do their part", ["node", "reason"], registry=self._registry
        )
        self._no_hit = Counter("tidegate_no_hit", "Answers without a result", ["arm"], registry=self._registry)
        # Looking a child up by its labels costs more than counting does.
        self._request_children: dict[tuple[str, str], Counter] = {}
        self._seconds_children: dict[str, Histogram] = {}
        self.by_release: dict[str, dict[str, int]] = {}

    def count(self, *, arm: str, outcome: str, seconds: float, release: str | None) -> None:
        """Count one request that has ended."""
        counter = self._request_children.get((arm, outcome))
        if counter is None:
            counter = self._request_children[arm, outcome] = self._requests.labels(self._pipeline, arm, outcome)
        counter.inc()
        histogram = self._seconds_children.get(arm)
        if histogram is None:
            histogram = self._seconds_children[arm] = self._seconds.labels(self._pipeline, arm)
        histogram.observe(seconds)
        if release is not None:
            self._count_release(release, outcome)

    def count_degraded(self, listed: str) -> None:
        """Count the nodes of a header `node=reason,node=reason`."""
        for item in listed.split(","):
            node, _, reason = item.strip().partition("=")
            self._degraded.labels(node, reason).inc()

    def count_no_hit(self, arm: str) -> None:
        """Count an answer without a result."""
        self._no_hit.labels(arm).inc()

    def exposition(self) -> bytes:
        """Return all series in Prometheus' text format."""
        return generate_latest(self._registry)

    def _count_release(self, release: str, outcome: str) -> None:
        outcomes = self.by_release.get(release)
        if outcomes is None:
            while len(self.by_release) >= MAX_COUNTED_RELEASES:
                del self.by_release[next(iter(self.by_release))]
            outcomes = self.by_release[release] = {}
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
