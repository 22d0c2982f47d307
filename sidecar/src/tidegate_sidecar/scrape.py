"""The answer to `GET /metrics`: what this process counted, and what the runtime behind it did.

The runtime listens on a Unix socket, where nothing can scrape it, so it is asked whenever the sidecar is.
Requests pay nothing for that, and a runtime that does not answer in time costs its own families alone. The
two count no family of the same name (tests/contract/test_metrics.py), so their texts are put together unread.
"""

from collections.abc import Callable
from functools import partial

from tidegate_sidecar.answers import Response
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.http1 import Cancel, Request, Respond
from tidegate_sidecar.metrics import CONTENT_TYPE, Recorder
from tidegate_sidecar.ports import RuntimeMetrics, RuntimeReply

# Prometheus gives up after ten seconds by default, and would then have nothing of this pod.
RUNTIME_SECONDS = 2.0


class Scrape:
    """The handler of `GET /metrics`."""

    def __init__(self, recorder: Recorder, runtime: RuntimeMetrics, *, loop_time: Callable[[], float]) -> None:
        self._recorder = recorder
        self._runtime = runtime
        self._loop_time = loop_time

    def __call__(self, _request: Request, respond: Respond) -> Cancel:
        """Begin to answer."""
        deadline = self._loop_time() + RUNTIME_SECONDS
        return self._runtime.metrics(deadline=deadline, done=partial(self._finish, respond)).cancel

    def _finish(self, respond: Respond, outcome: RuntimeReply | RequestError) -> None:
        theirs = outcome.body if isinstance(outcome, RuntimeReply) and outcome.status == 200 else b""
        respond(Response(200, self._recorder.exposition() + theirs, content_type=CONTENT_TYPE))
