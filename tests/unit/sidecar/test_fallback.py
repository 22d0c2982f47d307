"""While the runtime of a pod is away its neighbours answer; nothing is asked again that another outcome has ended."""

import json

import pytest

from tidegate_api.wire import ErrorCode
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.fallback import TRIES, Fallback
from tidegate_sidecar.hop import TAKEN_HEADER
from tidegate_sidecar.ports import RuntimeReply

from .fakes import FakeSearcher

GONE = RequestError(ErrorCode.RELEASE_UNAVAILABLE, "the runtime can't be reached; try again", retry_after_seconds=1)
BODY = json.dumps({"query": "leave"}).encode()


class Rig:
    """A pod's runtime and its neighbours, and how a search ended."""

    def __init__(self, *, alone: bool = False) -> None:
        self.here, self.there = FakeSearcher(), FakeSearcher()
        self.outcomes: list[RuntimeReply | RequestError] = []
        self.woken = 0
        fallback = Fallback(self.here, neighbours=lambda: None if alone else self.there, on_unavailable=self.wake)
        self.exchange = fallback.search(BODY, deadline=7.0, done=self.outcomes.append)

    def wake(self) -> None:
        self.woken += 1


def status(outcome: RuntimeReply | RequestError) -> int:
    assert isinstance(outcome, RuntimeReply)
    return outcome.status


def test_a_runtime_that_answers_is_the_only_one_asked() -> None:
    rig = Rig()
    rig.here.searches[0].answer()
    assert [status(each) for each in rig.outcomes] == [200]
    assert rig.there.searches == []
    assert rig.woken == 0


def test_a_neighbour_answers_while_the_runtime_is_away_within_the_same_deadline() -> None:
    rig = Rig()
    rig.here.searches[0].done(GONE)
    assert rig.outcomes == []
    (asked,) = rig.there.searches
    assert (asked.body, asked.deadline) == ({"query": "leave"}, 7.0)
    asked.answer()
    assert [status(each) for each in rig.outcomes] == [200]
    assert rig.woken == 1


def test_one_that_leads_back_here_is_followed_by_another_until_tries_are_used_up() -> None:
    rig = Rig()
    rig.here.searches[0].refuse(503, "release_unavailable", "the runtime can't be reached; try again")
    for _ in range(TRIES):
        assert rig.outcomes == []
        rig.there.searches[-1].refuse(503, "release_unavailable", "the runtime can't be reached; try again")
    assert [status(each) for each in rig.outcomes] == [503]
    assert len(rig.there.searches) == TRIES


def test_neighbours_that_cannot_be_reached_are_not_waited_for_twice() -> None:
    rig = Rig()
    rig.here.searches[0].done(GONE)
    rig.there.searches[0].done(GONE)
    assert rig.outcomes == [GONE]
    assert len(rig.there.searches) == 1


def test_a_search_that_ended_two_runtimes_ends_no_third_one() -> None:
    rig = Rig()
    rig.here.searches[0].done(RequestError(ErrorCode.RELEASE_UNAVAILABLE, "it closed the connection", taken=True))
    refusal = json.dumps({"error": {"code": "release_unavailable", "message": "it closed the connection"}}).encode()
    rig.there.searches[0].done(RuntimeReply(503, {TAKEN_HEADER: b"1"}, refusal))
    assert [status(each) for each in rig.outcomes] == [503]
    assert len(rig.there.searches) == 1


def test_a_pod_without_neighbours_says_that_it_cannot() -> None:
    rig = Rig(alone=True)
    rig.here.searches[0].done(GONE)
    assert rig.outcomes == [GONE]
    assert rig.woken == 1


@pytest.mark.parametrize(
    ("code", "answered"), [("overloaded", 503), ("invalid_request", 400), ("deadline_exceeded", 504)]
)
def test_any_other_refusal_is_an_answer(code: str, answered: int) -> None:
    rig = Rig()
    rig.here.searches[0].refuse(answered, code, "no")
    assert [status(each) for each in rig.outcomes] == [answered]
    assert rig.there.searches == []


def test_who_gives_up_gives_up_the_one_that_is_under_way() -> None:
    rig = Rig()
    rig.here.searches[0].done(GONE)
    rig.exchange.cancel()
    assert rig.there.searches[0].cancelled
