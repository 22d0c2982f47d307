"""Conditions: their types, their reasons, and how a new look at the world becomes a list of them.

One writer states everything that it knows in one go (`merged`): what it doesn't state is gone, so a
condition can't outlive its cause. `lastTransitionTime` moves only when the status flips, every
condition carries the generation it speaks of, and equal statements give equal lists: no write.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal

from tidegate_api.reasons import Reason as Reason
from tidegate_api.v1alpha1.common import Condition

Truth = Literal["True", "False", "Unknown"]

_MESSAGE_CHARACTERS = 1024


class ConditionType(StrEnum):
    """Closed set of condition types, in the order in which they are shown."""

    READY = "Ready"
    ACCEPTED = "Accepted"
    AVAILABLE = "Available"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    DEGRADED = "Degraded"
    REVISION_READY = "RevisionReady"
    ROLLOUT_COMPLETED = "RolloutCompleted"
    LANGUAGE_DRIFT = "LanguageDrift"
    IN_USE = "InUse"
    SESSIONS_NOT_SHARED = "SessionsNotShared"
    CONFLICTED = "Conflicted"


# Stated only while they are true, as kstatus expects; a False one is left out.
ONLY_WHEN_TRUE = frozenset(
    {
        ConditionType.RECONCILING,
        ConditionType.STALLED,
        ConditionType.DEGRADED,
        ConditionType.LANGUAGE_DRIFT,
        ConditionType.IN_USE,
        ConditionType.SESSIONS_NOT_SHARED,
        ConditionType.CONFLICTED,
    }
)
_ORDER: dict[str, int] = {condition_type: position for position, condition_type in enumerate(ConditionType)}


@dataclass(frozen=True, slots=True)
class Statement:
    """What a look at the world says. `message` is one sentence with the next action; no times, counters or random names."""

    type: ConditionType
    status: Truth
    reason: str
    message: str = ""


def timestamp(moment: datetime) -> str:
    """Return a moment as Kubernetes writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def set_condition(
    conditions: Sequence[Condition], statement: Statement, *, generation: int, now: datetime
) -> list[Condition]:
    """Return `conditions` with one of them stated anew and the others as they were."""
    previous = {condition.type: condition for condition in conditions}
    stated = _stated(statement, previous.get(statement.type), generation=generation, now=now)
    return _in_order([*(each for each in conditions if each.type != statement.type), stated])


def merged(
    conditions: Iterable[Condition], statements: Iterable[Statement], *, generation: int, now: datetime
) -> list[Condition]:
    """Return the conditions that `statements` make, given those of the last look."""
    previous = {condition.type: condition for condition in conditions}
    return _in_order(
        _stated(statement, previous.get(statement.type), generation=generation, now=now)
        for statement in statements
        if statement.status == "True" or statement.type not in ONLY_WHEN_TRUE
    )


def find(conditions: Iterable[Condition], condition_type: ConditionType) -> Condition | None:
    """Return the condition of a type, None where it is not stated."""
    return next((condition for condition in conditions if condition.type == condition_type), None)


def is_true(conditions: Iterable[Condition], condition_type: ConditionType) -> bool:
    """Return whether a condition is stated and true."""
    condition = find(conditions, condition_type)
    return condition is not None and condition.status == "True"


def _stated(statement: Statement, previous: Condition | None, *, generation: int, now: datetime) -> Condition:
    flipped = previous is None or previous.status != statement.status
    return Condition(
        type=statement.type.value,
        status=statement.status,
        reason=str(statement.reason),
        message=statement.message[:_MESSAGE_CHARACTERS],
        last_transition_time=timestamp(now) if flipped or previous is None else previous.last_transition_time,
        observed_generation=generation,
    )


def _in_order(conditions: Iterable[Condition]) -> list[Condition]:
    return sorted(conditions, key=lambda condition: (_ORDER.get(condition.type, len(_ORDER)), condition.type))
