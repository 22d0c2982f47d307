"""One pipeline under `tidegate local`: its runtime and sidecar, and the release that serves.

A new release is first put into the routing table beside the serving one; only when the sidecar
reports it warm does the table send traffic to it. So an edit never leaves a moment without answers.
"""

from dataclasses import dataclass
from pathlib import Path

import aiohttp
from pydantic import ValidationError

from tidegate_api.config import IndexRef, ReleaseConfig, RoutingTable, SidecarConfig, SidecarState, Versions
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipelineSpec
from tidegate_cli.local_files import LocalFiles
from tidegate_cli.local_knowledge import STATE_SECONDS, LocalKnowledgeBase
from tidegate_cli.local_record import replace_text
from tidegate_cli.processes import Command, ProcessTree
from tidegate_cli.progress import Reporter
from tidegate_operator.core.desired import pipeline_config, sidecar_config

NAMESPACE = "local"


@dataclass(slots=True)
class LocalPipeline:
    """The processes and documents of one pipeline below `folder`."""

    name: str
    folder: Path
    host: str
    port: int
    state_port: int
    version: int
    table: RoutingTable | None = None
    state: SidecarState | None = None
    _said: str = ""

    def serving_revisions(self) -> set[str]:
        """Return the index revisions that the present table names."""
        return {index.revision for release in (self.table.releases if self.table else []) for index in release.indexes}

    async def reconcile(
        self,
        spec: RetrievalPipelineSpec,
        *,
        files: LocalFiles,
        knowledge: dict[str, LocalKnowledgeBase],
        tree: ProcessTree,
    ) -> None:
        """Write config and table and keep both processes running; they start while the indexes are being built."""
        self._write(
            "sidecar", sidecar_config(spec, pipeline=self.name, namespace=NAMESPACE, auth_paths=_secrets(spec, files))
        )
        release = self._desired(spec, knowledge)
        if release is not None:
            self._route(release)
        await self._run(tree)

    async def observe(self, session: aiohttp.ClientSession, reporter: Reporter) -> None:
        """Read the sidecar's state and say once when another release serves."""
        try:
            timeout = aiohttp.ClientTimeout(total=STATE_SECONDS)
            async with session.get(f"http://127.0.0.1:{self.state_port}/v1/state", timeout=timeout) as response:
                self.state = SidecarState.model_validate_json(await response.read())
        except (TimeoutError, aiohttp.ClientError, ValidationError):
            return
        if self.table is None or self.state.table_version < self.table.version:
            return
        saying = (
            f"{self.name}: {self.table.stable} answers at http://{self.host}:{self.port}"
            if self.state.ready
            else f"{self.name}: not ready: {self.state.message}"
        )
        if saying != self._said and (self.state.ready or self.state.message):
            self._said = saying
            reporter.say(saying)

    def _desired(self, spec: RetrievalPipelineSpec, knowledge: dict[str, LocalKnowledgeBase]) -> ReleaseConfig | None:
        """Return the release that the files ask for, None while an index is still being built."""
        indexes = []
        for reference in spec.knowledge_bases:
            revision = knowledge[reference.name].ready_revision()
            if revision is None:
                return None
            indexes.append(IndexRef(knowledge_base=reference.name, revision=revision))
        here = Versions(runtime="local", sidecar="local")
        return ReleaseConfig.make(pipeline=pipeline_config(spec), indexes=indexes, versions=here)

    def _route(self, desired: ReleaseConfig) -> None:
        if self.table is None or self._is_warm(desired):
            stable, releases = desired, [desired]
        else:
            stable = next(release for release in self.table.releases if release.name == self.table.stable)
            releases = [stable] if stable == desired else [stable, desired]
        table = RoutingTable(
            version=self.version,
            pipeline=self.name,
            namespace=NAMESPACE,
            salt=f"{NAMESPACE}/{self.name}",
            stable=stable.name,
            releases=releases,
        )
        if self.table is None or table.table_hash() != self.table.table_hash():
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
        socket = self.folder / "run" / f"{self.name}.sock"
        socket.parent.mkdir(parents=True, exist_ok=True)
        logs = self.folder / "logs"
        runtime = ("--socket", str(socket), "--revisions-root", str(self.folder / "indexes"))
        sidecar = (
            *("--config", str(self._path("sidecar")), "--table", str(self._path("routing"))),
            *("--runtime-socket", str(socket)),
            *("--listen", f"{self.host}:{self.port}", "--state-listen", f"127.0.0.1:{self.state_port}"),
        )
        for part, module, arguments in (
            ("runtime", "tidegate_runtime", runtime),
            ("sidecar", "tidegate_sidecar", sidecar),
        ):
            name = f"{self.name}-{part}"
            await tree.keep(Command(name, module, arguments, logs / f"{name}.log"))


def _secrets(spec: RetrievalPipelineSpec, files: LocalFiles) -> dict[str, Path]:
    wanted = {"api_keys": spec.auth.api_keys, "trusted_headers": spec.auth.trusted_headers}
    return {member: files.secret(source.secret_ref.name) for member, source in wanted.items() if source is not None}
