"""kopf at work: watches that ring the bell, until a signal.

A watch that the API server ends for good, as it does when a resource definition is deleted, ends kopf
and with it the process: the next one asks at its start what is missing, says so, and lists everything
anew. Nothing else could: kopf serves no definition that appears later.
"""

import asyncio
from collections.abc import Sequence

import kopf
from kopf._cogs.clients.errors import APIError
from kopf._cogs.clients.watching import WatchingError

from tidegate_operator import handlers
from tidegate_operator.errors import WatchEndedError


async def watch(bell: handlers.Bell, namespaces: Sequence[str], *, stop: asyncio.Event | None = None) -> None:
    """Watch until a signal, or `stop`.

    Raises:
        WatchEndedError: the API server has ended a watch for good.
    """
    registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
    handlers.configure(settings)
    handlers.register(registry, settings, bell)
    kopf.on.login(registry=registry, id="login")(handlers.login)
    try:
        await kopf.operator(
            registry=registry,
            settings=settings,
            standalone=True,
            clusterwide=not namespaces,
            namespaces=namespaces,
            stop_flag=stop,
        )
    except (APIError, WatchingError) as error:
        raise WatchEndedError(str(error)) from error
