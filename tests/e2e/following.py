"""Follows one object by `kubectl get --watch`, as long as somebody waits for it.

Asking again and again would start a process each time, and cost the machine more than much of what is waited for.
"""

import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Self

# A condition may look at more than the object: it is asked again now and then without any news.
LOOK_AGAIN_SECONDS = 1.0
# After a watch has ended: the API server is away, or it was cut because of its age.
RESTART_SECONDS = 0.5


class Follower:
    """The latest state of one object. Open it with `with`."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command = command
        self._environment = environment
        self._latest: dict[str, Any] | None = None
        self._news = threading.Condition()
        self._unread = False
        self._ended = False
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._news:
            self._ended = True
            if self._process is not None:
                self._process.kill()
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
        while True:
            with self._news:
                if self._ended:
                    return
                self._process = subprocess.Popen(
                    self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self._environment
                )
            with self._process as process:
                assert process.stdout is not None
                for line in process.stdout:
                    event = json.loads(line)
                    self._tell(None if event["type"] == "DELETED" else event["object"])
            # What has happened until the next watch begins is told by its first event, unless the object is gone.
            self._tell(None)
            with self._news:
                self._news.wait_for(lambda: self._ended, RESTART_SECONDS)

    def _tell(self, state: dict[str, Any] | None) -> None:
        with self._news:
            self._latest = state
            self._unread = True
            self._news.notify_all()


def watch_arguments(resource: str) -> tuple[str, ...]:
    """Return the arguments of a kubectl that watches `kind/name`, which need not exist yet."""
    kind, _, name = resource.partition("/")
    return ("get", kind, f"--field-selector=metadata.name={name}", "--watch", "--output-watch-events", "-o", "json")
