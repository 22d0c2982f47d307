"""Makes one revision equal to the sources, batch by batch: building and staying in step alike.

Every batch is committed, so a kill repeats at most one. Rules of sources come first and alone: who
may read changes at once and embeds nothing. Deletions come with the first batch, except that a
document which only changed its name goes together with its successor, so that moving a folder never
empties an index that serves.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tidegate_runtime.errors import ModelUnavailableError, UnreadableDocumentError, UnusableVectorError
from tidegate_runtime.indexer.changes import Changes, plan_changes
from tidegate_runtime.indexer.live import LiveRevision, Refusal
from tidegate_runtime.indexer.view import SourcesView
from tidegate_runtime.indexer.work import Made, Workshop
from tidegate_runtime.ports import DocumentKey, DocumentRecord, IndexWriter


class Outcome(StrEnum):
    """How a revision stands to the view after an attempt."""

    AGREES = "agrees"
    INTERRUPTED = "interrupted"
    BEHIND = "behind"  # files changed while they were read: look again
    BLOCKED = "blocked"  # something has to be put right first


@dataclass(frozen=True, slots=True)
class Hooks:
    """What is asked and told between batches."""

    interrupted: Callable[[], bool]
    progressed: Callable[[], None]


def catch_up(
    revision: LiveRevision, writer: IndexWriter, view: SourcesView, *, workshop: Workshop, hooks: Hooks
) -> Outcome:
    """Bring `revision` in step with `view`.

    Raises:
        StoreFullError: the volume has no room; what was committed before stays.
        ModelUnavailableError: the encoder is needed and cannot be opened; deletions were made.
    """
    writer.commit(rules=view.rules())
    manifest = writer.documents()
    revision.refused = _still_refused(revision.refused, view)
    changes = _plan(revision, manifest, view)
    revision.documents_total = view.documents
    revision.documents_left = len(changes.added) + len(changes.changed)
    if changes.none:
        return Outcome.AGREES
    if revision.phase != "Ready":
        revision.phase = "Building"
    hooks.progressed()
    deletions = _Deletions(changes, manifest, view)
    try:
        for batch in workshop.batches(changes.work):
            _store_batch(revision, writer, changes, workshop.records(batch), deletions)
            hooks.progressed()
            if hooks.interrupted():
                return Outcome.INTERRUPTED
    except ModelUnavailableError:
        _delete(revision, writer, deletions.due_with([]))
        raise
    _delete(revision, writer, deletions.rest())
    return Outcome.AGREES if _plan(revision, writer.documents(), view).none else Outcome.BEHIND


def _store_batch(
    revision: LiveRevision, writer: IndexWriter, changes: Changes, made: Made, deletions: "_Deletions"
) -> None:
    due = deletions.due_with(made.records)
    refused = {**made.refused, **_commit(writer, made.records, due)}
    revision.refused |= refused
    stored = {record.key for record in made.records} - refused.keys()
    for record in made.records:
        if record.key in stored:
            revision.foreign.note(record)
    revision.tally.added += len(stored & changes.added)
    revision.tally.changed += len(stored & changes.changed)
    revision.tally.deleted += len(due)
    revision.documents_left -= len(made.records) + len(made.refused)
    if revision.phase == "Building":
        revision.tell("")  # what stopped it before does so no longer
    writer.compact()


def _delete(revision: LiveRevision, writer: IndexWriter, keys: Sequence[DocumentKey]) -> None:
    writer.commit(deletes=keys)
    revision.tally.deleted += len(keys)
    writer.compact()


def _plan(revision: LiveRevision, manifest: Mapping[DocumentKey, str], view: SourcesView) -> Changes:
    return plan_changes(
        manifest, view.snapshots, configured=view.configured, frozen=view.held, refused=revision.refused_hashes()
    )


def _still_refused(refused: Mapping[DocumentKey, Refusal], view: SourcesView) -> dict[DocumentKey, Refusal]:
    """Return the refusals of documents that are still there in the version that was refused."""
    kept = {}
    for key, refusal in refused.items():
        snapshot = view.snapshots.get(key.source)
        entry = snapshot.documents.get(key.document_id) if snapshot else None
        if entry is not None and entry.content_hash == refusal.content_hash:
            kept[key] = refusal
    return kept


def _commit(
    writer: IndexWriter, records: Sequence[DocumentRecord], deletes: Sequence[DocumentKey]
) -> dict[DocumentKey, Refusal]:
    """Commit a batch; where the store refuses a document, commit the others one by one."""
    try:
        writer.commit(upserts=records, deletes=deletes)
    except (UnreadableDocumentError, UnusableVectorError) as error:
        if len(records) == 1:
            writer.commit(deletes=deletes)
            return {records[0].key: Refusal(records[0].content_hash, str(error))}
        refused: dict[DocumentKey, Refusal] = {}
        writer.commit(deletes=deletes)
        for record in records:
            refused |= _commit(writer, [record], [])
        return refused
    return {}


class _Deletions:
    """Which deletions go with which batch."""

    def __init__(self, changes: Changes, manifest: Mapping[DocumentKey, str], view: SourcesView) -> None:
        arriving = {view.snapshots[key.source].documents[key.document_id].content_hash for key in changes.added}
        self._now: list[DocumentKey] = []
        self._moved: dict[str, list[DocumentKey]] = defaultdict(list)
        for key in changes.deletes:
            content_hash = manifest[key]
            (self._moved[content_hash] if content_hash in arriving else self._now).append(key)

    def due_with(self, records: Sequence[DocumentRecord]) -> list[DocumentKey]:
        """Return what goes together with `records`."""
        moved = [key for record in records for key in self._moved.pop(record.content_hash, [])]
        due, self._now = [*self._now, *moved], []
        return due

    def rest(self) -> list[DocumentKey]:
        """Return what has not gone with any batch."""
        return [*self._now, *(key for keys in self._moved.values() for key in keys)]
