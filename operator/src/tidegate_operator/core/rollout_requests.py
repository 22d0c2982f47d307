"""What a person's request does to a rollout. Each is carried out once; a refusal says what to do instead."""

from dataclasses import dataclass
from datetime import datetime

from tidegate_api.v1alpha1.common import RequestOutcome
from tidegate_api.v1alpha1.retrievalpipeline import RolloutStatus
from tidegate_operator.core.plan import Note
from tidegate_operator.core.rejection import rejection_of
from tidegate_operator.core.requests import Request
from tidegate_operator.core.rollout import (
    ROLLED_BACK,
    Phase,
    RolloutFacts,
    held_back,
    next_step,
    reject,
    rollback_target,
    serve,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The state after a request, its outcome, and what to tell about it."""

    state: RolloutStatus
    outcome: RequestOutcome
    notes: tuple[Note, ...] = ()


def answer(request: Request, state: RolloutStatus, facts: RolloutFacts, now: datetime) -> Answer:
    """Carry out a request, or refuse it."""
    if request.refusal:
        return _refuse(request, state, request.refusal, now)
    match request.verb:
        case "rollback":
            return _roll_back(request, state, facts, now)
        case "abort":
            return _abort(request, state, facts, now)
        case "promote":
            return _promote(request, state, facts, now)
        case "retry":
            return _retry(request, state, facts, now)
        case _:
            return _refuse(request, state, f"verb {request.verb!r} is unknown", now)


def _roll_back(request: Request, state: RolloutStatus, facts: RolloutFacts, now: datetime) -> Answer:
    if state.candidate and state.phase != Phase.ROLLING_BACK and request.to in ("", state.stable):
        return _abort(request, state, facts, now)
    if state.stable not in facts.releases:
        return _refuse(request, state, "no release serves that could be taken back", now)
    target = request.to or rollback_target(state, facts)
    if not target:
        return _refuse(request, state, "no earlier release is there to go back to; change the spec instead", now)
    if target not in facts.releases:
        return _refuse(request, state, f"{target} does not exist; choose one of status.releases", now)
    if target == state.stable:
        return _refuse(request, state, f"{target} serves already", now)
    bad, good = facts.releases[state.stable], facts.releases[target]
    reason = request.reason or "rolled back on request"
    allowed = [entry for entry in state.rejected if rejection_of(good, [entry]) is None]
    rejected = reject(state.model_copy(update={"rejected": allowed}), bad, good, now, reason=reason)
    if target in facts.warm:
        moved = held_back(serve(rejected, target, now, how=ROLLED_BACK, by=request.by, reason=reason), facts, now)
        message = f"{target} serves again instead of {state.stable}"
        return _done(request, moved, message, now, note=Note("Warning", "RolledBack", message))
    moved = rejected.model_copy(update={"candidate": target, "phase": str(Phase.ROLLING_BACK)})
    until = f"{state.stable} serves until then"
    if facts.replaces and good.deployment != bad.deployment:
        until = f"update: Replace stops the pods of {state.stable} first, so there are no answers until then"
    message = f"{target} is cold: it serves again as soon as its pods are warm; {until}"
    return _done(request, moved, message, now, note=Note("Warning", "RollingBack", message))


def _abort(request: Request, state: RolloutStatus, facts: RolloutFacts, now: datetime) -> Answer:
    candidate, stable = facts.releases.get(state.candidate), facts.releases.get(state.stable)
    if state.phase == Phase.ROLLING_BACK:
        return _refuse(request, state, "a rollback is under way; roll back to another release instead", now)
    if candidate is None or stable is None:
        return _refuse(request, state, "no rollout is under way", now)
    moved = reject(state, candidate, stable, now, reason=request.reason or f"{request.verb} on request")
    message = f"{candidate.name} was given up; {stable.name} serves"
    reason = "RolledBack" if request.verb == "rollback" else "RolloutAborted"
    return _done(request, moved, message, now, note=Note("Warning", reason, message))


def _promote(request: Request, state: RolloutStatus, facts: RolloutFacts, now: datetime) -> Answer:
    if state.phase != Phase.PAUSED or not state.candidate:
        return _refuse(request, state, "nothing waits for a person", now)
    if state.candidate not in facts.warm:
        return _refuse(request, state, f"{state.candidate} is not warm on every pod; ask again when it is", now)
    moved = next_step(state, facts, now)
    message = f"{state.candidate} goes on" if moved.state.candidate == state.candidate else f"{state.candidate} serves"
    outcome = request.outcome("done", message, now)
    return Answer(moved.state, outcome, moved.notes)


def _retry(request: Request, state: RolloutStatus, facts: RolloutFacts, now: datetime) -> Answer:
    asked = facts.releases.get(facts.desired)
    kept = [entry for entry in state.rejected if asked is None or rejection_of(asked, [entry]) is None]
    if len(kept) == len(state.rejected):
        return _refuse(request, state, "nothing that the spec asks for is rejected", now)
    moved = state.model_copy(update={"rejected": kept, "phase": str(Phase.IDLE)})
    return _done(request, moved, f"{facts.desired} is tried again", now)


def _done(request: Request, state: RolloutStatus, message: str, now: datetime, *, note: Note | None = None) -> Answer:
    notes = (note or Note("Normal", "RequestDone", f"{request.verb}: {message}"),)
    return Answer(state, request.outcome("done", message, now), notes)


def _refuse(request: Request, state: RolloutStatus, message: str, now: datetime) -> Answer:
    note = Note("Warning", "RequestRefused", f"{request.verb or 'request'}: {message}")
    return Answer(state, request.outcome("refused", message, now), (note,))
