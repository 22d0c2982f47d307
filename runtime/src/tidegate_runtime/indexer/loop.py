"""The one loop: look at the sources, bring every revision in step, judge it, tell.

A pass is cut short between two batches when the config or a source changes, and begins again with
the revisions that serve; so an edit reaches them while a new one builds beside them. What cannot be
done now (a full volume, a missing model or source) is said in the state and tried again with growing
pauses; nothing of it stops the other revisions.
"""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from tidegate_api.config import IndexerConfig, IndexerState
from tidegate_runtime.errors import (
    ModelUnavailableError,
    RevisionUnavailableError,
    StateVersionError,
    StoreFullError,
)
from tidegate_runtime.indexer.catching_up import Hooks, Outcome, catch_up
from tidegate_runtime.indexer.changes import next_holds
from tidegate_runtime.indexer.clock import Clock
from tidegate_runtime.indexer.config_source import ConfigSource
from tidegate_runtime.indexer.live import LiveRevision, Tally
from tidegate_runtime.indexer.readiness import Judge
from tidegate_runtime.indexer.report import Report
from tidegate_runtime.indexer.revisions import RevisionStore
from tidegate_runtime.indexer.roster import Roster
from tidegate_runtime.indexer.schedule import Backoff
from tidegate_runtime.indexer.stopping import StoppedError, StopSign
from tidegate_runtime.indexer.view import SourcesView
from tidegate_runtime.indexer.watching import SourceWatch
from tidegate_runtime.indexer.work import OpenEmbedder, Workshop

POLL_SECONDS = 0.25
# What stops one revision, or all of them, for a while; everything else is a mistake of ours and ends the process.
_OBSTACLES = (StoreFullError, ModelUnavailableError, RevisionUnavailableError, StateVersionError)

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the loop works with; put together by the composition root."""

    configs: ConfigSource
    sources: SourceWatch
    store: RevisionStore
    roster: Roster
    open_embedder: OpenEmbedder
    clock: Clock
    stop: StopSign = field(default_factory=StopSign)


class IndexLoop:
    """Makes true what the config says. `tick` and `run` belong to one thread; `publish` is called from it."""

    def __init__(self, parts: Parts, *, report: Report, publish: Callable[[IndexerState], None]) -> None:
        self._parts = parts
        self._report = report
        self._publish = publish
        self._judge = Judge(parts.store, now=parts.clock.now)
        self._hooks = Hooks(interrupted=self._interrupted, progressed=self._tell)
        self._seen: IndexerConfig | None = None
        self._adopted: IndexerConfig | None = None
        self._unfinished = False
        self._backoff = Backoff()
        self._pause_until = 0.0

    def run(self) -> None:
        """Work until told to stop, then release every revision."""
        stop = self._parts.stop
        self._tell()
        try:
            while not stop.is_set():
                self.tick()
                stop.wait(POLL_SECONDS)
        except StoppedError:
            _logger.info("stopped before the batch in hand was committed; the next start makes it again")
        finally:
            self.close()

    def close(self) -> None:
        """Release every revision."""
        self._parts.roster.close()

    def tick(self) -> None:
        """Do what is due now."""
        config = self._parts.configs.read()
        is_new, self._seen = config is not self._seen, config
        if config is not None and (is_new or self._now() >= self._pause_until):
            try:
                self._work(config)
            except _OBSTACLES as error:
                _logger.warning("all work is stopped", extra={"reason": str(error)})
                self._pause_until = self._now() + self._backoff.failed()
                self._report.stopped(str(error), reason=error.reason)
                self._unfinished = True
            else:
                self._backoff.succeeded()
                self._report.stopped("")
        self._tell()

    def _work(self, config: IndexerConfig) -> None:
        if config is not self._adopted:
            self._parts.roster.adopt(config)
            self._parts.sources.adopt(config)
            self._report.adopted(config)
            for revision in self._parts.roster.in_order():
                revision.retry_at = None
            self._adopted, self._unfinished = config, True
        look = self._parts.sources.look(config)
        if self._unfinished or look.changed or self._retry_due():
            self._pass(config)
        elif look.refreshed:
            self._report.finished(at=self._parts.clock.now(), token=None, tally=Tally())

    def _pass(self, config: IndexerConfig) -> None:
        self._unfinished = False
        revisions = self._parts.roster.in_order()
        for revision in revisions:
            self._attempt(revision, self._open)
        view = self._view(config)
        self._note(view)
        outcomes = set()
        for revision in self._parts.roster.in_order():
            outcomes.add(self._attempt(revision, lambda revision: self._advance(revision, view)))
            self._note(view)
            if Outcome.INTERRUPTED in outcomes:
                break
        self._end(view, outcomes)

    def _view(self, config: IndexerConfig) -> SourcesView:
        roster, snapshots = self._parts.roster, self._parts.sources.snapshots
        holds = roster.kept.holds
        if holds or not all(snapshot.documents for snapshot in snapshots.values()):
            holds = next_holds(holds, snapshots, indexed=roster.indexed_sources(), sync=config.sync)
            # Written before anything is deleted: a restart must not take the present token for a confirmation.
            roster.remember_holds(holds)
        return SourcesView.of(config, snapshots=snapshots, holds=holds)

    def _attempt(self, revision: LiveRevision, work: Callable[[LiveRevision], Outcome]) -> Outcome:
        """Work on a revision; what stops it is told with it and tried again later."""
        if revision.retry_at is not None:
            if revision.retry_at > self._now():
                return Outcome.BLOCKED
            revision.retry_at = None
        try:
            return work(revision)
        except _OBSTACLES as error:
            _logger.warning("revision stopped", extra={"revision": revision.name, "reason": str(error)})
            if revision.writer is None and not isinstance(error, StoreFullError):
                revision.phase = "Failed"
            revision.tell(str(error), reason=error.reason)
            revision.retry_at = self._now() + revision.backoff.failed()
            return Outcome.BLOCKED

    def _open(self, revision: LiveRevision) -> Outcome:
        self._parts.roster.writer(revision)
        return Outcome.AGREES

    def _advance(self, revision: LiveRevision, view: SourcesView) -> Outcome:
        parts = self._parts
        writer = parts.roster.writer(revision)
        workshop = Workshop(revision.config.shape, load=parts.sources.load, open_embedder=parts.open_embedder)
        outcome = catch_up(revision, writer, view, workshop=workshop, hooks=self._hooks)
        if outcome is Outcome.AGREES:
            revision.compared = True
            self._judge.settle(revision, writer, view, embedder=workshop.embedder)
            parts.roster.remember_ready(revision)
            if revision.phase == "Failed":
                revision.retry_at = self._now() + revision.backoff.failed()
            else:
                revision.backoff.succeeded()
        return outcome

    def _interrupted(self) -> bool:
        config = self._parts.configs.read()
        if self._parts.stop.is_set() or config is None or config is not self._adopted:
            return True
        return self._parts.sources.look(config).changed

    def _end(self, view: SourcesView, outcomes: Collection[Outcome]) -> None:
        if Outcome.INTERRUPTED in outcomes:
            self._unfinished = True
        if Outcome.BEHIND in outcomes:
            self._unfinished = True
            self._parts.sources.all_due()
        if not set(outcomes) <= {Outcome.AGREES}:
            return
        roster = self._parts.roster
        lead = roster.lead()
        tally = lead.tally if lead else Tally()
        self._report.finished(
            at=self._parts.clock.now(), token=view.config.sync if view.readable else None, tally=tally
        )
        counts = {"added": tally.added, "changed": tally.changed, "deleted": tally.deleted}
        _logger.info("in step", extra=counts)
        for revision in roster.in_order():
            revision.tally = Tally()
        roster.remember_sync(self._report.sync)

    def _note(self, view: SourcesView) -> None:
        self._report.saw(view, unreadable=self._parts.sources.unreadable, revisions=self._parts.roster.in_order())
        self._tell()

    def _tell(self) -> None:
        problem = self._parts.configs.problem
        self._publish(self._report.state(self._parts.roster.in_order(), config_problem=problem))

    def _now(self) -> float:
        return self._parts.clock.monotonic()

    def _retry_due(self) -> bool:
        now = self._now()
        return any(r.retry_at is not None and r.retry_at <= now for r in self._parts.roster.in_order())
