"""The one writer of a revision.

A commit compares records with what is stored, writes one segment with the new and changed
documents and one small file of deletions per touched segment, and replaces the manifest: cheap,
atomic, and nothing at all when nothing differs. Merging is left to `compact`, which the loop calls
after commits; it does nothing while sizes are in order.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tidegate_api.shape import RevisionShape
from tidegate_runtime.errors import RevisionUnavailableError, StateVersionError
from tidegate_runtime.ports import DocumentKey, DocumentRecord, RevisionStats, SourceRules
from tidegate_runtime.stores.embedded.building import PreparedDocument, build_arrays, prepare
from tidegate_runtime.stores.embedded.compaction import Load, plan_merges
from tidegate_runtime.stores.embedded.contents import Live, next_contents, without
from tidegate_runtime.stores.embedded.files import Files, LocalFiles
from tidegate_runtime.stores.embedded.format import Array
from tidegate_runtime.stores.embedded.manifest import MANIFEST_NAME, Manifest, RulesEntry, read_manifest
from tidegate_runtime.stores.embedded.merging import merge_arrays
from tidegate_runtime.stores.embedded.opening import OpenSegment, open_segments
from tidegate_runtime.stores.embedded.publishing import failures_told, publish, remove_rubbish

# What a reader makes for every row: length norms, masks, the scores of both legs while it answers.
_READER_BYTES_PER_ROW = 48


class _Place(NamedTuple):
    """Where a live document stands: its segment's file and its number there."""

    file: str
    document: int
    content_hash: str


class EmbeddedWriter:
    """Implements `IndexWriter`. Not thread-safe: the indexer's loop owns it."""

    def __init__(self, manifest: Manifest, files: Files, segments: Iterable[OpenSegment]) -> None:
        self._files = files
        self._manifest = manifest
        self._held = {opened.entry.file.name: opened for opened in segments}
        self._documents = {key: place for opened in self._held.values() for key, place in _places(opened)}

    @staticmethod
    def open(directory: Path, *, revision: str, shape: RevisionShape, files: Files | None = None) -> "EmbeddedWriter":
        """Open the revision in `directory`, or begin an empty one there.

        Raises:
            StateVersionError: the folder holds another revision, or files of another version.
            RevisionUnavailableError: another process writes to it, or it is damaged.
        """
        files = files or LocalFiles(directory)
        with failures_told():
            directory.mkdir(parents=True, exist_ok=True)
            if not files.lock():
                raise RevisionUnavailableError(f"{directory}: another process writes this revision; stop it first")
            try:
                return _open(
                    files, place=str(directory / MANIFEST_NAME), expected=Manifest(revision=revision, shape=shape)
                )
            except Exception:
                files.unlock()
                raise

    def documents(self) -> Mapping[DocumentKey, str]:
        return {key: place.content_hash for key, place in self._documents.items()}

    def commit(
        self,
        *,
        upserts: Sequence[DocumentRecord] = (),
        deletes: Sequence[DocumentKey] = (),
        rules: Mapping[str, SourceRules] | None = None,
    ) -> int:
        """Apply a batch and return the content generation after it. A key in both lists is an upsert.

        Raises:
            StoreFullError: the disk is full; the revision is as it was before.
            UnusableVectorError: a vector is zero, not finite or of another dimension; names the document.
            UnreadableDocumentError: a record contradicts itself; names the document.
        """
        prepared = {record.key: prepare(record, shape=self._manifest.shape) for record in upserts}
        changed = [document for document in prepared.values() if self._differs(document)]
        replaced = {document.record.key for document in changed}
        removed = {key for key in deletes if key not in prepared}
        gone = [key for key in replaced | removed if key in self._documents]
        next_rules = self._manifest.rules if rules is None else _rules_entries(rules)
        if not changed and not gone and next_rules == self._manifest.rules:
            return self._manifest.content_generation
        self._publish(
            live=without(self._held, self._numbers_by_segment(gone)),
            new_segment=build_arrays(changed, shape=self._manifest.shape) if changed else None,
            changes={"rules": next_rules, "content_generation": self._manifest.content_generation + 1},
        )
        for key in removed:
            self._documents.pop(key, None)
        return self._manifest.content_generation

    @property
    def ready(self) -> bool:
        return self._manifest.ready

    @property
    def dense(self) -> bool:
        return self._manifest.dense

    def mark_ready(self, *, dense: bool) -> None:
        if (self._manifest.ready, self._manifest.dense) != (True, dense):
            self._publish(live=without(self._held, {}), new_segment=None, changes={"ready": True, "dense": dense})

    def stats(self) -> RevisionStats:
        totals = self._manifest.totals
        stored_bytes = sum(file.size_bytes for file in self._manifest.files()) + len(self._manifest.encode())
        rows = sum(segment.stored_chunks for segment in self._manifest.segments)
        return RevisionStats(
            documents=totals.documents,
            chunks=totals.chunks,
            size_bytes=stored_bytes,
            load_bytes=stored_bytes + rows * _READER_BYTES_PER_ROW,
            truncated_chunks=totals.truncated_chunks,
            content_generation=self._manifest.content_generation,
        )

    def compact(self, *, purge: bool = False) -> None:
        """Merge small segments and drop deleted chunks; answers do not change by a bit.

        Segments with few deleted chunks are left alone, unless `purge` asks for all of them to go.
        """
        while groups := plan_merges([_load(opened) for opened in self._held.values()], purge=purge):
            names = [list(self._held)[position] for position in groups[0]]
            merged = merge_arrays([(self._held[name].segment, self._held[name].live) for name in names])
            kept = {name: opened.live for name, opened in self._held.items() if name not in names}
            self._publish(live=kept, new_segment=merged, changes={})

    def close(self) -> None:
        self._held.clear()
        self._documents.clear()
        self._files.unlock()

    def _differs(self, document: PreparedDocument) -> bool:
        place = self._documents.get(document.record.key)
        if place is None:
            return True
        stored: bytes = self._held[place.file].segment.digests[place.document].tobytes()
        return stored != document.digest

    def _numbers_by_segment(self, keys: Sequence[DocumentKey]) -> dict[str, list[int]]:
        numbers: dict[str, list[int]] = defaultdict(list)
        for key in keys:
            place = self._documents[key]
            numbers[place.file].append(place.document)
        return numbers

    def _publish(
        self, *, live: Mapping[str, Live], new_segment: Mapping[str, Array] | None, changes: Mapping[str, object]
    ) -> None:
        """Write the next manifest with what it needs, then follow it in memory."""
        contents = next_contents(self._held, live=live, new_segment=new_segment)
        manifest = self._manifest.model_copy(update={**changes, "segments": contents.entries})
        present = {file.name for file in self._manifest.files()}
        new_files = {name: content for name, content in contents.files.items() if name not in present}
        publish(manifest, self._files, new_files=new_files)
        known = {name: opened.segment for name, opened in self._held.items()}
        self._manifest = manifest
        self._held = {opened.entry.file.name: opened for opened in open_segments(manifest, self._files, known=known)}
        for name, opened in self._held.items():
            if name not in known:
                self._documents.update(_places(opened))
        remove_rubbish(manifest, self._files)


def _open(files: Files, *, place: str, expected: Manifest) -> EmbeddedWriter:
    stored = read_manifest(files, place=place)
    manifest = stored or expected
    if (manifest.revision, manifest.shape) != (expected.revision, expected.shape):
        raise StateVersionError(
            f"{place} holds revision {manifest.revision!r}, not {expected.revision!r} in its shape: "
            "give each revision a folder of its own, or empty this one"
        )
    remove_rubbish(manifest, files)
    if stored is None:
        publish(manifest, files, new_files={})
    try:
        segments = open_segments(manifest, files, known={})
    except FileNotFoundError as error:
        raise RevisionUnavailableError(
            f"{place} names {error.filename}, which is missing; remove the folder to build the revision again"
        ) from error
    return EmbeddedWriter(manifest, files, segments)


def _places(opened: OpenSegment) -> list[tuple[DocumentKey, _Place]]:
    segment, name = opened.segment, opened.entry.file.name
    return [
        (segment.key(document), _Place(name, document, segment.content_hashes[document]))
        for document in range(segment.documents)
        if opened.live is None or opened.live[document]
    ]


def _load(opened: OpenSegment) -> Load:
    entry = opened.entry
    return Load(entry.stored_chunks, entry.live.chunks, dead_documents=entry.deletions is not None)


def _rules_entries(rules: Mapping[str, SourceRules]) -> dict[str, RulesEntry]:
    return {
        source: RulesEntry(tenants=sorted(set(rule.tenants)), metadata=dict(rule.metadata))
        for source, rule in sorted(rules.items())
    }
