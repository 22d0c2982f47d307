"""One knowledge base under `tidegate local`: its indexer, the revisions it should hold, what it reports.

Language first: when it is `auto`, the indexer counts scripts before any revision is asked for, and
the answer is recorded for ever. A revision that still serves stays in the config, with the shape it
was built with, until nothing refers to it.
"""

from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from pydantic import ValidationError

from tidegate_api.config import IndexerConfig, IndexerState, RevisionConfig, RevisionState
from tidegate_api.shape import Language
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseSpec
from tidegate_cli.local_files import LocalFiles
from tidegate_cli.local_record import replace_text
from tidegate_cli.processes import Command, ProcessTree
from tidegate_cli.progress import Reporter
from tidegate_operator.core.desired import indexer_config, revision_shape

STATE_SECONDS = 5.0


@dataclass(slots=True)
class LocalKnowledgeBase:
    """The processes and documents of one knowledge base below `folder`."""

    name: str
    folder: Path
    port: int
    language: Language | None
    state: IndexerState | None = None
    desired: RevisionConfig | None = None
    _told: set[str] = field(default_factory=set)

    @property
    def revisions_root(self) -> Path:
        """Return the folder that holds one folder per revision."""
        return self.folder / "indexes" / self.name

    async def reconcile(
        self, spec: KnowledgeBaseSpec, files: LocalFiles, *, serving: set[str], tree: ProcessTree
    ) -> None:
        """Write the indexer's config and keep the indexer running; revisions in `serving` stay."""
        if spec.language != "auto":
            self.language = spec.language
        elif self.language is None and self.state is not None and self.state.census is not None:
            self.language = self.state.census.language
        if self.language is not None:
            shape = revision_shape(spec, self.language)
            self.desired = RevisionConfig(name=shape.revision_name(self.name), shape=shape)
        config = self._config(spec, files, serving)
        path = self.folder / "config" / f"{self.name}-indexer.json"
        replace_text(path, config.model_dump_json(by_alias=True, exclude_none=True, indent=1))
        self.revisions_root.mkdir(parents=True, exist_ok=True)
        arguments = (
            "--config",
            str(path),
            "--root",
            str(self.revisions_root),
            "--listen",
            f"127.0.0.1:{self.port}",
            "--watch",
        )
        name = f"{self.name}-indexer"
        await tree.keep(Command(name, "tidegate_runtime.indexer", arguments, self.folder / "logs" / f"{name}.log"))

    async def observe(self, session: aiohttp.ClientSession, reporter: Reporter) -> None:
        """Read the indexer's state; an indexer that does not answer leaves the last state as it is."""
        try:
            timeout = aiohttp.ClientTimeout(total=STATE_SECONDS)
            async with session.get(f"http://127.0.0.1:{self.port}/v1/state", timeout=timeout) as response:
                self.state = IndexerState.model_validate_json(await response.read())
        except (TimeoutError, aiohttp.ClientError, ValidationError):
            return
        self._report(self.state, reporter)

    def revision(self, name: str) -> RevisionState | None:
        """Return what the indexer says of one revision."""
        revisions = self.state.revisions if self.state is not None else []
        return next((revision for revision in revisions if revision.name == name), None)

    def ready_revision(self) -> str | None:
        """Return the desired revision when it is built."""
        if self.desired is None:
            return None
        found = self.revision(self.desired.name)
        return found.name if found is not None and found.phase == "Ready" else None

    def _config(self, spec: KnowledgeBaseSpec, files: LocalFiles, serving: set[str]) -> IndexerConfig:
        previous = _previous(self.folder / "config" / f"{self.name}-indexer.json")
        kept = [revision for revision in previous if revision.name in serving and revision != self.desired]
        revisions = ([self.desired] if self.desired is not None else []) + kept
        sources = {source.name: _folder(source.from_, files) for source in spec.sources}
        return indexer_config(spec, name=self.name, namespace="local", revisions=revisions, paths=sources)

    def _report(self, state: IndexerState, reporter: Reporter) -> None:
        self._tell(reporter, state.message)
        for failure in state.sync.failures:
            self._tell(reporter, f"{failure.document}: {failure.reason}")
        for revision in state.revisions:
            if revision.phase == "Building" and revision.documents_total:
                reporter.building(revision.name, done=revision.documents_done, total=revision.documents_total)
            if revision.phase == "Ready" and revision.name not in self._told:
                self._told.add(revision.name)
                reporter.built(revision.name, documents=revision.documents, chunks=revision.chunks)
            self._tell(reporter, revision.message)

    def _tell(self, reporter: Reporter, message: str) -> None:
        if message and message not in self._told:
            self._told.add(message)
            reporter.say(f"{self.name}: {message}")


def _folder(origin: object, files: LocalFiles) -> Path:
    config_map, volume = getattr(origin, "config_map", None), getattr(origin, "volume", None)
    if config_map is not None:
        return files.config_map(config_map.name)
    assert volume is not None  # noqa: S101 - the schema's exactly-one rule has been checked
    folder = files.claim(volume.claim_name)
    return folder / volume.path if volume.path else folder


def _previous(path: Path) -> list[RevisionConfig]:
    try:
        return IndexerConfig.model_validate_json(path.read_bytes()).revisions
    except (FileNotFoundError, ValidationError):
        return []
