"""The metrics of a pipeline's pods: the sidecar gives out the runtime's beside its own."""

from prometheus_client.parser import text_string_to_metric_families

from tidegate_api.wire import SearchResponse
from tidegate_runtime.metrics import SearchMetrics
from tidegate_sidecar.metrics import Recorder


def families(exposition: bytes) -> dict[str, set[str]]:
    """Return every family that holds a sample, with its labels."""
    return {
        family.name: {label for sample in family.samples for label in sample.labels} - {"le"}
        for family in text_string_to_metric_families(exposition.decode())
        if family.samples and not family.name.endswith("_created")
    }


def test_sidecar_and_runtime_count_no_family_of_the_same_name_and_label_them_as_promised() -> None:
    recorder, metrics = Recorder("handbook"), SearchMetrics()
    recorder.count(arm="stable", outcome="ok", seconds=0.1, release="rel-a")
    recorder.count_degraded("dense=timeout")
    recorder.count_no_hit("stable")
    metrics.answered(SearchResponse(results=[], degraded=[], timings_ms={"dense": 6.1}))
    metrics.refused("not_found")
    sidecars, runtimes = families(recorder.exposition()), families(metrics.exposition())
    assert not sidecars.keys() & runtimes.keys()
    assert sidecars | runtimes == {
        "tidegate_requests": {"pipeline", "arm", "outcome"},
        "tidegate_request_seconds": {"pipeline", "arm"},
        "tidegate_degraded": {"node", "reason"},
        "tidegate_no_hit": {"arm"},
        "tidegate_node_seconds": {"node"},
        "tidegate_searches": {"outcome"},
    }
