"""Decides what a revision lacks: the difference between the sources and its manifest. Pure.

Deleting is the dangerous half, so it needs proof: a document goes only when its source was listed
whole, no file that might still hold it failed to load, and the source did not lose everything at
once (then a person confirms by a new sync token). Building is the same difference from an empty
manifest; agreement is an empty difference.
"""

from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass

from tidegate_runtime.indexer.snapshot import SourceSnapshot
from tidegate_runtime.ports import DocumentKey


@dataclass(frozen=True, slots=True)
class FileWork:
    """Documents of one file that must be loaded and stored."""

    source: str
    file: str
    document_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Changes:
    """What makes a revision equal to its sources, in a fixed order."""

    work: tuple[FileWork, ...]
    added: frozenset[DocumentKey]
    changed: frozenset[DocumentKey]
    deletes: tuple[DocumentKey, ...]

    @property
    def none(self) -> bool:
        """Whether the revision agrees with its sources."""
        return not self.work and not self.deletes


def plan_changes(
    manifest: Mapping[DocumentKey, str],
    snapshots: Mapping[str, SourceSnapshot],
    *,
    configured: Set[str],
    frozen: Set[str],
    refused: Mapping[DocumentKey, str],
) -> Changes:
    """Compare a revision with the sources.

    Args:
        manifest: content hashes of the documents that the revision holds.
        snapshots: what the sources hold, by name; a source that cannot be read has none.
        configured: names of all sources of the config; documents of any other source go.
        frozen: sources whose documents must not be deleted now.
        refused: content hashes that this revision could not store; trying again would fail again.
    """
    by_source: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for key, content_hash in manifest.items():
        by_source[key.source][key.document_id] = content_hash
    added: set[DocumentKey] = set()
    changed: set[DocumentKey] = set()
    work: list[FileWork] = []
    for source in sorted(snapshots.keys() & configured):
        stored = by_source.get(source, {})
        by_file: defaultdict[str, set[str]] = defaultdict(set)
        for document_id, entry in snapshots[source].documents.items():
            if stored.get(document_id) == entry.content_hash:
                continue
            key = DocumentKey(source, document_id)
            if refused.get(key) == entry.content_hash:
                continue
            (changed if document_id in stored else added).add(key)
            by_file[entry.file].add(document_id)
        work.extend(FileWork(source, file, frozenset(by_file[file])) for file in sorted(by_file))
    deletes: list[DocumentKey] = []
    for source in sorted(by_source):
        gone: Set[str] = by_source[source].keys()
        if source in configured:
            gone = set() if source in frozen else _gone(gone, snapshots.get(source))
        deletes.extend(DocumentKey(source, document_id) for document_id in sorted(gone))
    return Changes(tuple(work), frozenset(added), frozenset(changed), tuple(deletes))


def _gone(stored: Set[str], snapshot: SourceSnapshot | None) -> Set[str]:
    """Return the stored documents that a source proves to hold no more."""
    if snapshot is None:
        return set()
    return {document_id for document_id in stored - snapshot.documents.keys() if not snapshot.may_hold(document_id)}


def next_holds(
    holds: Mapping[str, str], snapshots: Mapping[str, SourceSnapshot], *, indexed: Set[str], sync: str
) -> dict[str, str]:
    """Return the sources that lost every document at once, each with the sync token of the moment it was found.

    Args:
        holds: the holds so far.
        snapshots: what the readable sources hold.
        indexed: sources of which some revision holds a document.
        sync: the present sync token.
    """
    emptied = {name for name, snapshot in snapshots.items() if name in indexed and not snapshot.documents}
    unread = {name for name in holds if name not in snapshots and name in indexed}
    return {name: holds.get(name, sync) for name in sorted(emptied | unread)}


def held_sources(holds: Mapping[str, str], *, sync: str) -> frozenset[str]:
    """Return the holds that are not confirmed: the sync token is still the one they were found under."""
    return frozenset(name for name, token in holds.items() if token == sync)
