"""A crowd of users that asks a pipeline without a pause, and remembers who was answered by which release."""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tidegate_cli.query import QueryError, Question, ask

PAUSE_SECONDS = 0.02
SHOWN_MAX = 8


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: when it began, who asked and who answered. `error` says why nobody did."""

    at: float
    session: str
    release: str = ""
    revisions: frozenset[str] = frozenset()
    error: str = ""


class Crowd:
    """Asks in a thread of its own between `with` and its end, one user after the other."""

    def __init__(self, question: Question, *, users: int, ask: Callable[[Question], dict[str, object]] = ask) -> None:
        self.sessions = tuple(f"user-{number}" for number in range(1, users + 1))
        self.asked: list[Asked] = []
        self._question = question
        self._ask = ask
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def since(self, moment: float) -> list[Asked]:
        """Return the questions that began after `moment`."""
        return [each for each in self.asked.copy() if each.at > moment]

    def where(self, moment: float) -> dict[str, list[str]] | None:
        """Return the users of each release as they were served after `moment`; None until everybody has asked."""
        latest = {each.session: each.release for each in self.since(moment) if not each.error}
        if len(latest) < len(self.sessions):
            return None
        return {
            release: [session for session in self.sessions if latest[session] == release]
            for release in sorted(set(latest.values()))
        }

    def _run(self) -> None:
        turn = 0
        while not self._stop.wait(PAUSE_SECONDS):
            self.asked.append(self._one(self.sessions[turn % len(self.sessions)]))
            turn += 1

    def _one(self, session: str) -> Asked:
        began = time.time()
        try:
            answer = self._ask(
                Question(self._question.query, url=self._question.url, top_k=self._question.top_k, session=session)
            )
        except QueryError as error:
            return Asked(began, session, error=str(error))
        results = answer.get("results")
        found = results if isinstance(results, list) else []
        return Asked(began, session, str(answer["release"]), frozenset(str(each["revision"]) for each in found))


def failed(asked: Iterable[Asked]) -> list[Asked]:
    """Return the questions that got no answer, or one mixed of several index revisions."""
    return [each for each in asked if each.error or len(each.revisions) > 1]


def named(sessions: list[str]) -> str:
    """Return the first few users by name and how many more there are."""
    more = f" and {len(sessions) - SHOWN_MAX} more" if len(sessions) > SHOWN_MAX else ""
    return ", ".join(sessions[:SHOWN_MAX]) + more
