"""What an indexer tells: one immutable state, put together from its parts and replaced whole.

Sentences here hold no numbers that change from look to look, so that a reader may compare them. The
census waits until every source can be read: a part of the documents must not decide the language.
"""

from collections.abc import Mapping, Sequence

from tidegate_api.config import Census, DocumentFailure, IndexerConfig, IndexerState, SyncState
from tidegate_runtime.indexer.census import decide_language
from tidegate_runtime.indexer.live import LiveRevision, Tally
from tidegate_runtime.indexer.view import SourcesView

NAMED_FAILURES = 20


class Report:
    """Collects what is told."""

    def __init__(self, *, process: str, sync: SyncState) -> None:
        self.sync = sync
        self._obstacle, self._obstacle_reason = "", ""
        self._process = process
        self._config_hash = ""
        self._census: Census | None = None
        self._sources: list[str] = []

    def adopted(self, config: IndexerConfig) -> None:
        """Note which config is obeyed."""
        self._config_hash = config.config_hash()

    def stopped(self, message: str, *, reason: str = "") -> None:
        """Note what stops all work; empty = nothing does."""
        self._obstacle, self._obstacle_reason = message, reason

    def saw(self, view: SourcesView, *, unreadable: Mapping[str, str], revisions: Sequence[LiveRevision]) -> None:
        """Note what the sources hold and which documents fail."""
        self._sources = source_messages(view, unreadable)
        failures = all_failures(view, revisions)
        # After a restart what a revision refused is found again only by trying: until then no failure has gone.
        known = all(revision.compared for revision in revisions if revision.phase == "Ready")
        if known or len(failures) > self.sync.failed:
            self.sync = self.sync.model_copy(
                update={"failed": len(failures), "failures": failures[:NAMED_FAILURES]},
            )
        if view.readable:
            scripts = view.scripts()
            self._census = Census(
                language=decide_language(scripts), scripts=dict(sorted(scripts.items())), documents=view.documents
            )

    def finished(self, *, at: str, token: str | None, tally: Tally) -> None:
        """Note the end of a look; `token` is the sync token that it handled, None when a source was left out."""
        self.sync = self.sync.model_copy(
            update={
                "last_at": at,
                "last_handled": self.sync.last_handled if token is None else token,
                "added": tally.added,
                "changed": tally.changed,
                "deleted": tally.deleted,
            }
        )

    def state(self, revisions: Sequence[LiveRevision], *, config_problem: str) -> IndexerState:
        """Return what is told now."""
        messages = [message for message in (config_problem, self._obstacle, *self._sources) if message]
        return IndexerState(
            process=self._process,
            config_hash=self._config_hash,
            census=self._census,
            revisions=[revision.state() for revision in revisions],
            sync=self.sync,
            message="; ".join(messages),
            reason=self._obstacle_reason,
        )


def source_messages(view: SourcesView, unreadable: Mapping[str, str]) -> list[str]:
    """Return a sentence for every source that is not as it should be."""
    messages = []
    for source in view.config.sources:
        snapshot = view.snapshots.get(source.name)
        if source.name in unreadable:
            messages.append(f"{unreadable[source.name]}; what was indexed of it stays")
        elif source.name in view.held:
            messages.append(
                f"source {source.name!r} lists no document any more; what was indexed of it stays: "
                "put the documents back, or confirm the deletion with a new sync token (annotation tidegate.dev/sync)"
            )
        elif snapshot is not None and not snapshot.documents:
            messages.append(f"source {source.name!r} holds no document to index; add some, or correct its include")
    return messages


def all_failures(view: SourcesView, revisions: Sequence[LiveRevision]) -> list[DocumentFailure]:
    """Return every document that is not indexed as it stands in its source, once, in a fixed order."""
    failures: dict[str, DocumentFailure] = {}
    for name, snapshot in view.snapshots.items():
        for failure in snapshot.failures:
            named = failure.model_copy(update={"document": f"{name}/{failure.document}"})
            failures.setdefault(named.document, named)
    for revision in revisions:
        for failure in revision.failures(others=revisions):
            failures.setdefault(failure.document, failure)
    return [failures[document] for document in sorted(failures)]
