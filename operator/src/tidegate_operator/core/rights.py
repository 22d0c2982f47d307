"""What the operator must be allowed to do. Asked for at the start, so that a missing right is a message and not a riddle."""

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate_operator.core.kinds import OWN_KINDS, Kind, group, plural


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on one kind, or on a subresource of it."""

    verb: str
    kind: Kind
    subresource: str = ""

    def __str__(self) -> str:
        """Return the form used in messages: `patch knowledgebases.tidegate.dev/status`."""
        name = f"{plural(self.kind)}.{group(self.kind)}" if group(self.kind) else plural(self.kind)
        return f"{self.verb} {name}" + (f"/{self.subresource}" if self.subresource else "")


_CHILDREN_KEPT = (
    Kind.CONFIG_MAP,
    Kind.CONTROLLER_REVISION,
    Kind.DEPLOYMENT,
    Kind.DISRUPTION_BUDGET,
    Kind.LEASE,
    Kind.NETWORK_POLICY,
    Kind.CLAIM,
    Kind.ROLE,
    Kind.ROLE_BINDING,
    Kind.SECRET,
    Kind.SERVICE,
    Kind.SERVICE_ACCOUNT,
)
_WATCHED = (Kind.CONFIG_MAP, Kind.CONTROLLER_REVISION, Kind.DEPLOYMENT, Kind.POD)


def needed_rights() -> Iterator[Right]:
    """Yield every right that the operator cannot do without."""
    for kind in OWN_KINDS:
        for verb in ("get", "list", "watch"):
            yield Right(verb, kind)
        yield Right("patch", kind, "status")
    for kind in _CHILDREN_KEPT:
        for verb in ("get", "create", "patch"):
            yield Right(verb, kind)
    for kind in _WATCHED:
        for verb in ("list", "watch"):
            yield Right(verb, kind)
    for kind in (Kind.CONTROLLER_REVISION, Kind.DEPLOYMENT, Kind.SERVICE):
        yield Right("delete", kind)
    yield Right("list", Kind.SERVICE)
    # Handed on to indexers: nobody can grant what they do not hold.
    yield Right("update", Kind.LEASE)
