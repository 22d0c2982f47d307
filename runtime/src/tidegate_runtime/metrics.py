"""Metrics of the runtime. Labels are bounded: nodes of our own pipelines and outcomes, never queries or tenants.

The sidecar gives them out beside its own, so no family here has the name of one of those. Nodes that did not
do their part are counted there: once for each answer, whichever pod it came from.
"""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from tidegate_api.wire import SearchResponse

_NODE_BUCKETS_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class SearchMetrics:
    """Counts searches. One registry each, so that two runtimes in one process do not meet."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._node_seconds = Histogram(
            "tidegate_node_seconds",
            "Time a pipeline node took.",
            ["node"],
            buckets=_NODE_BUCKETS_SECONDS,
            registry=self._registry,
        )
        self._searches = Counter(
            "tidegate_searches", "Searches by outcome: ok or an error code.", ["outcome"], registry=self._registry
        )

    def answered(self, response: SearchResponse) -> None:
        """Count an answer."""
        self._searches.labels("ok").inc()
        for node, milliseconds in response.timings_ms.items():
            self._node_seconds.labels(node).observe(milliseconds / 1000)

    def refused(self, code: str) -> None:
        """Count a search that ended in an error."""
        self._searches.labels(code).inc()

    def exposition(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self._registry)
