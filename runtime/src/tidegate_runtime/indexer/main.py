"""Composition root of the indexer: claims the folder, listens, works in one thread, ends on SIGTERM.

The event loop only answers; the one thread that writes is the loop's. If that thread ends with an
error the process ends with it: whoever started the indexer starts it again, and it goes on from the
last commit. A state that says "building" while nobody builds cannot be.
"""

import asyncio
import logging
import signal
import sys
import threading
from collections.abc import Sequence

from aiohttp import web

from tidegate_api.config import IndexerState
from tidegate_api.shape import EmbedderFingerprint
from tidegate_runtime.errors import StateVersionError
from tidegate_runtime.indexer.build import make_loop
from tidegate_runtime.indexer.config_source import FileConfigSource
from tidegate_runtime.indexer.server import IndexerServer
from tidegate_runtime.indexer.settings import IndexerSettings, parse_settings
from tidegate_runtime.indexer.state import FolderBusyError, claimed
from tidegate_runtime.models.registry import open_embedder
from tidegate_runtime.ports import Embedder

_logger = logging.getLogger(__name__)


class Published:
    """The state told last; written by the loop's thread, read by the server's."""

    def __init__(self) -> None:
        self._state = IndexerState(process="", message="starts")

    def put(self, state: IndexerState) -> None:
        """Replace the state."""
        self._state = state

    def get(self) -> IndexerState:
        """Return the state."""
        return self._state


async def serve(settings: IndexerSettings) -> None:
    """Index and answer until SIGTERM or SIGINT."""
    asked = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, asked.set)
    published, stopping = Published(), threading.Event()

    def open_it(fingerprint: EmbedderFingerprint) -> Embedder:
        return open_embedder(fingerprint, threads=settings.threads, device=settings.device)

    loop = make_loop(
        settings.root,
        configs=FileConfigSource(settings.config),
        open_embedder=open_it,
        publish=published.put,
        watch=settings.watch,
    )
    server = IndexerServer(state=published.get, root=settings.root, token_file=settings.token_file)
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, settings.listen.host, settings.listen.port).start()
        _logger.info("listening on %s port %d", settings.listen.host, settings.listen.port)
        working = asyncio.create_task(asyncio.to_thread(loop.run, stopping))
        waiting = asyncio.create_task(asked.wait())
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        stopping.set()
        waiting.cancel()
        await working
    finally:
        await runner.cleanup()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an indexer; return the exit status."""
    settings = parse_settings(sys.argv[1:] if arguments is None else arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    try:
        with claimed(settings.root):
            asyncio.run(serve(settings))
    except (FolderBusyError, StateVersionError, OSError) as error:
        _logger.error("cannot run: %s", error)
        return 1
    return 0
