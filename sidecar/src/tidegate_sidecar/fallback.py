"""A search that this pod's own runtime cannot do is done by another pod of the same Deployment.

A runtime that ended is back within seconds, and the Service stops sending people here within one or two; who
comes meanwhile is handed on as if the release lived elsewhere. The Service between pods may lead back to this
very pod, which refuses at once since a hop is never forwarded; so a few are asked, each over a new connection.
A search changes nothing, so asking again harms nobody, with one exception: a search that ended the runtime it
was given to. It may end the next one as well, so after the second it goes no further.
"""

from collections.abc import Callable

from tidegate_api.wire import ErrorCode
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.hop import TAKEN_HEADER
from tidegate_sidecar.ports import Done, Exchange, RuntimeReply, Searcher
from tidegate_sidecar.replies import error_of_reply

# With two pods each try finds the other one half of the time.
TRIES = 8
ENDED_MAX = 2

Outcome = RuntimeReply | RequestError


class Fallback:
    """A Searcher over this pod's runtime, and over its neighbours while that one is away.

    `neighbours` returns another Searcher for each call, None where there is none to ask. `on_unavailable` is
    told that the own runtime could not answer.
    """

    def __init__(
        self, here: Searcher, *, neighbours: Callable[[], Searcher | None], on_unavailable: Callable[[], None]
    ) -> None:
        self._here = here
        self._neighbours = neighbours
        self._on_unavailable = on_unavailable

    def search(self, body: bytes, *, deadline: float, done: Done) -> Exchange:
        """Begin a search."""
        return _Search(self, body, deadline=deadline, done=done)

    def begin(self, search: "_Search") -> Exchange:
        """Ask this pod's runtime."""
        return self._here.search(search.body, deadline=search.deadline, done=search.judge)

    def hand_on(self, search: "_Search") -> Exchange | None:
        """Ask a neighbour; None where there is none."""
        self._on_unavailable()
        neighbour = self._neighbours()
        return None if neighbour is None else neighbour.search(search.body, deadline=search.deadline, done=search.judge)


class _Search:
    """One search, by one after the other until somebody can do it."""

    __slots__ = ("_done", "_ended", "_exchange", "_owner", "_tries_left", "body", "deadline")

    def __init__(self, owner: Fallback, body: bytes, *, deadline: float, done: Done) -> None:
        self.body = body
        self.deadline = deadline
        self._owner = owner
        self._done = done
        self._tries_left = TRIES
        self._ended = 0
        self._exchange = owner.begin(self)

    def cancel(self) -> None:
        """Give up."""
        self._exchange.cancel()

    def judge(self, outcome: Outcome) -> None:
        """Hand the outcome over, or ask the next one."""
        self._ended += _ended_a_runtime(outcome)
        if self._ended < ENDED_MAX and self._may_ask(outcome):
            self._tries_left -= 1
            following = self._owner.hand_on(self)
            if following is not None:
                self._exchange = following
                return
        self._done(outcome)

    def _may_ask(self, outcome: Outcome) -> bool:
        """Only the first one may be out of reach: neighbours that are have been waited for already."""
        if isinstance(outcome, RequestError):
            return outcome.code is ErrorCode.RELEASE_UNAVAILABLE and self._tries_left == TRIES
        return (
            self._tries_left > 0
            and outcome.status == 503
            and error_of_reply(outcome).code is ErrorCode.RELEASE_UNAVAILABLE
        )


def _ended_a_runtime(outcome: Outcome) -> bool:
    return outcome.taken if isinstance(outcome, RequestError) else TAKEN_HEADER in outcome.headers
