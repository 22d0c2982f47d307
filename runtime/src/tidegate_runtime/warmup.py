"""The first query of a release: nobody is sent to it before this one has been through every leg.

Loading a model or mapping a file is not the whole cost of a start; the first inference and the first
scan are part of it. A release that cannot answer this query whole is not fit to answer a user's.
The dictionary for Han text is not its business: an index whose language may need it loads it when it is
opened, and one of English documents never pays for it.
"""

import time

from tidegate_runtime.engine import Ask, Engine, OpenRelease
from tidegate_runtime.errors import DeadlineExceededError, ReleaseUnavailableError
from tidegate_runtime.ports import Permission

# The accent makes the analyzer prepare for letters beyond ASCII, which takes a tenth of a second.
_QUERY = "how does the warm-up query, à la carte, reach every leg?"


async def warm_up(engine: Engine, release: OpenRelease, *, deadline_seconds: float) -> None:
    """Search every leg of `release` once.

    Raises:
        ReleaseUnavailableError: a leg did not do its part.
        RuntimePlaneError: there was no answer at all.
    """
    ask = Ask(query=_QUERY, permission=Permission(), top_k=1, deadline=time.monotonic() + deadline_seconds)
    try:
        outcome = await engine.search(release, release.indexes, ask)
    except DeadlineExceededError as error:
        raise ReleaseUnavailableError(
            f"warming up had no answer within {deadline_seconds:g} s; it is tried again. Where this stays, give the "
            "runtime more memory or cpu, or delete the pod"
        ) from error
    if outcome.failures:
        node, failure = min(outcome.failures.items())
        raise ReleaseUnavailableError(f"the warm-up query failed in node {node}: {failure.error}") from failure.error
