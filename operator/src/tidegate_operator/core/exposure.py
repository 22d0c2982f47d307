"""Steps of a rollout: where it stands, what comes next and how many units the candidate serves.

A step is known by its name, so edits ahead of it take effect and edits behind it change nothing that
has happened. Exposure only grows: the share is the largest of all steps so far.
"""

from collections.abc import Sequence

from tidegate_api.v1alpha1.routingpolicy import Rule, Step


def position(steps: Sequence[Step], name: str) -> int | None:
    """Return where the step of that name stands, or None when it was removed."""
    return next((index for index, step in enumerate(steps) if step.name == name), None)


def share_at(steps: Sequence[Step], index: int, *, at_least: float = 0.0) -> float:
    """Return the candidate's share at a step; never less than what was reached before."""
    return max([at_least, *(step.percent or 0.0 for step in steps[: index + 1])])


def binds(rule: Rule, steps: Sequence[Step], index: int) -> bool:
    """Return whether a rule for the candidate binds at the step `index`: from its `from`, or from the start."""
    if rule.from_ is None:
        return True
    begin = position(steps, rule.from_)
    return begin is not None and index >= begin
