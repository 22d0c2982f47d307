"""`tidegate local`: the same YAML, indexer, runtime and sidecar, as one process tree without a cluster.

One loop: read the files when they change, judge them, write the rendered documents, keep the
processes running, look at what they report. Files with a mistake change nothing: what was accepted
last goes on, and the mistakes are said once. Ctrl-C stops the children in order and ends with 0.
"""

import asyncio
import contextlib
import signal
import socket
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from tidegate_cli.local_check import Accepted, accept
from tidegate_cli.local_files import LocalFiles, MissingReferenceError
from tidegate_cli.local_knowledge import LocalKnowledgeBase
from tidegate_cli.local_pipeline import LocalPipeline
from tidegate_cli.local_record import LocalRecord, StateFolderError, open_state_folder, write_record
from tidegate_cli.manifests import ManifestError, manifest_files, read_manifests
from tidegate_cli.processes import ProcessTree
from tidegate_cli.progress import Reporter

PASS_SECONDS = 0.4
# Ports of further pipelines: the first listens where it was told, each next one this much higher.
PORT_STEP = 10


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """What the command line asked for."""

    files: tuple[Path, ...]
    claims: dict[str, Path]
    host: str
    port: int
    state: Path


async def run_local(options: LocalOptions) -> int:
    """Serve until SIGINT or SIGTERM; return the exit code."""
    reporter = Reporter()
    try:
        record = open_state_folder(options.state)
        accepted = accept(read_manifests(options.files))
        _refuse_taken_port(options)
    except (ManifestError, StateFolderError, OSError) as error:
        reporter.say(str(error))
        return 1
    for remark in accepted.remarks:
        reporter.say(remark)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    tree = ProcessTree(say=reporter.say)
    session = Session(options, reporter, tree, record, accepted)
    try:
        await session.run(stopping)
    finally:
        reporter.close()
        await tree.stop()
    return 0


@dataclass(slots=True)
class Session:
    """The parts of one run and the loop over them."""

    options: LocalOptions
    reporter: Reporter
    tree: ProcessTree
    record: LocalRecord
    accepted: Accepted
    knowledge: dict[str, LocalKnowledgeBase] = field(default_factory=dict)
    pipelines: dict[str, LocalPipeline] = field(default_factory=dict)
    _seen: tuple[tuple[str, int, int], ...] = ()
    _problem: str = ""

    async def run(self, stopping: asyncio.Event) -> None:
        """Reconcile and observe until told to stop."""
        self._seen = _fingerprint(self.options.files)
        (self.options.state / "logs").mkdir(parents=True, exist_ok=True)
        async with aiohttp.ClientSession() as http:
            while not stopping.is_set():
                self._reread()
                await self._reconcile()
                await self._observe(http)
                self._remember()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stopping.wait(), PASS_SECONDS)

    async def _observe(self, http: aiohttp.ClientSession) -> None:
        knowledge = (part.observe(http, self.reporter) for part in self.knowledge.values())
        pipelines = (part.observe(http, self.reporter) for part in self.pipelines.values())
        await asyncio.gather(*knowledge, *pipelines)

    def _reread(self) -> None:
        seen = _fingerprint(self.options.files)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self.accepted = accept(read_manifests(self.options.files))
        except ManifestError as error:
            self._say_once(f"{error}\nthe files as they were before stay in force")
            return
        self._problem = ""
        self.reporter.say("files read anew")

    async def _reconcile(self) -> None:
        files = LocalFiles(self.options.state, self.accepted.manifests, self.options.claims)
        await self._drop_what_is_gone()
        serving = {revision for pipeline in self.pipelines.values() for revision in pipeline.serving_revisions()}
        try:
            for name, knowledge_spec in self.accepted.knowledge_bases.items():
                await self._knowledge_base(name).reconcile(knowledge_spec, files, serving=serving, tree=self.tree)
            for position, (name, pipeline_spec) in enumerate(self.accepted.pipelines.items()):
                pipeline = self._pipeline(name, position)
                await pipeline.reconcile(pipeline_spec, files=files, knowledge=self.knowledge, tree=self.tree)
        except MissingReferenceError as error:
            self._say_once(str(error))

    async def _drop_what_is_gone(self) -> None:
        for name in set(self.pipelines) - set(self.accepted.pipelines):
            del self.pipelines[name]
            await self.tree.stop([f"{name}-runtime", f"{name}-sidecar"])
        for name in set(self.knowledge) - set(self.accepted.knowledge_bases):
            del self.knowledge[name]
            await self.tree.stop([f"{name}-indexer"])

    def _knowledge_base(self, name: str) -> LocalKnowledgeBase:
        if name not in self.knowledge:
            language = self.record.languages.get(name)
            self.knowledge[name] = LocalKnowledgeBase(name, self.options.state.resolve(), _free_port(), language)
        return self.knowledge[name]

    def _pipeline(self, name: str, position: int) -> LocalPipeline:
        if name not in self.pipelines:
            self.pipelines[name] = LocalPipeline(
                name=name,
                folder=self.options.state.resolve(),
                host=self.options.host,
                port=self.options.port + PORT_STEP * position,
                state_port=_free_port(),
                version=self.record.table_versions.get(name, 0),
            )
        return self.pipelines[name]

    def _remember(self) -> None:
        languages = {name: part.language for name, part in self.knowledge.items() if part.language is not None}
        versions = {name: part.version for name, part in self.pipelines.items()}
        record = self.record.model_copy(
            update={
                "languages": {**self.record.languages, **languages},
                "table_versions": {**self.record.table_versions, **versions},
            }
        )
        if record != self.record:
            self.record = record
            write_record(self.options.state, record)

    def _say_once(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            self.reporter.say(problem)


def _fingerprint(paths: tuple[Path, ...]) -> tuple[tuple[str, int, int], ...]:
    try:
        files = manifest_files(paths)
        return tuple((str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files)
    except (ManifestError, OSError):
        return ()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _refuse_taken_port(options: LocalOptions) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((options.host, options.port))
        except OSError as error:
            reason = f"--listen {options.host}:{options.port}: {error.strerror}; choose another port"
            raise OSError(reason) from error
