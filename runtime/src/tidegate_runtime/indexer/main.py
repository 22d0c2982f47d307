"""Composition root of the indexer: claims the folder, listens, works in one thread, ends on SIGTERM.

The event loop only answers; the one thread that writes is the loop's. If that thread ends with an
error the process ends with it: whoever started the indexer starts it again, and it goes on from the
last commit. A state that says "building" while nobody builds cannot be.
"""

import asyncio
import logging
import signal
import socket
import sys
import tempfile
import uuid
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from tidegate_api.config import IndexerState, SourceConfig
from tidegate_api.logs import set_up_logs
from tidegate_api.shape import EmbedderFingerprint
from tidegate_link.client import ApiClient, Endpoint, LinkError
from tidegate_link.lease import Lease
from tidegate_runtime.errors import StateVersionError
from tidegate_runtime.indexer.build import make_loop
from tidegate_runtime.indexer.config_map import ConfigMapConfigSource
from tidegate_runtime.indexer.config_map_copies import ConfigMapCopies
from tidegate_runtime.indexer.config_source import ConfigSource, FileConfigSource
from tidegate_runtime.indexer.server import IndexerServer
from tidegate_runtime.indexer.settings import IndexerSettings, parse_settings
from tidegate_runtime.indexer.state import FolderBusyError, claimed
from tidegate_runtime.indexer.stopping import StopSign
from tidegate_runtime.indexer.telling import keep_telling
from tidegate_runtime.models.registry import open_embedder
from tidegate_runtime.ports import Embedder

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Where the config comes from, and where a source's newest content lies."""

    configs: ConfigSource
    locate: Callable[[SourceConfig], SourceConfig] = lambda source: source


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
    published = Published()
    server = IndexerServer(state=published.get, root=settings.root, token_file=settings.token_file)
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, settings.listen.host, settings.listen.port).start()
        _logger.info("listening", extra={"host": settings.listen.host, "port": settings.listen.port})
        if settings.config_map is None:
            await _work(settings, Inputs(FileConfigSource(settings.config)), published, asked)
        else:
            await _work_as_leader(settings, settings.config_map, published, asked)
    finally:
        await runner.cleanup()


async def _work(settings: IndexerSettings, inputs: Inputs, published: Published, until: asyncio.Event) -> None:
    """Run the loop in its thread until told to stop."""

    def open_it(fingerprint: EmbedderFingerprint) -> Embedder:
        return open_embedder(fingerprint, threads=settings.threads, device=settings.device)

    stop = StopSign()
    loop = make_loop(
        settings.root,
        configs=inputs.configs,
        open_embedder=open_it,
        publish=published.put,
        watch=settings.watch,
        stop=stop,
        locate=inputs.locate,
    )
    working = asyncio.create_task(asyncio.to_thread(loop.run))
    waiting = asyncio.create_task(until.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.set()
        waiting.cancel()
    await working


async def _work_as_leader(
    settings: IndexerSettings, config_map: tuple[str, str], published: Published, asked: asyncio.Event
) -> None:
    """Work while the Lease is held, and wait for it again when it was lost: one writer, whatever happens."""
    namespace, name = config_map
    configs = ConfigMapConfigSource(FileConfigSource(settings.config), namespace=namespace, name=name)
    copies = ConfigMapCopies(Path(tempfile.gettempdir(), f"config-maps-{namespace}-{name}"), namespace=namespace)
    async with ApiClient(Endpoint.in_cluster()) as client:
        beside = [
            asyncio.create_task(configs.follow(client)),
            asyncio.create_task(copies.follow(client, config=configs.read)),
            asyncio.create_task(keep_telling(client, config_map, state=published.get)),
        ]
        holder = f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}"
        lease = Lease(client, namespace=namespace, name=name, holder=holder)
        try:
            while not asked.is_set():
                published.put(IndexerState(process="", message="waits to be the only indexer of this knowledge base"))
                await _first_of(lease.acquire(), asked.wait())
                if asked.is_set():
                    break
                inputs = Inputs(configs, copies.locate)
                await _work_while_held(settings, inputs, published, lease=lease, asked=asked)
            await lease.release()
        finally:
            for task in beside:
                task.cancel()


async def _work_while_held(
    settings: IndexerSettings, inputs: Inputs, published: Published, *, lease: Lease, asked: asyncio.Event
) -> None:
    stop = asyncio.Event()

    async def watch_over() -> None:
        await _first_of(lease.keep(), asked.wait())
        if not asked.is_set():
            _logger.warning("the lease is lost: nothing is written until it is held again")
        stop.set()

    watching = asyncio.create_task(watch_over())
    try:
        await _work(settings, inputs, published, stop)
    finally:
        watching.cancel()


async def _first_of(*coroutines: Coroutine[object, object, object]) -> None:
    """Wait until one of them has ended, and cancel the others."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run an indexer; return the exit status."""
    settings = parse_settings(sys.argv[1:] if arguments is None else arguments)
    set_up_logs()
    try:
        with claimed(settings.root):
            asyncio.run(serve(settings))
    except (FolderBusyError, LinkError, StateVersionError, OSError) as error:
        _logger.error("cannot run", extra={"reason": str(error)})
        return 1
    return 0
