"""Steps of a rollout: where it stands, what comes next and how many units the candidate serves.

A step is known by its name, so edits ahead of it take effect and edits behind it change nothing that
has happened. Exposure only grows: the share is the largest of all steps so far.
"""

from collections.abc import Sequence

from tidegate_api.v1alpha1.common import StepStatus
from tidegate_api.v1alpha1.routingpolicy import Step


def position(steps: Sequence[Step], name: str) -> int | None:
    """Return where the step of that name stands, or None when it was removed."""
    return next((index for index, step in enumerate(steps) if step.name == name), None)


def share_at(steps: Sequence[Step], index: int, *, at_least: float = 0.0) -> float:
    """Return the candidate's share at a step; never less than what was reached before."""
    return max([at_least, *(step.percent or 0.0 for step in steps[: index + 1])])


def begun(steps: Sequence[Step], present: StepStatus | None) -> frozenset[str]:
    """Return the names of the steps that have begun. One that was removed had begun with all that share no more."""
    if present is None:
        return frozenset()
    here = position(steps, present.name)
    earlier = (
        steps[: here + 1]
        if here is not None
        else [step for step in steps if step.percent is not None and step.percent <= present.share]
    )
    return frozenset({present.name, *(step.name for step in earlier)})
