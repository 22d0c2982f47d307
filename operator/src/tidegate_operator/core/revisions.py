"""Index revisions of one knowledge base: which should exist, which is wanted, which may go.

A revision goes in two phases: `Retiring` is stored first, so that nobody chooses it any more, and only
after a pause, with the references listed again, is it dropped. A reference that appears meanwhile
brings it back. What is desired, what is the newest built one and what a release refers to always stays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tidegate_api.config import IndexerState, RevisionConfig
from tidegate_api.shape import Language
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseSpec, RevisionStatus
from tidegate_operator.core.desired import revision_shape

RETIRING = "Retiring"
READY = "Ready"
_LANGUAGES: tuple[Language, ...] = ("en", "zh", "multi")


def language_of(spec: KnowledgeBaseSpec, *, recorded: str, indexer: IndexerState | None) -> Language | None:
    """Return the language: as asked for; else as recorded; else as the indexer's census decides it, once."""
    return settled_language(spec, recorded=recorded) or _found(indexer)


def settled_language(spec: KnowledgeBaseSpec, *, recorded: str) -> Language | None:
    """Return the language that may be built upon: one that was found out is recorded first."""
    if spec.language != "auto":
        return spec.language
    return next((language for language in _LANGUAGES if language == recorded), None)


def _found(indexer: IndexerState | None) -> Language | None:
    return indexer.census.language if indexer is not None and indexer.census is not None else None


def wanted_revision(name: str, spec: KnowledgeBaseSpec, language: Language) -> RevisionConfig:
    """Return the revision that a spec asks for."""
    shape = revision_shape(spec, language)
    return RevisionConfig(name=shape.revision_name(name), shape=shape)


def newest_built(revisions: Sequence[RevisionStatus], *, desired: str, before: str) -> str:
    """Return the newest revision that is built: the desired one, else the same as before, else the latest to be ready."""
    ready = {revision.name: revision for revision in revisions if revision.phase == READY}
    for name in (desired, before):
        if name in ready:
            return name
    return max(ready.values(), key=lambda each: (each.ready_at or "", each.name)).name if ready else ""


@dataclass(frozen=True, slots=True)
class Retention:
    """What may go: `retire` is to be marked now, `drop` has been marked long enough."""

    retire: frozenset[str]
    drop: frozenset[str]


def retention(
    revisions: Sequence[RevisionStatus],
    *,
    keep: frozenset[str],
    references: Mapping[str, tuple[str, ...]],
    limit: int,
    now: datetime,
    pause: timedelta,
) -> Retention:
    """Return what may go, newest kept first. `keep` are the desired and the newest built revision.

    A revision that never was built and is not desired is of no use to anybody and is no history.
    """
    loose = [each for each in revisions if each.name not in keep and not references.get(each.name)]
    useful = sorted(
        (each for each in loose if each.ready_at is not None and each.phase != "Failed"), key=_age, reverse=True
    )
    kept = {each.name for each in useful[:limit]}
    going = [each for each in loose if each.name not in kept]
    return Retention(
        retire=frozenset(each.name for each in going),
        drop=frozenset(each.name for each in going if _retired_for(each, now) >= pause),
    )


def _age(revision: RevisionStatus) -> tuple[str, str]:
    return revision.created_at or "", revision.name


def _retired_for(revision: RevisionStatus, now: datetime) -> timedelta:
    if revision.phase != RETIRING or revision.retiring_since is None:
        return timedelta(seconds=-1)
    return now - datetime.fromisoformat(revision.retiring_since)
