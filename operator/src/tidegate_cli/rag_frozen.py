"""Reads what a release froze: the ControllerRevision that the operator made for it.

It may be gone (releases expire) or out of reach (a role that reads our kinds need not read this one),
so that it cannot be read is an answer, not an error.
"""

from dataclasses import dataclass

from pydantic import ValidationError

from tidegate_cli.kubectl import Kubectl, KubectlError
from tidegate_operator.core.names import release_object_name
from tidegate_operator.core.releases import SCHEMA_VERSION, FrozenRelease


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why there is nothing to compare."""

    why: str


def read_frozen(kubectl: Kubectl, *, pipeline: str, release: str) -> FrozenRelease | Unreadable:
    """Return everything that `release` of `pipeline` consists of, or why it cannot be told."""
    name = release_object_name(pipeline, release)
    try:
        frozen = FrozenRelease.model_validate(kubectl.get("controllerrevisions", name, group=".apps").get("data"))
    except KubectlError as error:
        return Unreadable(str(error))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, ("data", *first["loc"])))
        return Unreadable(f"ControllerRevision {name}: {where}: {first['msg']}")
    if frozen.schema_version > SCHEMA_VERSION:
        return Unreadable(f"ControllerRevision {name} is of a newer version; upgrade kubectl-rag")
    return frozen
