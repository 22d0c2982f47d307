"""Reading the world for one pass: what both kinds of key have in common.

Everything is read directly, in parallel, and from no cache that outlives a run (`run_cluster.py`): a decision
must not rest on what was true before our own last write. What the API server refused, and what an apply
could not change, is the only memory, and losing it costs one more attempt.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import ValidationError

from tidegate_api.model import Model
from tidegate_operator.core.kinds import Kind, Manifest, Ref
from tidegate_operator.core.observed import Children, Live, Owner, Refusal
from tidegate_operator.ports import ClusterReader

M = TypeVar("M", bound=Model)

# Content that no decision needs, and that should not leave the API server.
_METADATA_ONLY = frozenset({Kind.SECRET, Kind.LEASE})


@dataclass(slots=True)
class Memory:
    """What this process remembers of its own writes for one key."""

    refusals: dict[Ref, Refusal] = field(default_factory=dict)
    settled: dict[Ref, tuple[str, ...]] = field(default_factory=dict)


async def read_all(cluster: ClusterReader, refs: Iterable[Ref]) -> dict[Ref, Live]:
    """Return the objects that exist."""
    wanted = list(dict.fromkeys(refs))
    found = await asyncio.gather(
        *(cluster.get_metadata(ref) if ref.kind in _METADATA_ONLY else cluster.get(ref) for ref in wanted)
    )
    return {ref: Live(manifest) for ref, manifest in zip(wanted, found, strict=True) if manifest is not None}


async def missing_of(cluster: ClusterReader, refs: Iterable[Ref]) -> frozenset[Ref]:
    """Return those that do not exist."""
    wanted = sorted(set(refs))
    found = await asyncio.gather(*(cluster.get_metadata(ref) for ref in wanted))
    return frozenset(ref for ref, manifest in zip(wanted, found, strict=True) if manifest is None)


def children_of(manifest: Manifest, ref: Ref, live: dict[Ref, Live], memory: Memory) -> Children:
    """Return the children of the object `manifest`."""
    owner = Owner(ref, str(manifest["metadata"]["uid"]))
    return Children(owner=owner, live=live, refusals=dict(memory.refusals), settled=dict(memory.settled))


def parse_spec(model: type[M], manifest: Manifest) -> tuple[M | None, str]:
    """Return the spec, or None and what this operator cannot read in it."""
    try:
        return model.model_validate(manifest.get("spec") or {}), ""
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(["spec", *map(str, first["loc"])])
        return None, f"{where}: {first['msg']}; this version of the operator does not know it, upgrade it or correct it"


def parse_stored(model: type[M], text: str | None) -> M | None:
    """Return a document that we stored ourselves; None when it is missing or of another time."""
    if not text:
        return None
    try:
        return model.model_validate_json(text)
    except ValidationError:
        return None


def parse_status(model: type[M], manifest: Manifest) -> M:
    """Return the status; one that cannot be read counts as never written."""
    try:
        return model.model_validate(manifest.get("status") or {})
    except ValidationError:
        return model()
