"""Follows one object by a watch, as long as somebody waits for it."""

import threading
from typing import Any, Self

from tests.e2e.reading import Reader, ReadError, Watch

# A condition may look at more than the object: it is asked again now and then without any news.
LOOK_AGAIN_SECONDS = 1.0
# After a watch has ended: the API server is away, or it was cut because of its age.
RESTART_SECONDS = 0.5


class Follower:
    """The latest state of one object. Open it with `with`."""

    def __init__(self, reader: Reader, resource: str, *, namespace: str) -> None:
        self._reader = reader
        self._resource = resource
        self._namespace = namespace
        self._latest: dict[str, Any] | None = None
        self._news = threading.Condition()
        self._unread = False
        self._ended = False
        self._watch: Watch | None = None
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._news:
            self._ended = True
            if self._watch is not None:
                self._watch.close()
            self._news.notify_all()
        self._thread.join()

    @property
    def latest(self) -> dict[str, Any] | None:
        """The object as it was last seen; None while there is none."""
        with self._news:
            self._unread = False
            return self._latest

    def wait_for_news(self) -> None:
        """Return once the object has changed since `latest` was read, or after a second."""
        with self._news:
            self._news.wait_for(lambda: self._unread, LOOK_AGAIN_SECONDS)

    def _follow(self) -> None:
        while (watch := self._next_watch()) is not None:
            for event in watch.events():
                self._tell(None if event["type"] == "DELETED" else event["object"])
            # What has happened until the next watch begins is told by its first event, unless the object is gone.
            self._tell(None)
            self._rest()

    def _next_watch(self) -> Watch | None:
        """Return a watch to read; None once nobody waits any more."""
        while True:
            with self._news:
                if self._ended:
                    return None
                try:
                    self._watch = self._reader.watch(self._resource, namespace=self._namespace)
                except ReadError:  # the API server is away, or does not know the kind yet
                    self._watch = None
                else:
                    return self._watch
            self._rest()

    def _rest(self) -> None:
        with self._news:
            self._news.wait_for(lambda: self._ended, RESTART_SECONDS)

    def _tell(self, state: dict[str, Any] | None) -> None:
        with self._news:
            self._latest = state
            self._unread = True
            self._news.notify_all()
