"""Looks at sources: which documents they hold now, by id and content hash.

A look reads only files whose signature changed since the last one; equal content hashes then decide
that nothing changed. Texts are not kept: a document that must be stored is loaded again, so memory
is bounded by ids and hashes. A failure stays with its document and remembers what the file held
before, because a document that cannot be read now is not a deleted one.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field

from tidegate_api.config import DocumentFailure, SourceConfig
from tidegate_runtime.errors import UnreadableDocumentError
from tidegate_runtime.indexer.census import count_scripts
from tidegate_runtime.indexer.loaders import EXTENSIONS, LoadedFile, holds_many, load
from tidegate_runtime.indexer.sources import ListedFile, list_source, read_file

# A file written twice within one tick of the file system's clock may keep its signature.
_TICK_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class LookedFile:
    """What one file held when it was read.

    `earlier` are documents that it held before and that may still stand in the part that cannot be
    read; `history_unknown` says that this process never saw the file whole.
    """

    listed: ListedFile
    hashes: Mapping[str, str]
    failures: tuple[DocumentFailure, ...] = ()
    scripts: Mapping[str, int] = field(default_factory=dict)
    earlier: frozenset[str] = frozenset()
    history_unknown: bool = False


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """A document of a source: its content hash, and the file it stands in."""

    content_hash: str
    file: str


@dataclass(frozen=True, slots=True)
class SourceSnapshot:
    """What a source holds. A document id that two files claim belongs to the first of them."""

    files: Mapping[str, LookedFile]
    refused: tuple[DocumentFailure, ...]
    documents: Mapping[str, DocumentEntry]
    failures: tuple[DocumentFailure, ...]
    scripts: Mapping[str, int]

    def may_hold(self, document_id: str) -> bool:
        """Whether a document that was not found may stand in a file that could not be read whole."""
        failing = (file for file in self.files.values() if file.failures)
        return any(refusal.document == document_id for refusal in self.refused) or any(
            document_id in file.earlier or file.history_unknown for file in failing
        )


class SourceReader:
    """Looks at sources and remembers what it has read. Used by one thread."""

    def __init__(
        self, *, now_ns: Callable[[], int] = time.time_ns, read: Callable[[ListedFile], bytes] = read_file
    ) -> None:
        self._now_ns = now_ns
        self._read_file = read
        self._seen: dict[str, SourceSnapshot] = {}
        self._unsettled: dict[str, set[str]] = {}

    def look(self, source: SourceConfig) -> SourceSnapshot:
        """Return what `source` holds now; the same object when nothing changed.

        Raises:
            UnreadableSourceError: it is missing or cannot be listed.
        """
        listing = list_source(source, extensions=EXTENSIONS)
        before = self._seen.get(source.name)
        known = before.files if before else {}
        unsettled = self._unsettled.pop(source.name, set())
        self._unsettled[source.name] = set()
        files: dict[str, LookedFile] = {}
        for listed in listing.files:
            earlier = known.get(listed.name)
            if earlier and earlier.listed == listed and listed.name not in unsettled:
                files[listed.name] = earlier
            else:
                files[listed.name] = self._read(source.name, listed, earlier)
        if before and before.refused == listing.refused and list(files.values()) == list(known.values()):
            return before
        snapshot = _snapshot(files, listing.refused)
        self._seen[source.name] = snapshot
        return snapshot

    def load(self, source: str, file: str) -> LoadedFile:
        """Return what a file of the last look holds now; one that cannot be read any more holds nothing."""
        try:
            return load(file, self._read_file(self._seen[source].files[file].listed), source=source)
        except UnreadableDocumentError:
            self._unsettled.setdefault(source, set()).add(file)  # so that the next look reads it and says why
            return LoadedFile()

    def forget(self, configured: Set[str]) -> None:
        """Drop what is remembered of sources that are not configured any more."""
        for name in self._seen.keys() - configured:
            del self._seen[name]
            self._unsettled.pop(name, None)

    def _read(self, source: str, listed: ListedFile, before: LookedFile | None) -> LookedFile:
        read_at_ns = self._now_ns()
        unsettled = read_at_ns - max(listed.signature.modified_ns, listed.signature.changed_ns) < _TICK_NS
        try:
            loaded = load(listed.name, self._read_file(listed), source=source)
        except UnreadableDocumentError as error:
            unsettled = True
            loaded = LoadedFile(failures=(DocumentFailure(document=listed.name, reason=str(error)),))
        if unsettled:
            self._unsettled[source].add(listed.name)
        return _looked(listed, loaded, before)


def _looked(listed: ListedFile, loaded: LoadedFile, before: LookedFile | None) -> LookedFile:
    hashes = {document.document_id: document.content_hash for document in loaded.documents}
    scripts: Counter[str] = Counter()
    for document in loaded.documents:
        scripts.update(count_scripts(document.text))
    if not loaded.failures:
        return LookedFile(listed, hashes, scripts=scripts)
    earlier = before.hashes.keys() | before.earlier if before else frozenset({listed.name})
    return LookedFile(
        listed,
        hashes,
        failures=loaded.failures,
        scripts=scripts,
        earlier=frozenset(earlier - hashes.keys()),
        history_unknown=before.history_unknown if before else holds_many(listed.name),
    )


def _snapshot(files: Mapping[str, LookedFile], refused: tuple[DocumentFailure, ...]) -> SourceSnapshot:
    documents: dict[str, DocumentEntry] = {}
    failures = list(refused)
    scripts: Counter[str] = Counter()
    for name, file in files.items():
        failures.extend(file.failures)
        scripts.update(file.scripts)
        for document_id, content_hash in file.hashes.items():
            first = documents.setdefault(document_id, DocumentEntry(content_hash, name))
            if first.file != name:
                reason = f"id {document_id!r} is already that of a document in {first.file}; give it its own"
                failures.append(DocumentFailure(document=name, reason=reason))
    return SourceSnapshot(files, refused, documents, tuple(failures), scripts)
