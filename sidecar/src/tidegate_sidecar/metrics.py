"""What is counted: for Prometheus, and by release for the control plane.

Labels are bounded: arms, outcomes, nodes and reasons; never tenants, users, releases or queries.
Counters by release are part of the state document only.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

OUTCOME_OK = "ok"
OUTCOME_CANCELLED = "cancelled"
# The arm of a request that ended before one was chosen.
ARM_NONE = "none"
MAX_COUNTED_RELEASES = 64
SECONDS_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class Seconds:
    """How many requests took how long; `counts` has one more bucket than there are bounds."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(SECONDS_BUCKETS) + 1)
        self.total = 0.0


class Recorder(Collector):
    """Counts what happened to requests, since the start of the process.

    Plain integers on the one thread that serves requests; Prometheus' own counters, with their locks and
    labels, are made only when they are read.
    """

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._requests: Counter[tuple[str, str]] = Counter()
        self._seconds: defaultdict[str, Seconds] = defaultdict(Seconds)
        self._degraded: Counter[tuple[str, str]] = Counter()
        self._no_hit: Counter[str] = Counter()
        self.by_release: dict[str, dict[str, int]] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def count(self, *, arm: str, outcome: str, seconds: float, release: str | None) -> None:
        """Count one request that has ended."""
        self._requests[arm, outcome] += 1
        taken = self._seconds[arm]
        taken.counts[bisect_left(SECONDS_BUCKETS, seconds)] += 1
        taken.total += seconds
        if release is not None:
            self._count_release(release, outcome)

    def count_degraded(self, listed: str) -> None:
        """Count the nodes of a header `node=reason,node=reason`."""
        for item in listed.split(","):
            node, _, reason = item.strip().partition("=")
            self._degraded[node, reason] += 1

    def count_no_hit(self, arm: str) -> None:
        """Count an answer without a result."""
        self._no_hit[arm] += 1

    def exposition(self) -> bytes:
        """Return all series in Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        requests = CounterMetricFamily(
            "tidegate_requests", "Requests by outcome", labels=["pipeline", "arm", "outcome"]
        )
        for (arm, outcome), count in self._requests.items():
            requests.add_metric([self._pipeline, arm, outcome], count)
        yield requests
        yield self._seconds_family()
        degraded = CounterMetricFamily(
            "tidegate_degraded", "Nodes that did not do their part", labels=["node", "reason"]
        )
        for (node, reason), count in self._degraded.items():
            degraded.add_metric([node, reason], count)
        yield degraded
        no_hit = CounterMetricFamily("tidegate_no_hit", "Answers without a result", labels=["arm"])
        for arm, count in self._no_hit.items():
            no_hit.add_metric([arm], count)
        yield no_hit

    def _seconds_family(self) -> HistogramMetricFamily:
        family = HistogramMetricFamily(
            "tidegate_request_seconds", "Time from the whole request to its answer", labels=["pipeline", "arm"]
        )
        bounds = [*map(str, SECONDS_BUCKETS), "+Inf"]
        for arm, taken in self._seconds.items():
            cumulated = list(zip(bounds, map(float, accumulate(taken.counts)), strict=True))
            family.add_metric([self._pipeline, arm], buckets=cumulated, sum_value=taken.total)
        return family

    def _count_release(self, release: str, outcome: str) -> None:
        outcomes = self.by_release.get(release)
        if outcomes is None:
            while len(self.by_release) >= MAX_COUNTED_RELEASES:
                del self.by_release[next(iter(self.by_release))]
            outcomes = self.by_release[release] = {}
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
