"""`GET /metrics`: the sidecar's own figures, and those of a runtime that the test plays."""

import pytest
from tests.unit.sidecar.fakes import FakeRuntimeMetrics

from tidegate_api.wire import ErrorCode
from tidegate_sidecar.answers import Response
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.http1 import Request
from tidegate_sidecar.metrics import Recorder
from tidegate_sidecar.ports import RuntimeReply
from tidegate_sidecar.scrape import RUNTIME_SECONDS, Scrape

OWN = b'tidegate_request_seconds_count{arm="stable",pipeline="handbook"} 1.0\n'
RUNTIMES = b'tidegate_node_seconds_count{node="dense"} 1.0\n'


class Scraped:
    """One scrape under way."""

    def __init__(self) -> None:
        recorder = Recorder("handbook")
        recorder.count(arm="stable", outcome="ok", seconds=0.1, release="rel-a")
        runtime = FakeRuntimeMetrics()
        self.answers: list[Response] = []
        scrape = Scrape(recorder, runtime, loop_time=lambda: 100.0)
        self.cancel = scrape(Request(b"GET", b"/metrics", {}, b""), self.answers.append)
        self.reading = runtime.readings[0]


def test_the_runtimes_metrics_follow_the_sidecars():
    scraped = Scraped()
    assert scraped.answers == []
    scraped.reading.done(RuntimeReply(200, {}, RUNTIMES))
    [answer] = scraped.answers
    assert answer.content_type.startswith(b"text/plain; version=0.0.4")
    assert OWN in answer.body
    assert answer.body.endswith(b"\n" + RUNTIMES)


@pytest.mark.parametrize(
    "outcome",
    [
        RequestError(ErrorCode.RELEASE_UNAVAILABLE, "the runtime can't be reached"),
        RequestError(ErrorCode.DEADLINE_EXCEEDED, "no answer before the deadline"),
        RuntimeReply(500, {}, b'{"error": {}}'),
    ],
    ids=["away", "late", "failing"],
)
def test_without_the_runtimes_metrics_the_sidecars_are_given_alone(outcome):
    scraped = Scraped()
    assert scraped.reading.deadline == 100.0 + RUNTIME_SECONDS
    scraped.reading.done(outcome)
    [answer] = scraped.answers
    assert (answer.status, OWN in answer.body, b"error" in answer.body) == (200, True, False)


def test_a_scraper_that_leaves_ends_the_question_to_the_runtime():
    scraped = Scraped()
    scraped.cancel()
    assert scraped.reading.cancelled
