"""`tidegate local`: the same YAML, indexer, runtime and sidecar, as one process tree without a cluster.

One loop: read the files when they change, judge them, write the rendered documents, keep the
processes running, look at what they report. Files with a mistake change nothing: what was accepted
last goes on, and the mistakes are said once. Ctrl-C stops the children in order and ends with 0.
"""

import asyncio
import contextlib
import itertools
import signal
import socket
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from tidegate_cli.local_check import Accepted, accept
from tidegate_cli.local_files import LocalFiles
from tidegate_cli.local_knowledge import LocalKnowledgeBase
from tidegate_cli.local_pipeline import LocalPipeline
from tidegate_cli.local_record import LocalRecord, StateFolderError, claimed_state_folder, write_record
from tidegate_cli.manifests import ManifestError, manifest_files, read_manifests
from tidegate_cli.processes import ProcessTree
from tidegate_cli.progress import Reporter

# Between two passes: while something is on its way, and while everything is as it should be.
PENDING_SECONDS = 0.1
CALM_SECONDS = 0.5
# Ports of further pipelines: the first listens where it was told, each next one this much higher.
PORT_STEP = 10
LAST_PORT = 65_535

_Fingerprint = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """What the command line asked for."""

    files: tuple[Path, ...]
    claims: dict[str, Path]
    host: str
    port: int
    state: Path


class ListenError(Exception):
    """An address cannot be listened on; the text says what to do."""


async def run_local(options: LocalOptions) -> int:
    """Serve until SIGINT or SIGTERM; return the exit code."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stopping.set)
    reporter = Reporter()
    try:
        seen = _fingerprint(options.files)
        accepted = accept(read_manifests(options.files), options.claims)
        for position in range(len(accepted.pipelines)):
            _refuse_taken_port(options.host, options.port + PORT_STEP * position)
        with claimed_state_folder(options.state) as record:
            await _serve(Session(options, reporter, record, accepted, seen), stopping)
    except (ManifestError, StateFolderError, ListenError) as error:
        reporter.say(str(error))
        return 1
    return 0


async def _serve(session: "Session", stopping: asyncio.Event) -> None:
    try:
        await session.run(stopping)
    finally:
        session.reporter.close()
        await session.tree.stop()


class Session:
    """The parts of one run and the loop over them."""

    def __init__(
        self, options: LocalOptions, reporter: Reporter, record: LocalRecord, accepted: Accepted, seen: _Fingerprint
    ) -> None:
        self.reporter = reporter
        self.tree = ProcessTree(say=reporter.say)
        self._options = options
        self._folder = options.state.resolve()
        self._record = record
        self._accepted = accepted
        self._seen = seen
        self._knowledge: dict[str, LocalKnowledgeBase] = {}
        self._pipelines: dict[str, LocalPipeline] = {}
        self._problem = ""
        self._remarks: list[str] = []

    async def run(self, stopping: asyncio.Event) -> None:
        """Reconcile and observe until told to stop."""
        async with aiohttp.ClientSession() as http:
            while not stopping.is_set():
                try:
                    await self._pass(http)
                except OSError as error:
                    self._say_once(f"{error.filename or self._folder}: {error.strerror}; it is tried again")
                settled = all(pipeline.settled for pipeline in self._pipelines.values())
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stopping.wait(), CALM_SECONDS if settled else PENDING_SECONDS)

    async def _pass(self, http: aiohttp.ClientSession) -> None:
        self._reread()
        await self._drop_what_is_gone()
        await self._reconcile()
        knowledge = (part.observe(http, self.reporter) for part in self._knowledge.values())
        pipelines = (part.observe(http, self.reporter) for part in self._pipelines.values())
        await asyncio.gather(*knowledge, *pipelines)
        self._remember()

    def _reread(self) -> None:
        """Take up the files when they have changed and have no mistake; say what is not obeyed here."""
        seen = _fingerprint(self._options.files)
        if seen != self._seen:
            self._seen = seen
            try:
                manifests, before = read_manifests(self._options.files), self._accepted.manifests
                self._accepted = accept(manifests, self._options.claims, before=before)
            except ManifestError as error:
                self._say_once(f"{error}\nthe files as they were before stay in force")
                return
            self._problem = ""
            self.reporter.say("files read anew")
        remarks = self._accepted.remarks()
        for remark in remarks:
            if remark not in self._remarks:
                self.reporter.say(remark)
        self._remarks = remarks

    async def _drop_what_is_gone(self) -> None:
        for name in set(self._pipelines) - set(self._accepted.pipelines):
            del self._pipelines[name]
            await self.tree.stop([f"{name}-runtime", f"{name}-sidecar"])
        for name in set(self._knowledge) - set(self._accepted.knowledge_bases):
            del self._knowledge[name]
            await self.tree.stop([f"{name}-indexer"])

    async def _reconcile(self) -> None:
        files = LocalFiles(self._folder, self._accepted.manifests, self._options.claims)
        pipelines = {name: self._pipeline(name) for name in self._accepted.pipelines}
        serving = {revision for pipeline in pipelines.values() for revision in pipeline.serving_revisions()}
        for name, knowledge_spec in self._accepted.knowledge_bases.items():
            sync = self._accepted.sync_token(name)
            await self._knowledge_base(name).reconcile(
                knowledge_spec, files, sync=sync, serving=serving, tree=self.tree
            )
        for name, pipeline_spec in self._accepted.pipelines.items():
            await pipelines[name].reconcile(pipeline_spec, files=files, knowledge=self._knowledge, tree=self.tree)

    def _knowledge_base(self, name: str) -> LocalKnowledgeBase:
        if name not in self._knowledge:
            language = self._record.languages.get(name)
            self._knowledge[name] = LocalKnowledgeBase(name, self._folder, _free_port(), language)
        return self._knowledge[name]

    def _pipeline(self, name: str) -> LocalPipeline:
        if name not in self._pipelines:
            taken = {pipeline.port for pipeline in self._pipelines.values()}
            self._pipelines[name] = LocalPipeline(
                name=name,
                folder=self._folder,
                host=self._options.host,
                port=next(port for port in itertools.count(self._options.port, PORT_STEP) if port not in taken),
                state_port=_free_port(),
                version=self._record.table_versions.get(name, 0),
            )
        return self._pipelines[name]

    def _remember(self) -> None:
        languages = {name: part.decided for name, part in self._knowledge.items() if part.decided is not None}
        versions = {name: part.version for name, part in self._pipelines.items()}
        record = self._record.model_copy(
            update={
                "languages": {**self._record.languages, **languages},
                "table_versions": {**self._record.table_versions, **versions},
            }
        )
        if record != self._record:
            write_record(self._folder, record)
            self._record = record

    def _say_once(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            self.reporter.say(problem)


def _fingerprint(paths: tuple[Path, ...]) -> _Fingerprint:
    try:
        files = manifest_files(paths)
        return tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    except (ManifestError, OSError):
        return ()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _refuse_taken_port(host: str, port: int) -> None:
    """Try to listen, so that a wrong or taken address is said before anything starts.

    Raises:
        ListenError: it cannot be listened on.
    """
    if port > LAST_PORT:
        raise ListenError(
            f"--listen {host}:{port}: there is no such port; each further pipeline adds {PORT_STEP}, begin lower"
        )
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise ListenError(f"--listen {host}:{port}: {error.strerror}; choose another address") from error
    except UnicodeError as error:
        raise ListenError(f"--listen {host}:{port}: no host can have this name; choose another address") from error
