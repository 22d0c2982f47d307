"""Events for transitions of conditions: when something turns bad, and when it is well again.

Never one for progress or a retry: the API server drops what is too much, and the decisive one must
not be among that.
"""

from collections.abc import Iterator, Sequence

from tidegate_api.conditions import ConditionType, find
from tidegate_api.v1alpha1.common import Condition
from tidegate_operator.core.plan import Note

_BAD_WHEN_TRUE = (ConditionType.STALLED, ConditionType.DEGRADED, ConditionType.LANGUAGE_DRIFT, ConditionType.CONFLICTED)


def transition_notes(before: Sequence[Condition], after: Sequence[Condition]) -> tuple[Note, ...]:
    """Return what to tell about the change from one list of conditions to the next."""
    return tuple(_notes(before, after))


def _notes(before: Sequence[Condition], after: Sequence[Condition]) -> Iterator[Note]:
    for kind in _BAD_WHEN_TRUE:
        old, new = find(before, kind), find(after, kind)
        if new is not None and (old is None or old.reason != new.reason):
            yield Note("Warning", new.reason, new.message)
    ready, was = find(after, ConditionType.READY), find(before, ConditionType.READY)
    if ready is not None and ready.status == "True" and (was is None or was.status != "True"):
        yield Note("Normal", "Ready", ready.message or "in force")
