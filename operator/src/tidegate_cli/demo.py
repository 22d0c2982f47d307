"""`make demo-local`: the quickstart from nothing to answers, an edit and the new answer, with the time each step took.

It uses only what a user has: the manifests in examples/quickstart (copied, so that the edit stays
out of the tree), `tidegate local` as a process, and the query command's own code.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tidegate_cli.query import QueryError, Question, ask, render

ROOT = Path(__file__).resolve().parents[3]
QUESTIONS = (
    "What survives a kill -9 between any two steps?",
    "How do I use a folder on my machine in place of a PersistentVolumeClaim?",
    "Which header carries the API key, and what can an anonymous caller see?",
)
EDIT = "The tide table of this harbour lists high water at 14:05 and low water at 20:17."
EDIT_QUESTION = "When is high water in this harbour?"
FIRST_ANSWER_SECONDS = 180
EDIT_SECONDS = 60


def main() -> int:
    """Run the story once and say how long each part took; 1 when a part failed."""
    work = ROOT / ".state" / "demo"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(ROOT / "examples" / "quickstart", work / "manifests")
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    print(f"$ tidegate local -f examples/quickstart --listen 127.0.0.1:{port}\n", flush=True)
    started = time.monotonic()
    local = subprocess.Popen(
        [
            *(sys.executable, "-m", "tidegate_cli.tidegate", "local", "-f", str(work / "manifests")),
            *("--state", str(work / "state"), "--listen", f"127.0.0.1:{port}"),
        ],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        return _story(local, url, work, started)
    finally:
        local.send_signal(signal.SIGINT)
        local.wait(timeout=30)


def _story(local: subprocess.Popen[bytes], url: str, work: Path, started: float) -> int:
    answer = _until(lambda: ask(Question(QUESTIONS[0], url=url)), local, FIRST_ANSWER_SECONDS)
    if answer is None:
        print("no answer came; the lines above and the logs in .state/demo/state/logs say why", file=sys.stderr)
        return 1
    first_seconds = time.monotonic() - started
    for question in QUESTIONS:
        print(f"\n? {question}\n{render(ask(Question(question, url=url, top_k=2)))}", flush=True)

    document = work / "manifests" / "documents.yaml"
    print(f"\n$ sed -i … {document.relative_to(ROOT)}    # the README gets one more sentence: {EDIT!r}", flush=True)
    edited = time.monotonic()
    _edit(document)
    answer = _until(lambda: _holding(EDIT, ask(Question(EDIT_QUESTION, url=url, top_k=1))), local, EDIT_SECONDS)
    if answer is None:
        print("the edit did not reach the answers; see .state/demo/state/logs", file=sys.stderr)
        return 1
    edit_seconds = time.monotonic() - edited
    print(f"\n? {EDIT_QUESTION}\n{render(answer)}")
    print(
        f"\nfrom nothing to the first answer {first_seconds:.1f} s; from the edit to the new answer {edit_seconds:.1f} s"
    )
    return 0


def _edit(document: Path) -> None:
    lines = document.read_text().splitlines(keepends=True)
    heading = next(position for position, line in enumerate(lines) if line.strip() == "# Tidegate")
    indent = " " * (len(lines[heading]) - len(lines[heading].lstrip()))
    lines.insert(heading + 1, f"\n{indent}{EDIT}\n")
    replacement = document.with_suffix(".new")
    replacement.write_text("".join(lines))
    replacement.replace(document)


def _holding(text: str, answer: dict[str, object]) -> dict[str, object] | None:
    results = answer.get("results")
    return answer if isinstance(results, list) and results and text in results[0]["content"] else None


def _until(
    attempt: Callable[[], dict[str, object] | None], local: subprocess.Popen[bytes], seconds: float
) -> dict[str, object] | None:
    """Return the first answer of `attempt` that is one; None when time is up or `tidegate local` has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and local.poll() is None:
        try:
            answer = attempt()
        except QueryError:
            answer = None
        if answer is not None:
            return answer
        time.sleep(0.1)
    return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
