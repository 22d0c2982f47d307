"""Who asks, once identity is settled. Everything later reads this and never the credentials."""

from typing import NamedTuple

SCOPE_QUERY = "query"
SCOPE_EXPLAIN = "explain"
SCOPE_FORCE = "force"


class Caller(NamedTuple):
    """An authenticated caller. `tenant` None sees only what is for every tenant."""

    tenant: str | None = None
    groups: tuple[str, ...] = ()
    user: str | None = None
    session: str | None = None
    scopes: frozenset[str] = frozenset({SCOPE_QUERY})
