"""Predicates in chains: the first that finds bad news decides. Each reads the world and nothing else."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from tidegate_api.conditions import Reason
from tidegate_api.violation import Violation
from tidegate_operator.core.observed import Refusal

World = TypeVar("World")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why something is not as it should be: a reason for machines, one sentence with the next step for people."""

    reason: str
    message: str


def first_verdict(predicates: Iterable[Callable[[World], Verdict | None]], world: World) -> Verdict | None:
    """Return the first bad news, or None when all is well."""
    for predicate in predicates:
        verdict = predicate(world)
        if verdict is not None:
            return verdict
    return None


def of_violations(violations: Iterable[Violation]) -> Verdict | None:
    """Return a verdict that names everything that is wrong with a spec, so that it is mended in one go."""
    found = list(violations)
    if not found:
        return None
    return Verdict(_reason(found[0]), "; ".join(str(violation) for violation in found))


def of_refusals(refusals: Iterable[Refusal]) -> Verdict | None:
    """Return a verdict on the first object that the API server refused."""
    for refusal in refusals:
        return Verdict(Reason.REFUSED_BY_API_SERVER, f"{refusal.ref} was refused: {refusal.message}")
    return None


def _reason(violation: Violation) -> Reason:
    if violation.path.startswith(("spec.nodes", "spec.output")):
        return Reason.INVALID_GRAPH
    if violation.path.startswith("spec.embedding"):
        return Reason.UNKNOWN_MODEL
    return Reason.INVALID_SPEC
