"""Fakes of the sidecar's ports and of a transport; they record what they were asked."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tidegate_api.config import ReleaseConfig, ReleaseState, RuntimeState
from tidegate_api.wire import ErrorCode
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.ports import Done, RuntimeReply


@dataclass
class FakeTransport:
    """Collects what is written."""

    written: bytes = b""
    ended: bool = False
    closed: bool = False
    aborted: bool = False

    def write(self, data: bytes) -> None:
        self.written += data

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return self.closed or self.aborted


@dataclass
class FakeSearch:
    """One search under way; the test decides how it ends."""

    body: dict[str, Any]
    deadline: float
    done: Done
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True

    def answer(self, *, results: int = 1, degraded: str | None = None) -> None:
        headers = {b"x-tidegate-results": b"%d" % results}
        if degraded is not None:
            headers[b"x-tidegate-degraded"] = degraded.encode()
        document = {"results": [{"content": self.body["query"]}] * results, "degraded": [], "timings_ms": {}}
        self.done(RuntimeReply(200, headers, json.dumps(document).encode()))

    def refuse(self, status: int, code: str, message: str) -> None:
        body = json.dumps({"error": {"code": code, "message": message}}).encode()
        self.done(RuntimeReply(status, {}, body))


@dataclass
class FakeSearcher:
    """Keeps searches until the test ends them."""

    searches: list[FakeSearch] = field(default_factory=list)

    def search(self, body: bytes, *, deadline: float, done: Done) -> FakeSearch:
        search = FakeSearch(json.loads(body), deadline, done)
        self.searches.append(search)
        return search


@dataclass
class FakeReading:
    """One reading of metrics under way; the test decides how it ends."""

    deadline: float
    done: Done
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class FakeRuntimeMetrics:
    """Keeps readings until the test ends them."""

    readings: list[FakeReading] = field(default_factory=list)

    def metrics(self, *, deadline: float, done: Done) -> FakeReading:
        self.readings.append(FakeReading(deadline, done))
        return self.readings[-1]


@dataclass
class FakeRuntimeAdmin:
    """A runtime that holds releases in memory. `refuses` names those it won't open."""

    phases: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)
    refuses: set[str] = field(default_factory=set)
    opens_as: str = "Warm"
    reachable: bool = True
    on_state: Callable[[], None] | None = None
    on_close: Callable[[str], None] | None = None

    async def open(self, release: ReleaseConfig) -> None:
        self.calls.append(("open", release.name))
        if release.name in self.refuses:
            raise RequestError(ErrorCode.INVALID_REQUEST, "no such node type")
        self.phases[release.name] = self.opens_as

    async def close(self, release: str) -> None:
        self.calls.append(("close", release))
        if self.on_close is not None:
            self.on_close(release)
        self.phases.pop(release, None)

    async def state(self) -> RuntimeState:
        if self.on_state is not None:
            self.on_state()
        if not self.reachable:
            raise RequestError(ErrorCode.RELEASE_UNAVAILABLE, "the runtime can't be reached")
        return RuntimeState(
            process="p1",
            releases=[
                ReleaseState.model_validate({"name": name, "phase": phase}) for name, phase in self.phases.items()
            ],
        )
