"""A `tidegate local` of a test's own: started for real in a folder, asked over HTTP, stopped without remains.

Everything that is waited for has a time limit, and a wait that fails shows what the command printed,
the rendered documents and the logs of all its processes. Every stop checks what a user relies on: exit
code 0, no process left behind, no traceback on the terminal.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from tests.e2e.wait import wait_for

API_VERSION = "tidegate.dev/v1alpha1"
# The machine may be busy with something else: a limit says "never", not "late".
WAIT_SECONDS = 120.0
REQUEST_SECONDS = 30.0
SHOWN_CHARACTERS = 4000
MODULES = {"indexer": "tidegate_runtime.indexer", "runtime": "tidegate_runtime", "sidecar": "tidegate_sidecar"}

Found = TypeVar("Found")
Object = dict[str, Any]


def config_map(name: str, **data: str) -> Object:
    """Return a ConfigMap; two underscores in a keyword are the dot of a file name."""
    entries = {key.replace("__", "."): value for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": entries}


def knowledge_base(name: str, *sources: Object, **spec: Any) -> Object:
    """Return a KnowledgeBase over `sources`."""
    return _ours("KnowledgeBase", name, {"sources": list(sources), **spec})


def pipeline(name: str, *knowledge_bases: str, **spec: Any) -> Object:
    """Return a RetrievalPipeline that anybody may ask, unless `spec` says otherwise."""
    references = [{"name": each} for each in knowledge_bases]
    return _ours("RetrievalPipeline", name, {"knowledgeBases": references, "auth": {"anonymous": {}}, **spec})


def volume_source(claim: str, name: str = "files", **members: Any) -> Object:
    """Return a source of files on a volume."""
    return {"name": name, "from": {"volume": {"claimName": claim}}, **members}


def _ours(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def write_manifests(folder: Path, *objects: Object) -> None:
    """Write each object to a file of its own, replaced atomically as an editor does."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in objects:
        replace(folder / f"{each['kind']}-{each['metadata']['name'][:40]}.yaml", yaml.safe_dump(each))


def replace(path: Path, text: str) -> None:
    """Replace a file's text atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replacement = path.with_name(f"{path.name}.new")
    replacement.write_text(text, encoding="utf-8")
    replacement.replace(path)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back over HTTP."""

    status: int
    headers: Mapping[str, str]
    body: Object

    @property
    def results(self) -> list[Object]:
        """Return the chunks of the answer, none when it is an error."""
        return list(self.body.get("results", []))

    @property
    def documents(self) -> list[str]:
        """Return the ids of the documents of the answer, best first."""
        return [result["document_id"] for result in self.results]

    @property
    def error(self) -> str:
        """Return code and message of an error, empty when it is none."""
        error = self.body.get("error", {})
        return f"{error['code']}: {error['message']}" if error else ""


def command(*arguments: str | Path) -> list[str]:
    """Return the command line of `tidegate`."""
    return [sys.executable, "-m", "tidegate_cli.tidegate", *map(str, arguments)]


def run_command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `tidegate` to its end."""
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=WAIT_SECONDS, check=False)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def http(url: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Answer | None:
    """Return the answer of one call, None when nobody listens or the connection breaks."""
    request = urllib.request.Request(url, data=body, headers=dict(headers or {}))
    try:
        with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as response:
            return Answer(response.status, _lowered(response.headers), _json(response.read()))
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, _lowered(error.headers), _json(error.read()))
    except OSError:
        return None


@dataclass(slots=True)
class LocalServer:
    """One `tidegate local` over the manifests in `files`, with its state and output below `folder`."""

    folder: Path
    files: Path
    volumes: Mapping[str, Path] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def state(self) -> Path:
        """Return the state folder."""
        return self.folder / "state"

    @property
    def url(self) -> str:
        """Return where the first pipeline answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def output(self) -> str:
        """Return what the command has printed, over all starts."""
        path = self.folder / "output.txt"
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    def start(self) -> None:
        """Start the command; a terminal is none of its streams."""
        volumes = [f"--volume={claim}={path}" for claim, path in self.volumes.items()]
        listen = f"127.0.0.1:{self.port}"
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "output.txt").open("ab") as output:
            self.process = subprocess.Popen(
                command("local", "-f", self.files, "--state", self.state, "--listen", listen, *volumes),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def stop(self) -> None:
        """Press Ctrl-C and check that a clean end follows."""
        assert self.process is not None
        children = self.children()
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=WAIT_SECONDS)
        assert code == 0, self.diagnosis()
        assert not [pid for pid in children.values() if is_alive(pid)], self.diagnosis()
        assert "Traceback" not in self.output, self.diagnosis()

    def kill(self) -> None:
        """Kill -9 the command, as the kernel does when memory is short; its children have to go with it."""
        assert self.process is not None
        children = self.children()
        self.process.kill()
        self.process.wait()
        self.until(lambda: not [pid for pid in children.values() if is_alive(pid)], "the children died with it")

    def children(self) -> dict[str, int]:
        """Return the pids of the processes below it, by `<name>-<part>` as in the names of their logs."""
        assert self.process is not None
        return {name: pid for pid, name in _children_of(self.process.pid)}

    def until(self, condition: Callable[[], Found | None], what: str) -> Found:
        """Wait until `condition` finds something."""
        return wait_for(condition, what=what, timeout_seconds=WAIT_SECONDS, describe=self.diagnosis)

    def until_ready(self) -> None:
        """Wait until the first pipeline is ready."""
        self.until(lambda: self._is_ready() or self._refuse_an_end(), f"{self.url}/readyz answers 200")

    def until_printed(self, text: str, *, after: int = 0) -> None:
        """Wait until the command has printed `text`, behind its first `after` characters."""
        self.until(lambda: text in self.output[after:], f"it printed {text!r}")

    def get(self, path: str, port: int | None = None) -> Answer | None:
        """Return the answer to a GET."""
        return http(f"http://127.0.0.1:{port or self.port}{path}")

    def post(self, body: bytes) -> Answer:
        """Return the answer to a raw body sent to /v1/retrieve."""
        answer = http(f"{self.url}/v1/retrieve", body=body)
        assert answer is not None, self.diagnosis()
        return answer

    def ask(self, query: str, *, key: str = "", headers: Mapping[str, str] | None = None, **members: Any) -> Answer:
        """Return the answer to a question."""
        answer = self._try(query, key=key, headers=headers, **members)
        assert answer is not None, self.diagnosis()
        return answer

    def _try(
        self, query: str, *, key: str = "", headers: Mapping[str, str] | None = None, **members: Any
    ) -> Answer | None:
        credential = {"authorization": f"Bearer {key}"} if key else {}
        body = json.dumps({"query": query, **members}).encode()
        return http(f"{self.url}/v1/retrieve", body=body, headers={**credential, **(headers or {})})

    def until_answered(self, query: str, condition: Callable[[Answer], Any], what: str, **asked: Any) -> Answer:
        """Ask until the answer is as `condition` wants it."""

        def attempt() -> Answer | None:
            answer = self._try(query, **asked)
            return answer if answer is not None and answer.status == 200 and condition(answer) else None

        return self.until(attempt, what)

    def state_port(self, part: str) -> int:
        """Return the port on which a process of the tree tells its state."""
        pid = self.until(lambda: self.children().get(part), f"{part} runs")
        flag = "--listen" if part.endswith("-indexer") else "--state-listen"
        arguments = _command_line(pid)
        return int(arguments[arguments.index(flag) + 1].rpartition(":")[2])

    def state_of(self, part: str) -> Object:
        """Return what a process of the tree tells of itself."""
        answer = self.until(lambda: self.get("/v1/state", port=self.state_port(part)), f"{part} tells its state")
        return answer.body

    def diagnosis(self) -> str:
        """Return everything that explains a failure."""
        files = [self.folder / "output.txt", *sorted(self.state.glob("logs/*.log")), *self.state.glob("config/*.json")]
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-SHOWN_CHARACTERS:]}"
            for path in files
            if path.is_file()
        )

    def _is_ready(self) -> bool:
        answer = self.get("/readyz")
        return answer is not None and answer.status == 200

    def _refuse_an_end(self) -> None:
        assert self.process is None or self.process.poll() is None, self.diagnosis()


@contextmanager
def running(server: LocalServer) -> Iterator[LocalServer]:
    """Start `server`, wait until it is ready, and stop it at the end."""
    server.start()
    try:
        server.until_ready()
        yield server
        server.stop()
    finally:
        if server.process is not None and server.process.poll() is None:
            server.process.kill()
            server.process.wait()


@dataclass(slots=True)
class Asker:
    """Asks one question again and again in the background: what a user sees while something changes."""

    server: LocalServer
    query: str
    answers: list[Answer | None] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Asker":
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    @property
    def releases(self) -> set[str]:
        """Return the releases that have answered."""
        return {answer.body["release"] for answer in list(self.answers) if answer is not None and answer.status == 200}

    def failed(self) -> list[Answer | None]:
        """Return the requests without a good answer."""
        return [answer for answer in list(self.answers) if answer is None or answer.status != 200]

    def _ask(self) -> None:
        body = json.dumps({"query": self.query}).encode()
        while not self._stopping.is_set():
            self.answers.append(http(f"{self.server.url}/v1/retrieve", body=body))
            self._stopping.wait(0.02)

    _thread: threading.Thread = field(init=False)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def _children_of(parent: int) -> Iterator[tuple[int, str]]:
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            status = (folder / "status").read_text()
            arguments = _command_line(int(folder.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
        name = _name_of(arguments)
        if f"\nPPid:\t{parent}\n" in status and name:
            yield int(folder.name), name


def _command_line(pid: int) -> Sequence[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def _name_of(arguments: Sequence[str]) -> str:
    """Return `docs-indexer` and the like, read from the arguments of a child; empty for anything else."""
    part = next((part for part, module in MODULES.items() if module in arguments), "")
    owner = re.search(r"/([a-z0-9-]+)-(?:indexer|sidecar)\.json|\b([a-z0-9-]+)\.sock", " ".join(arguments))
    return f"{owner[1] or owner[2]}-{part}" if part and owner else ""


def _lowered(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _json(content: bytes) -> Object:
    try:
        document = json.loads(content)
    except ValueError:
        return {"text": content.decode(errors="replace")}
    return document if isinstance(document, dict) else {"text": document}


def kill_process(pid: int) -> None:
    """Kill -9 one process."""
    os.kill(pid, signal.SIGKILL)
