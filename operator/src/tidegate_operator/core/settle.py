"""The order of a pass, the same for every kind.

1. What decisions name is made first: objects named by their content, harmless if nobody comes to use
   them.
2. A status that differs in a decision is stored before anything else is done.
3. What status says is carried out.
4. A status that differs only in observations is stored.

Decisions come before actions, so nothing is done that is not stored. Observations come after actions,
so figures that change at every look cannot hold up the work.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tidegate_api.v1alpha1.common import ObjectMeta, Status
from tidegate_operator.core.kinds import Ref
from tidegate_operator.core.notes import transition_notes
from tidegate_operator.core.plan import Act, Action, Decide, Note, Plan, Reading, Rest


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a planner has found out: the status that is true now, and the work that it implies."""

    status: Status
    prepare: tuple[Action, ...] = ()
    actions: tuple[Action, ...] = ()
    notes: tuple[Note, ...] = ()
    rollbacks: tuple[str, ...] = ()
    wake_after_seconds: float | None = None
    readings: tuple[Reading, ...] = ()


def settle(
    ref: Ref, meta: ObjectMeta, before: Status, outcome: Outcome, *, decisions: Callable[[Status], object]
) -> Plan:
    """Return the one thing to do now."""
    if outcome.prepare:
        return Act(outcome.prepare)
    decide = Decide(
        ref=ref,
        uid=meta.uid,
        resource_version=meta.resource_version,
        status=outcome.status.to_document(),
        notes=(*outcome.notes, *transition_notes(before.conditions, outcome.status.conditions)),
        rollbacks=outcome.rollbacks,
    )
    if decisions(outcome.status) != decisions(before):
        return decide
    if outcome.actions:
        return Act(outcome.actions)
    if outcome.status != before:
        return decide
    return Rest(outcome.wake_after_seconds, outcome.readings)
