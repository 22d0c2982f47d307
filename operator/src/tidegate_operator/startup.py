"""Can the operator work here? Asked before anything is watched, answered with everything that is missing.

kopf, told not to scan the cluster, never serves a resource definition that appears later, and says
nothing about a right that it lacks; so both end the start, with a message that says what to do.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from tidegate_operator.core.kinds import API_VERSION, OWN_KINDS, Kind
from tidegate_operator.core.rights import Right, needed_rights
from tidegate_operator.errors import StartupError


class Rights(Protocol):
    """Asks the API server what it serves and what we may do."""

    async def served(self, kind: Kind) -> bool:
        """Return whether the API server knows the kind."""

    async def allowed(self, verb: str, kind: Kind, namespace: str | None, *, subresource: str = "") -> bool:
        """Return whether we may do it; `namespace` None = everywhere."""


async def check_startup(rights: Rights, namespaces: Sequence[str]) -> None:
    """Return when the operator can work.

    Raises:
        StartupError: a resource definition or a right is missing; the message names all of them.
    """
    served = await asyncio.gather(*(rights.served(kind) for kind in OWN_KINDS))
    absent = [str(kind) for kind, there in zip(OWN_KINDS, served, strict=True) if not there]
    if absent:
        raise StartupError(
            f"the cluster has no {', '.join(absent)} of {API_VERSION}; install the resource definitions "
            "(`tidegate crds | kubectl apply --server-side -f -`, or crds.create in the chart) and start again"
        )
    scopes: list[str | None] = [*namespaces] or [None]
    asked = [(scope, right) for scope in scopes for right in needed_rights()]
    answers = await asyncio.gather(*(_allowed(rights, right, scope) for scope, right in asked))
    lacking = [pair for pair, allowed in zip(asked, answers, strict=True) if not allowed]
    if lacking:
        listed = "; ".join(f"{right} in {scope or 'all namespaces'}" for scope, right in lacking)
        raise StartupError(
            f"the operator's service account may not: {listed}; grant it (rbac in the chart) and start again"
        )


async def _allowed(rights: Rights, right: Right, namespace: str | None) -> bool:
    return await rights.allowed(right.verb, right.kind, namespace, subresource=right.subresource)
