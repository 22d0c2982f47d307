"""One knowledge base under `tidegate local`: its indexer, the revisions it should hold, what it reports.

Language first: when it is `auto`, the indexer counts scripts before any revision is asked for, and
the answer is recorded for ever. A revision that still serves stays in the config, with the shape it
was built with, until nothing refers to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from pydantic import ValidationError

from tidegate_api.config import IndexerConfig, IndexerState, RevisionConfig
from tidegate_api.shape import Language
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseSpec, SourceFrom
from tidegate_cli.local_files import LocalFiles
from tidegate_cli.local_record import LOGS, NAMESPACE, replace_text
from tidegate_cli.processes import Command, ProcessTree
from tidegate_cli.progress import Reporter
from tidegate_operator.core.desired import indexer_config, revision_shape

STATE_SECONDS = 2.0
# An indexer ends after the batch in hand, which may take long; killed, it loses that batch and nothing else.
INDEXER_STOP_SECONDS = 2.0


@dataclass(slots=True)
class LocalKnowledgeBase:
    """The processes and documents of one knowledge base below `folder`. `decided` is what `auto` came to."""

    name: str
    folder: Path
    port: int
    decided: Language | None
    state: IndexerState | None = None
    desired: RevisionConfig | None = None
    _is_auto: bool = False
    _told: frozenset[str] = frozenset()

    @property
    def revisions_root(self) -> Path:
        """Return the folder that holds one folder per revision."""
        return self.folder / "indexes" / self.name

    async def reconcile(
        self, spec: KnowledgeBaseSpec, files: LocalFiles, *, sync: str, serving: set[str], tree: ProcessTree
    ) -> None:
        """Write the indexer's config and keep the indexer running; revisions in `serving` stay."""
        self._is_auto = spec.language == "auto"
        if self._is_auto and self.decided is None and self.state is not None and self.state.census is not None:
            self.decided = self.state.census.language
        language = self.decided if spec.language == "auto" else spec.language
        if language is not None:
            shape = revision_shape(spec, language)
            self.desired = RevisionConfig(name=shape.revision_name(self.name), shape=shape)
        config = self._config(spec, files, sync=sync, serving=serving)
        path = self.folder / "config" / f"{self.name}-indexer.json"
        replace_text(path, config.model_dump_json(by_alias=True, exclude_none=True, indent=1))
        self.revisions_root.mkdir(parents=True, exist_ok=True)
        name = f"{self.name}-indexer"
        arguments = (
            *("--config", str(path), "--root", str(self.revisions_root)),
            *("--listen", f"127.0.0.1:{self.port}", "--watch"),
        )
        log = self.folder / LOGS / f"{name}.log"
        await tree.keep(Command(name, "tidegate_runtime.indexer", arguments, self.folder, log, INDEXER_STOP_SECONDS))

    async def observe(self, session: aiohttp.ClientSession, reporter: Reporter) -> None:
        """Read the indexer's state; an indexer that does not answer leaves the last state as it is."""
        try:
            timeout = aiohttp.ClientTimeout(total=STATE_SECONDS)
            async with session.get(f"http://127.0.0.1:{self.port}/v1/state", timeout=timeout) as response:
                state = IndexerState.model_validate_json(await response.read())
        except (TimeoutError, aiohttp.ClientError, ValidationError):
            return
        self.take(state, reporter)

    def take(self, state: IndexerState, reporter: Reporter) -> None:
        """Note what the indexer says and show what is new about it."""
        if not state.config_hash:
            return  # it has only just begun
        before = {revision.name: revision.phase for revision in self.state.revisions} if self.state else {}
        self.state = state
        for revision in state.revisions:
            if revision.phase == "Building" and revision.documents_total:
                reporter.building(revision.name, done=revision.documents_done, total=revision.documents_total)
            elif revision.phase == "Ready" and before.get(revision.name) != "Ready":
                reporter.built(revision.name, documents=revision.documents, chunks=revision.chunks)
            else:
                reporter.not_building(revision.name)
        for name in before.keys() - {revision.name for revision in state.revisions}:
            reporter.not_building(name)
        messages = [message for message in (*_messages(state), self._drift(state)) if message]
        for message in dict.fromkeys(messages):
            if message not in self._told:
                reporter.say(f"{self.name}: {message}")
        self._told = frozenset(messages)

    def ready_revision(self) -> str | None:
        """Return the desired revision when it is built."""
        ready = {found.name for found in self.state.revisions if found.phase == "Ready"} if self.state else set()
        return self.desired.name if self.desired is not None and self.desired.name in ready else None

    def _config(self, spec: KnowledgeBaseSpec, files: LocalFiles, *, sync: str, serving: set[str]) -> IndexerConfig:
        previous = _previous(self.folder / "config" / f"{self.name}-indexer.json")
        kept = [revision for revision in previous if revision.name in serving and revision != self.desired]
        revisions = ([self.desired] if self.desired is not None else []) + kept
        sources = {source.name: _folder(source.from_, files) for source in spec.sources}
        return indexer_config(spec, name=self.name, namespace=NAMESPACE, revisions=revisions, paths=sources, sync=sync)

    def _drift(self, state: IndexerState) -> str:
        """Return what to say when `auto` would come to something else today."""
        now = state.census.language if state.census is not None and state.census.documents else None
        if not self._is_auto or None in (now, self.decided) or now == self.decided:
            return ""
        return f"the documents are now {now}, the index was built for {self.decided}; set spec.language to {now} to rebuild it"


def _messages(state: IndexerState) -> Iterator[str]:
    yield state.message
    for failure in state.sync.failures:
        yield f"{failure.document}: {failure.reason}"
    if state.sync.failed > len(state.sync.failures):
        yield f"{state.sync.failed} documents could not be indexed; the first {len(state.sync.failures)} are named above"
    for revision in state.revisions:
        yield f"{revision.name}: {revision.message}" if revision.message else ""


def _folder(origin: SourceFrom, files: LocalFiles) -> Path:
    if origin.config_map is not None:
        return files.config_map(origin.config_map.name)
    assert origin.volume is not None  # noqa: S101 - the schema's exactly-one rule has been checked
    folder = files.claim(origin.volume.claim_name)
    return folder / origin.volume.path if origin.volume.path else folder


def _previous(path: Path) -> list[RevisionConfig]:
    try:
        return IndexerConfig.model_validate_json(path.read_bytes()).revisions
    except (FileNotFoundError, ValidationError):
        return []
