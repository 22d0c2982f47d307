"""Looks at sources: which documents they hold now, by id and content hash.

A look reads only files whose signature changed since the last one; equal content hashes then decide
that nothing changed. Texts are not kept: a document that must be stored is loaded again, so memory
is bounded by ids and hashes. A failure stays with its document, and what the file may hold apart
from what it shows is known, because a document that cannot be read now is not a deleted one.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from tidegate_api.config import DocumentFailure, SourceConfig
from tidegate_runtime.errors import UnreadableDocumentError
from tidegate_runtime.indexer.census import count_scripts
from tidegate_runtime.indexer.histories import Histories, MemoryHistories
from tidegate_runtime.indexer.loaders import EXTENSIONS, LoadedFile, holds_many, load
from tidegate_runtime.indexer.sources import ListedFile, list_source, read_file

# A file written twice within one tick of the file system's clock may keep its signature.
_TICK_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class LookedFile:
    """What one file held when it was read.

    `unread` are documents that it does not show and that may stand in the part that cannot be read;
    None = any may.
    """

    listed: ListedFile
    hashes: Mapping[str, str]
    failures: tuple[DocumentFailure, ...] = ()
    scripts: Mapping[str, int] = field(default_factory=dict)
    unread: frozenset[str] | None = frozenset()


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    """A document of a source: its content hash, and the file it stands in."""

    content_hash: str
    file: str


@dataclass(frozen=True, slots=True)
class SourceSnapshot:
    """What a source holds. A document id that two files claim belongs to the first of them.

    `unread` are the documents that may stand in what cannot be read; None = any may.
    """

    files: Mapping[str, LookedFile]
    refused: tuple[DocumentFailure, ...]
    documents: Mapping[str, DocumentEntry]
    failures: tuple[DocumentFailure, ...]
    scripts: Mapping[str, int]
    unread: frozenset[str] | None = frozenset()

    def may_hold(self, document_id: str) -> bool:
        """Whether a document that was not found may stand in a file that could not be read whole."""
        return self.unread is None or document_id in self.unread


class SourceReader:
    """Looks at sources and remembers what it has read. Used by one thread."""

    def __init__(
        self,
        *,
        now_ns: Callable[[], int] = time.time_ns,
        read: Callable[[ListedFile], bytes] = read_file,
        histories: Histories | None = None,
        locate: Callable[[SourceConfig], SourceConfig] = lambda source: source,
    ) -> None:
        self._now_ns = now_ns
        self._histories = histories or MemoryHistories()
        self._read_file = read
        self._locate = locate
        self._seen: dict[str, SourceSnapshot] = {}
        self._unsettled: dict[str, set[str]] = {}

    def look(self, source: SourceConfig) -> SourceSnapshot:
        """Return what `source` holds now; the same object when nothing changed.

        Raises:
            UnreadableSourceError: it is missing or cannot be listed.
        """
        listing = list_source(self._locate(source), extensions=EXTENSIONS)
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
                files[listed.name] = self._read(source.name, listed)
        if before and before.refused == listing.refused and list(files.values()) == list(known.values()):
            return before
        refused = {refusal.document: self._may_hold(source.name, refusal.document) for refusal in listing.refused}
        if files:  # an unmounted folder looks empty, and what its files held must not be forgotten
            self._histories.keep_only(source.name, files.keys() | refused.keys())
        snapshot = _snapshot(files, listing.refused, [*refused.values(), *(file.unread for file in files.values())])
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
        self._histories.forget(configured)

    def _read(self, source: str, listed: ListedFile) -> LookedFile:
        read_at_ns = self._now_ns()
        unsettled = read_at_ns - max(listed.signature.modified_ns, listed.signature.changed_ns) < _TICK_NS
        try:
            loaded = load(listed.name, self._read_file(listed), source=source)
        except UnreadableDocumentError as error:
            unsettled = True
            loaded = LoadedFile(failures=(DocumentFailure(document=listed.name, reason=str(error)),))
        if unsettled:
            self._unsettled[source].add(listed.name)
        return self._looked(source, listed, loaded)

    def _looked(self, source: str, listed: ListedFile, loaded: LoadedFile) -> LookedFile:
        hashes = {document.document_id: document.content_hash for document in loaded.documents}
        scripts: Counter[str] = Counter()
        for document in loaded.documents:
            scripts.update(count_scripts(document.text))
        held = self._may_hold(source, listed.name) if loaded.failures else frozenset[str]()
        if holds_many(listed.name) and held is not None:
            self._histories.write(source, listed.name, held | hashes.keys())
        unread = None if held is None else held - hashes.keys()
        failures = loaded.failures
        if holds_many(listed.name):
            failures = tuple(_with_consequence(failure, unread) for failure in failures)
        return LookedFile(listed, hashes, failures=failures, scripts=scripts, unread=unread)

    def _may_hold(self, source: str, file: str) -> frozenset[str] | None:
        """Return the documents that a file may hold, whatever it shows now; None = any."""
        return self._histories.read(source, file) if holds_many(file) else frozenset({file})


def _with_consequence(failure: DocumentFailure, unread: frozenset[str] | None) -> DocumentFailure:
    """Add to a failure what is not done because of it."""
    if unread is None:
        held_back = "; until then no document of this source is deleted"
    elif unread:
        held_back = "; until then documents that the file held before and does not show now stay indexed"
    else:
        return failure
    return failure.model_copy(update={"reason": failure.reason + held_back})


def _snapshot(
    files: Mapping[str, LookedFile],
    refused: tuple[DocumentFailure, ...],
    unread: Sequence[frozenset[str] | None],
) -> SourceSnapshot:
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
    known = [ids for ids in unread if ids is not None]
    return SourceSnapshot(
        files,
        refused,
        documents,
        tuple(failures),
        scripts,
        unread=frozenset().union(*known) if len(known) == len(unread) else None,
    )
