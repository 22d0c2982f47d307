"""Asks pipelines as applications do, one question or one after the other."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.e2e.cluster import Namespace
from tests.e2e.wait import Found, wait_for

TIMEOUT_SECONDS = 20
START_SECONDS = 120
# Longer than any test.
LOAD_SECONDS = 900
FIRST_ANSWERS = 5
FIRST_ANSWERS_SECONDS = 60
LATER_ANSWERS = 30
LATER_ANSWERS_SECONDS = 60
# All answers are read each time.
LOOK_SECONDS = 1

# Asks over and over and prints a line for each answer; runs inside the cluster, so that a Service's
# change of pods is seen as applications see it.
ASKER = """
import json, sys, threading, time, urllib.error, urllib.request
url, seconds, users, workers, pause = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
end = time.time() + seconds

def ask(first):
    n = first
    while time.time() < end:
        n += workers
        body = json.dumps({"query": "when is high water", "session_id": f"s-{n % users}", "top_k": 1}).encode()
        request = urllib.request.Request(url + "/v1/retrieve", data=body)
        began = time.time()
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                answer = json.load(response)
                told = {"release": answer["release"], "session": n % users, "revisions": sorted({r["revision"] for r in answer["results"]})}
        except urllib.error.HTTPError as error:
            told = {"error": f"{error.code} {error.read()[:200].decode(errors='replace')}"}
        except OSError as error:
            told = {"error": repr(error)}
        sys.stdout.write(json.dumps({"at": began, **told}) + "\\n")
        sys.stdout.flush()
        time.sleep(pause)

threads = [threading.Thread(target=ask, args=(first,)) for first in range(workers)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a pipeline."""

    status: int
    body: dict[str, Any]

    @property
    def documents(self) -> list[str]:
        """Return the ids of the documents, best first."""
        return [result["document_id"] for result in self.body.get("results", [])]

    @property
    def text(self) -> str:
        """Return everything that was found."""
        return "\n".join(result["content"] for result in self.body.get("results", []))


def ask(url: str, query: str, *, key: str = "", top_k: int = 5, **headers: str) -> Answer:
    """Ask one question; refusals are answers too."""
    request = urllib.request.Request(
        f"{url}/v1/retrieve", data=json.dumps({"query": query, "top_k": top_k}).encode(), method="POST"
    )
    if key:
        request.add_header("authorization", f"Bearer {key}")
    for name, value in headers.items():
        request.add_header(name.replace("_", "-"), value)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            return Answer(response.status, json.load(response))
    except urllib.error.HTTPError as error:
        return Answer(error.code, json.load(error))


def text_of(url: str) -> str:
    """Return what a page says."""
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:
        return str(response.read().decode())


@dataclass(frozen=True, slots=True)
class Load:
    """A pod that asks one question after the other."""

    namespace: Namespace
    pod: str

    def answers(self) -> list[dict[str, Any]]:
        """Return what was answered so far."""
        lines = self.namespace.logs(self.pod).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def wait_for_answers(self) -> None:
        """Wait until answers come."""
        self._wait(lambda: len(self.answers()) > FIRST_ANSWERS, what="answers come", seconds=FIRST_ANSWERS_SECONDS)

    def answers_after(self, moment: float) -> list[dict[str, Any]]:
        """Return all answers once a number of questions were asked after `moment`, as `time.time()` gives it."""

        def enough() -> list[dict[str, Any]] | None:
            answers = self.answers()
            return answers if len([each for each in answers if each["at"] > moment]) >= LATER_ANSWERS else None

        return self._wait(enough, what="the load goes on", seconds=LATER_ANSWERS_SECONDS)

    def _wait(self, condition: Callable[[], Found | None], *, what: str, seconds: float) -> Found:
        describe = self.namespace.diagnosis
        return wait_for(
            condition,
            what=what,
            timeout_seconds=seconds,
            describe=lambda: describe("pods"),
            pause=lambda: time.sleep(LOOK_SECONDS),
        )


def start_load(
    namespace: Namespace,
    *,
    image: str,
    pipeline: str,
    seconds: int = LOAD_SECONDS,
    users: int = 50,
    workers: int = 1,
    pause_seconds: float = 0.1,
) -> Load:
    """Start a pod that asks `pipeline` for `seconds`, as `users` sessions in turn, `workers` at once, with a pause after each answer."""
    pod = f"asker-{pipeline}"
    container = {
        "name": "asker",
        "image": image,
        "command": [
            "python",
            "-c",
            ASKER,
            f"http://{pipeline}:8080",
            *map(str, (seconds, users, workers, pause_seconds)),
        ],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    spec = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    namespace.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod}, "spec": spec})
    namespace.wait_for(
        f"pods/{pod}",
        lambda found: found["status"].get("phase") in ("Running", "Succeeded"),
        what="asks",
        timeout_seconds=START_SECONDS,
    )
    return Load(namespace, pod)
