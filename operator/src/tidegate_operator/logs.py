"""The operator's logs: lines of the common shape, and of its libraries only warnings."""

import logging

from tidegate_api import logs

# kopf writes a line per watch event and per object; aiohttp one per probe.
_QUIET = ("kopf.objects", "kopf._core", "kopf._cogs", "aiohttp.access")


def set_up_logs(level: str) -> None:
    """Write lines of at least this level."""
    logs.set_up_logs(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
