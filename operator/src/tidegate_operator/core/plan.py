"""What a pass may do: decide, act or rest.

A pass either writes one status (guarded by the resource version it was decided on) or carries out
what status already says. So each decision is stored before it is acted on, and a process that dies
between any two lines resumes without repeating or skipping.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from tidegate_operator.core.kinds import Manifest, Ref
from tidegate_operator.core.names import Annotation


@dataclass(frozen=True, slots=True)
class Note:
    """An Event about a transition. Never one per retry or per tick."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


# Why releases are taken back: nobody but a person asks for it.
ON_REQUEST = "request"
ROLLBACK_CAUSES = (ON_REQUEST,)


class Gauge(StrEnum):
    """Figures about single objects that are kept up while these are there."""

    INDEX_DOCUMENTS = "tidegate_index_documents"
    ROLLOUT_SHARE = "tidegate_rollout_share"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a gauge shows. `labels` are namespace and name of the object, then what else the gauge tells apart."""

    gauge: Gauge
    labels: tuple[str, ...]
    value: float


@dataclass(frozen=True, slots=True)
class Decide:
    """Store this status, unless the object has changed since it was read. `rollbacks` = why, one for each in it."""

    ref: Ref
    uid: str
    resource_version: str
    status: Manifest
    notes: tuple[Note, ...] = ()
    rollbacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Create:
    """Make an object that is not there; refused when somebody else's is."""

    manifest: Manifest

    @property
    def inputs(self) -> str:
        """Return the hash that the manifest was rendered from."""
        return inputs_of(self.manifest)


@dataclass(frozen=True, slots=True)
class Apply:
    """Bring an object of ours to this manifest."""

    manifest: Manifest

    @property
    def inputs(self) -> str:
        """Return the hash that the manifest was rendered from."""
        return inputs_of(self.manifest)


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an object of ours, this very one."""

    ref: Ref
    uid: str


Action: TypeAlias = Create | Apply | Delete


@dataclass(frozen=True, slots=True)
class Act:
    """Carry out, in order, what status already says."""

    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing to do. Look again after `wake_after_seconds`, or at the next event or resync."""

    wake_after_seconds: float | None = None
    readings: tuple[Reading, ...] = ()


Plan: TypeAlias = Decide | Act | Rest


def inputs_of(manifest: Manifest) -> str:
    """Return the inputs hash that a rendered manifest carries."""
    return str((manifest["metadata"].get("annotations") or {}).get(Annotation.INPUTS, ""))
