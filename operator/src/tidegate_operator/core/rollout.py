"""Which release serves and which one comes next: one state, moved one transition at a time.

The state is `status.rollout` of the pipeline. Each transition is decided here from that state and the
facts, stored, and only then carried out by the routing table; so a process that dies resumes, and a
second operator cannot decide again. The chain of transitions is in order of precedence: a rollback
under way, then what needs no candidate, then what changes it, then its progress.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from tidegate_api.conditions import timestamp
from tidegate_api.config import ReleaseConfig
from tidegate_api.v1alpha1.common import HistoryEntry, StepStatus
from tidegate_api.v1alpha1.retrievalpipeline import Rejection, RolloutStatus
from tidegate_api.v1alpha1.routingpolicy import Step
from tidegate_operator.core.exposure import position, share_at
from tidegate_operator.core.plan import Note
from tidegate_operator.core.rejection import difference, only_indexes_differ, rejection_of

HISTORY_KEPT = 20
REJECTIONS_KEPT = 20
# How a release stopped serving, as its entry in the history says.
ROLLED_BACK = "rolledBack"


class Phase(StrEnum):
    """Phases of a rollout."""

    IDLE = "Idle"
    PREPARING = "Preparing"
    PROGRESSING = "Progressing"
    PAUSED = "Paused"
    ROLLING_BACK = "RollingBack"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class RolloutFacts:
    """What is true of releases and pods at this moment."""

    desired: str  # empty while the spec asks for nothing that could be made
    releases: Mapping[str, ReleaseConfig]  # by name: those that exist, and the desired one
    warm: frozenset[str] = frozenset()  # could serve all traffic at once
    acknowledged: bool = False  # every pod obeys the table that the present state was written as
    has_policy: bool = False
    steps: tuple[Step, ...] = ()
    may_start: bool = True  # False: requirePolicy, and there is none
    replaces: bool = False  # `update: Replace`: pods of one Deployment hold what those of another need
    window_releases: int = 1
    window: timedelta = field(default=timedelta(hours=2))


@dataclass(frozen=True, slots=True)
class Advance:
    """The state after at most one transition, and what to tell about it."""

    state: RolloutStatus
    notes: tuple[Note, ...] = ()


Transition = Callable[[RolloutStatus, RolloutFacts, datetime], Advance | None]


def advance(state: RolloutStatus, facts: RolloutFacts, now: datetime) -> Advance:
    """Return the state after the first transition that applies; the same state when none does."""
    for transition in _TRANSITIONS:
        moved = transition(state, facts, now)
        if moved is not None:
            return moved
    return Advance(state)


def in_window(state: RolloutStatus, facts: RolloutFacts, now: datetime) -> tuple[str, ...]:
    """Return the earlier releases that are kept warm so that going back takes no time, newest first."""
    kept: list[str] = []
    for entry in state.history:
        earlier = entry.until is not None and now - datetime.fromisoformat(entry.until) <= facts.window
        if not earlier or entry.release in (state.stable, *kept) or entry.release not in facts.releases:
            continue
        if rejection_of(facts.releases[entry.release], state.rejected) is None:
            kept.append(entry.release)
    return tuple(kept[: facts.window_releases])


def rollback_target(state: RolloutStatus, facts: RolloutFacts) -> str:
    """Return the last other release that served, still exists and was not rejected; empty when there is none."""
    for entry in state.history:
        known = facts.releases.get(entry.release)
        if known is not None and entry.release != state.stable and rejection_of(known, state.rejected) is None:
            return entry.release
    return ""


def one_at_a_time(facts: RolloutFacts) -> bool:
    """Return whether pods of only one Deployment run: they replace each other, and no step leaves two to serve."""
    return facts.replaces and all(step.percent == 100 for step in facts.steps)


def replaces_stable(state: RolloutStatus, facts: RolloutFacts) -> bool:
    """Return whether the candidate takes the place of what serves, which must be gone before it can start.

    Only where all traffic moves at once. A candidate that gets a share needs stable beside it: stopping
    stable would take the other share's answers away until somebody promotes.
    """
    if state.phase == Phase.ROLLING_BACK:
        return facts.replaces
    return one_at_a_time(facts) and (state.step is None or state.step.share == 100)


# --- building blocks, also used by requests --------------------------------------------------------


def serve(
    state: RolloutStatus, release: str, now: datetime, *, how: str = "promoted", by: str = "", reason: str = ""
) -> RolloutStatus:
    """Return the state in which `release` is stable; the one before stopped serving in the way of `how`."""
    stamp = timestamp(now)
    history = [
        entry.model_copy(update={"until": stamp, "how": how, "by": by, "reason": reason})
        if entry.until is None
        else entry
        for entry in state.history
    ]
    begun = HistoryEntry(release=release, from_=stamp)
    following = state.queued if state.queued != release else ""
    return state.model_copy(
        update={
            "stable": release,
            "candidate": following,
            "queued": "",
            "phase": str(Phase.PREPARING if following else Phase.IDLE),
            "step": None,
            "history": [begun, *history][:HISTORY_KEPT],
        }
    )


def reject(
    state: RolloutStatus, release: ReleaseConfig, against: ReleaseConfig, now: datetime, *, reason: str
) -> RolloutStatus:
    """Return the state in which what `release` changed is rejected, and no candidate is left."""
    entry = Rejection(release=release.name, changed=difference(release, against), reason=reason, at=timestamp(now))
    others = [rejection for rejection in state.rejected if rejection.release != release.name]
    return state.model_copy(
        update={
            "candidate": "",
            "queued": "",
            "phase": str(Phase.FAILED),
            "step": None,
            "rejected": [entry, *others][:REJECTIONS_KEPT],
        }
    )


def held_back(state: RolloutStatus, facts: RolloutFacts, now: datetime) -> RolloutStatus:
    """Return the state with the phase that a rejected wish gives it, so that no second decision delays the table."""
    moved = _asked_is_rejected(state, facts, now) if facts.desired else None
    return moved.state if moved is not None else state


def next_step(state: RolloutStatus, facts: RolloutFacts, now: datetime) -> Advance:
    """Return the state at the step after the present one; after the last one the candidate serves."""
    reached = state.step.share if state.step is not None else 0.0
    index = 0
    if state.step is not None:
        here = position(facts.steps, state.step.name)
        ahead = (i for i, step in enumerate(facts.steps) if (step.percent or 0.0) > reached)
        index = here + 1 if here is not None else next(ahead, len(facts.steps))
    if index >= len(facts.steps):
        return promote(state, now)
    step = facts.steps[index]
    phase = Phase.PAUSED if step.pause is not None else Phase.PROGRESSING
    entered = StepStatus(name=step.name, since=timestamp(now), share=share_at(facts.steps, index, at_least=reached))
    moved = state.model_copy(update={"step": entered, "phase": str(phase)})
    if phase is Phase.PAUSED:
        note = Note(
            "Normal", "RolloutPaused", f"{state.candidate} waits at step {step.name} until somebody promotes it"
        )
    else:
        note = Note("Normal", "RolloutStep", f"{state.candidate} is at step {step.name}")
    return Advance(moved, (note,))


def promote(state: RolloutStatus, now: datetime) -> Advance:
    """Return the state in which the candidate serves everybody."""
    note = Note("Normal", "ReleaseServes", f"{state.candidate} serves")
    return Advance(serve(state, state.candidate, now), (note,))


# --- transitions ----------------------------------------------------------------------------------


def _finish_rollback(state: RolloutStatus, facts: RolloutFacts, now: datetime) -> Advance | None:
    """A rollback to a cold release switches when it is warm; nothing else moves before."""
    if state.phase != Phase.ROLLING_BACK:
        return None
    if state.candidate not in facts.warm:
        return Advance(state)
    note = Note("Warning", "RolledBack", f"{state.candidate} serves again instead of {state.stable}")
    return Advance(serve(state, state.candidate, now, how=ROLLED_BACK), (note,))


def _nothing_asked(state: RolloutStatus, facts: RolloutFacts, now: datetime) -> Advance | None:
    """While there is no desired release, a candidate that exists goes on."""
    return _progress(state, facts, now) or Advance(state) if not facts.desired else None


def _asked_is_stable(state: RolloutStatus, facts: RolloutFacts, _: datetime) -> Advance | None:
    """The spec asks for what serves: any candidate is given up, cleanly."""
    if facts.desired != state.stable:
        return None
    if not state.candidate and not state.queued and state.phase == Phase.IDLE:
        return Advance(state)
    settled = state.model_copy(update={"candidate": "", "queued": "", "step": None, "phase": str(Phase.IDLE)})
    if not state.candidate:
        return Advance(settled)
    note = Note(
        "Normal", "RolloutCancelled", f"{state.candidate} is no longer asked for; {state.stable} goes on serving"
    )
    return Advance(settled, (note,))


def _asked_is_rejected(state: RolloutStatus, facts: RolloutFacts, _: datetime) -> Advance | None:
    """What was rejected does not come back until its content changes or somebody says retry."""
    if rejection_of(facts.releases[facts.desired], state.rejected) is None:
        return None
    held = {"candidate": "", "queued": "", "step": None, "phase": str(Phase.FAILED)}
    return Advance(state.model_copy(update=held))


def _policy_is_gone(state: RolloutStatus, facts: RolloutFacts, now: datetime) -> Advance | None:
    """A policy that is deleted in mid-rollout takes the rollout with it."""
    if facts.has_policy or state.step is None or state.candidate not in facts.releases:
        return None
    reason = "its RoutingPolicy was deleted in mid-rollout"
    rejected = reject(state, facts.releases[state.candidate], facts.releases[state.stable], now, reason=reason)
    return Advance(rejected, (Note("Warning", "RolloutAborted", f"{state.candidate} was given up: {reason}"),))


def _asked_is_waiting_to_return(state: RolloutStatus, facts: RolloutFacts, now: datetime) -> Advance | None:
    """Express lane: an earlier, good release that is still warm serves at once.

    One that was rolled back is not good because somebody says retry: it earns its traffic anew.
    """
    if facts.desired not in facts.warm or facts.desired not in in_window(state, facts, now):
        return None
    if next(entry.how for entry in state.history if entry.release == facts.desired) == ROLLED_BACK:
        return None
    note = Note("Normal", "ReleaseServes", f"{facts.desired} serves again; it was still warm")
    restored = state.model_copy(update={"queued": ""})
    return Advance(
        serve(restored, facts.desired, now, how="promoted", reason="an earlier release was asked for"), (note,)
    )


def _asked_is_new(state: RolloutStatus, facts: RolloutFacts, _: datetime) -> Advance | None:
    """Another release is asked for: it replaces the candidate, or queues behind one that is being tried."""
    if facts.desired == state.candidate:
        return Advance(state.model_copy(update={"queued": ""})) if state.queued else None
    if facts.desired == state.queued:
        return None
    tried = facts.releases.get(state.candidate) if state.step is not None else None
    if tried is not None and only_indexes_differ(facts.releases[facts.desired], tried):
        return Advance(state.model_copy(update={"queued": facts.desired}))
    if not facts.may_start:
        return Advance(state)
    fresh = {"candidate": facts.desired, "queued": "", "step": None, "phase": str(Phase.PREPARING)}
    note = Note("Normal", "ReleaseMade", f"{facts.desired} is being prepared")
    return Advance(state.model_copy(update=fresh), (note,))


def _progress(state: RolloutStatus, facts: RolloutFacts, now: datetime) -> Advance | None:
    """A warm candidate moves on; before it is warm nobody is sent to it."""
    if not state.candidate or state.candidate not in facts.warm:
        return None
    if not state.stable or (not facts.steps and state.step is None):
        return promote(state, now)
    if state.step is None:
        return next_step(state, facts, now)
    here = position(facts.steps, state.step.name)
    if here is None or facts.steps[here].pause is not None:
        return None if state.phase == Phase.PAUSED else Advance(state.model_copy(update={"phase": str(Phase.PAUSED)}))
    return next_step(state, facts, now) if facts.acknowledged else None


_TRANSITIONS: tuple[Transition, ...] = (
    _finish_rollback,
    _policy_is_gone,
    _nothing_asked,
    _asked_is_stable,
    _asked_is_rejected,
    _asked_is_waiting_to_return,
    _asked_is_new,
    _progress,
)
