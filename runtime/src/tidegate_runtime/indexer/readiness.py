"""Judges a revision that agrees with its sources: ready or not, and with which legs.

Ready is never taken back for a reason that lies in the sources: what was proven goes on serving and
the state says what is wrong. The dense leg follows the content: a revision whose chunks its encoder
cannot read has none, whatever came first.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from tidegate_runtime.indexer.live import LiveRevision
from tidegate_runtime.indexer.proof import prove
from tidegate_runtime.indexer.revisions import RevisionStore
from tidegate_runtime.indexer.view import SourcesView
from tidegate_runtime.ports import Embedder, IndexWriter

_logger = logging.getLogger(__name__)

LANGUAGE_MISMATCH = (
    "EmbedderLanguageMismatch: too many chunks are in a language that the encoder does not know, so there is no "
    "dense leg; set embedding.model to auto or to a multilingual model"
)
_WAITS = "waits until every source can be read and no deletion is held back"
_NOTHING = "no document could be indexed; see the failures of the last look"


@dataclass(frozen=True, slots=True)
class Judge:
    """Decides over revisions of one store. `now` gives the date to write down."""

    store: RevisionStore
    now: Callable[[], str]

    def settle(
        self, revision: LiveRevision, writer: IndexWriter, view: SourcesView, *, embedder: Callable[[], Embedder]
    ) -> None:
        """Judge a revision; what is found is written into it and, when it is good, into the store.

        Raises:
            StoreFullError: the volume has no room for the verdict.
            ModelUnavailableError: the proof needs the encoder and it cannot be opened.
        """
        serves = revision.phase == "Ready"
        if not view.complete and not serves:
            revision.phase = "Pending"
            revision.tell(_WAITS)
            return
        self._count_foreign_chunks(revision, writer)
        message = LANGUAGE_MISMATCH if revision.mismatch else ""
        if serves and revision.dense is not revision.mismatch:
            revision.tell(message)
            return
        problem = self._problem(revision, writer, view, embedder=None if revision.mismatch else embedder)
        if problem:
            revision.phase = "Ready" if serves else "Failed"
            revision.tell(problem)
            return
        writer.mark_ready(dense=not revision.mismatch)
        _logger.info("revision ready", extra={"revision": revision.name, "dense": not revision.mismatch})
        revision.phase, revision.dense = "Ready", not revision.mismatch
        revision.tell(message)
        revision.ready_at = revision.ready_at or self.now()

    def _count_foreign_chunks(self, revision: LiveRevision, writer: IndexWriter) -> None:
        generation = writer.stats().content_generation
        if revision.counted_generation != generation:
            revision.mismatch = revision.foreign.too_many(
                writer.documents(), stored=lambda: self.store.inspect(revision.name).contents()
            )
            revision.counted_generation = generation

    def _problem(
        self,
        revision: LiveRevision,
        writer: IndexWriter,
        view: SourcesView,
        *,
        embedder: Callable[[], Embedder] | None,
    ) -> str | None:
        stats = writer.stats()
        failing = revision.refused or any(snapshot.failures for snapshot in view.snapshots.values())
        if not stats.documents and failing:
            return _NOTHING
        opened = embedder() if embedder is not None and stats.chunks else None
        inspection, language = self.store.inspect(revision.name), revision.config.shape.language
        return prove(inspection, language=language, embedder=opened, chunks=stats.chunks)
