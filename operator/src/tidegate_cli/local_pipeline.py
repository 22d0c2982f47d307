"""One pipeline under `tidegate local`: its runtime and sidecar, and the release that serves.

A new release is first put into the routing table beside the serving one; only when the sidecar
reports it warm does the table send traffic to it, and what it replaced keeps its indexes until the
sidecar has let go of it. So an edit never leaves a moment without answers. The table of the last run
is obeyed again at the start: what answered then answers at once, and a change made since comes as an edit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from pydantic import ValidationError

from tidegate_api.config import IndexRef, ReleaseConfig, RoutingTable, SidecarConfig, SidecarState, Versions
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipelineSpec
from tidegate_cli.local_files import LocalFiles
from tidegate_cli.local_knowledge import STATE_SECONDS, LocalKnowledgeBase
from tidegate_cli.local_record import LOGS, NAMESPACE, replace_text
from tidegate_cli.processes import Command, ProcessTree
from tidegate_cli.progress import Reporter
from tidegate_operator.core.desired import (
    PipelineIdentity,
    Split,
    pipeline_config,
    routing_table,
    sidecar_config,
)


@dataclass(slots=True)
class LocalPipeline:
    """The processes and documents of one pipeline below `folder`. `version` is that of the newest table."""

    name: str
    folder: Path
    host: str
    port: int
    state_port: int
    version: int
    table: RoutingTable | None = None
    state: SidecarState | None = None
    desired: ReleaseConfig | None = None
    _leaving: tuple[ReleaseConfig, ...] = ()
    _told: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Take up the table of the last run."""
        self.table = _previous(self._path("routing"))
        self.version = max(self.version, self.table.version if self.table else 0)

    @property
    def url(self) -> str:
        """Return where it answers."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def settled(self) -> bool:
        """Return whether what the files ask for is what answers."""
        return (
            self.table is not None
            and self.desired is not None
            and self.table.stable == self.desired.name
            and not self._leaving
            and self.state is not None
            and self.state.ready
        )

    def serving_revisions(self) -> set[str]:
        """Return the index revisions that must not go yet."""
        releases = (*(self.table.releases if self.table else ()), *self._leaving)
        return {index.revision for release in releases for index in release.indexes}

    async def reconcile(
        self,
        spec: RetrievalPipelineSpec,
        *,
        files: LocalFiles,
        knowledge: dict[str, LocalKnowledgeBase],
        tree: ProcessTree,
    ) -> None:
        """Write config and table and keep both processes running; they start while the indexes are being built."""
        if not spec.suspend or not self._path("sidecar").is_file():
            auth_paths = _secrets(spec, files)
            self._write("sidecar", sidecar_config(spec, pipeline=self.name, namespace=NAMESPACE, auth_paths=auth_paths))
        self.desired = self._desired(spec, knowledge)
        if self.desired is not None and (not spec.suspend or self.table is None):
            self._route(self.desired)
        await self._run(tree)

    async def observe(self, session: aiohttp.ClientSession, reporter: Reporter) -> None:
        """Read the sidecar's state and say once what is new about it."""
        for message in self.take(await self._read_state(session)):
            reporter.say(f"{self.name}: {message}")

    def take(self, state: SidecarState | None) -> list[str]:
        """Note what the sidecar says, None when it does not answer; return what a person should hear."""
        self.state = state
        if state is None or self.table is None or state.table_version < self.table.version:
            return []
        held = {release.name for release in state.releases}
        self._leaving = tuple(release for release in self._leaving if release.name in held)
        messages = list(_messages(state, self.table, url=self.url))
        news = [message for message in messages if message not in self._told]
        self._told = frozenset(messages)
        return news

    async def _read_state(self, session: aiohttp.ClientSession) -> SidecarState | None:
        try:
            timeout = aiohttp.ClientTimeout(total=STATE_SECONDS)
            async with session.get(f"http://127.0.0.1:{self.state_port}/v1/state", timeout=timeout) as response:
                return SidecarState.model_validate_json(await response.read())
        except (TimeoutError, aiohttp.ClientError, ValidationError):
            return None

    def _desired(self, spec: RetrievalPipelineSpec, knowledge: dict[str, LocalKnowledgeBase]) -> ReleaseConfig | None:
        """Return the release that the files ask for, None while an index is still being built."""
        indexes = []
        for reference in spec.knowledge_bases:
            revision = knowledge[reference.name].ready_revision()
            if revision is None and not spec.releases.wait_for_builds:
                revision = self._served_revision(reference.name)
            if revision is None:
                return None
            indexes.append(IndexRef(knowledge_base=reference.name, revision=revision))
        here = Versions(runtime="local", sidecar="local")
        return ReleaseConfig.make(pipeline=pipeline_config(spec), indexes=indexes, versions=here)

    def _served_revision(self, knowledge_base: str) -> str | None:
        stable = self._stable()
        indexes = stable.indexes if stable is not None else []
        return next((index.revision for index in indexes if index.knowledge_base == knowledge_base), None)

    def _stable(self) -> ReleaseConfig | None:
        releases = self.table.releases if self.table is not None else []
        return next((release for release in releases if self.table and release.name == self.table.stable), None)

    def _route(self, desired: ReleaseConfig) -> None:
        stable = self._stable()
        if stable is None or self._is_warm(desired):
            stable = desired
        releases = [stable] if stable == desired else [stable, desired]
        table = routing_table(
            PipelineIdentity(self.name, NAMESPACE), Split(stable.name), releases=releases, version=self.version
        )
        if self.table is None or table.table_hash() != self.table.table_hash():
            names = {release.name for release in releases}
            known = (*(self.table.releases if self.table else ()), *self._leaving)
            self._leaving = tuple(release for release in known if release.name not in names)
            self.version += 1
            self.table = table.model_copy(update={"version": self.version})
            self._write("routing", self.table)

    def _is_warm(self, release: ReleaseConfig) -> bool:
        states = self.state.releases if self.state is not None else []
        return any(state.name == release.name and state.phase == "Warm" for state in states)

    def _write(self, what: str, document: RoutingTable | SidecarConfig) -> None:
        replace_text(self._path(what), document.model_dump_json(by_alias=True, exclude_none=True, indent=1))

    def _path(self, what: str) -> Path:
        return self.folder / "config" / f"{self.name}-{what}.json"

    async def _run(self, tree: ProcessTree) -> None:
        # Relative to the folder that both processes run in: the path of a socket has at most 107 bytes.
        socket = Path("run") / f"{self.name}.sock"
        (self.folder / socket).parent.mkdir(parents=True, exist_ok=True)
        runtime = ("--socket", str(socket), "--revisions-root", str(self.folder / "indexes"))
        sidecar = (
            *("--config", str(self._path("sidecar")), "--table", str(self._path("routing"))),
            *("--runtime-socket", str(socket)),
            *("--listen", self.url.removeprefix("http://"), "--state-listen", f"127.0.0.1:{self.state_port}"),
        )
        for part, module, arguments in (
            ("runtime", "tidegate_runtime", runtime),
            ("sidecar", "tidegate_sidecar", sidecar),
        ):
            name = f"{self.name}-{part}"
            await tree.keep(Command(name, module, arguments, self.folder, self.folder / LOGS / f"{name}.log"))


def _messages(state: SidecarState, table: RoutingTable, *, url: str) -> Iterator[str]:
    phases = {release.name: release.phase for release in state.releases}
    if phases.get(table.stable, "Loading") == "Loading":
        return  # it comes; a runtime that ends is told by the process tree
    if state.ready:
        yield f"{table.stable} answers at {url}"
        if state.message:
            yield state.message
    else:
        yield f"not ready: {state.message}"
    for release in state.releases:
        if release.phase == "Failed" and release.name != table.stable:
            yield f"{release.name} cannot serve, {table.stable} goes on: {release.message}"


def _previous(path: Path) -> RoutingTable | None:
    try:
        return RoutingTable.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def _secrets(spec: RetrievalPipelineSpec, files: LocalFiles) -> dict[str, Path]:
    wanted = {"api_keys": spec.auth.api_keys, "trusted_headers": spec.auth.trusted_headers}
    return {member: files.secret(source.secret_ref.name) for member, source in wanted.items() if source is not None}
