"""What is wrong with a manifest, said so that the reader can mend it: field, value, next step.

Used by the offline check of the schema, by the checks of graphs and policies that CEL can't express,
and by whoever shows them: a condition's message, a line of `tidegate local`.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass

_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong. `path` is written as in `spec.sources[0].from`."""

    path: str
    message: str

    def __str__(self) -> str:
        """Return the line that a user reads."""
        return f"{self.path}: {self.message}"


def shown(value: object) -> str:
    """Return `value` as it is quoted in a message: JSON, cut so that it stays readable."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    unit = f"({len(value)} characters)" if isinstance(value, str) else ""
    return f"{text[:_SHOWN_CHARACTERS]}…{unit}"


def listed(names: Iterable[str]) -> str:
    """Return names as they are listed in a message, in order: `a, b and c`."""
    ordered = sorted(names)
    if len(ordered) < 2:
        return "".join(ordered) or "none"
    return f"{', '.join(ordered[:-1])} and {ordered[-1]}"
