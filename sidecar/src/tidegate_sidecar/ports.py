"""Ports of the sidecar: what it asks of the runtime and of the places its documents come from.

A source pushes: it hands over every document as it changes, and the receiver decides what to obey. So
a file today and a watched ConfigMap tomorrow are the same to the rest.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, NamedTuple, Protocol

from tidegate_api.config import ReleaseConfig, RuntimeState
from tidegate_sidecar.errors import RequestError

TableOrigin = Literal["api", "file"]


class RuntimeReply(NamedTuple):
    """An answer of the runtime. Header names are lower case."""

    status: int
    headers: Mapping[bytes, bytes]
    body: bytes


Done = Callable[[RuntimeReply | RequestError], None]


class Exchange(Protocol):
    """A request that is under way."""

    def cancel(self) -> None:
        """Give up: `done` is not called any more and the runtime is told to stop."""


class Searcher(Protocol):
    """The runtime, as the request path sees it."""

    def search(self, body: bytes, *, deadline: float, done: Done) -> Exchange:
        """Begin a search; `deadline` is on the loop's clock. `done` is called once, later, never from here."""


class RuntimeMetrics(Protocol):
    """The runtime, as whoever gathers metrics sees it."""

    def metrics(self, *, deadline: float, done: Done) -> Exchange:
        """Begin to read its metrics, in Prometheus' text format; otherwise as a search."""


class RuntimeAdmin(Protocol):
    """The runtime, as the keeper of its releases sees it. Every call has a time limit of its own.

    Raises:
        RequestError: the runtime can't be reached or refused.
    """

    async def open(self, release: ReleaseConfig) -> None:
        """Ask for a release to be loaded; asking again changes nothing."""

    async def close(self, release: str) -> None:
        """Ask for a release to be dropped."""

    async def state(self) -> RuntimeState:
        """Return what the runtime holds."""


class TableSource(Protocol):
    """Where routing tables come from."""

    async def follow(self, offer: Callable[[bytes | None, TableOrigin], Awaitable[None]]) -> None:
        """Hand over the table now and after every change, until cancelled; None = there is none."""
