"""Composition root of the runtime: builds the parts, listens on a Unix socket, drains on SIGTERM.

The socket is bound before anything is loaded: "the process answers" comes first, "a release is warm"
is in its state. The file gets its mode before the socket listens, and a file that a dead process left
behind is replaced; one that a living process answers on is not.
"""

import asyncio
import logging
import os
import signal
import socket
import uuid
from collections.abc import Sequence
from pathlib import Path

import aiohttp
from aiohttp import web

from tidegate_api.logs import set_up_logs
from tidegate_api.shape import EmbedderFingerprint
from tidegate_runtime.dataplane import DataPlane
from tidegate_runtime.engine import Engine
from tidegate_runtime.http import Endpoints
from tidegate_runtime.metrics import SearchMetrics
from tidegate_runtime.models.registry import open_embedder
from tidegate_runtime.ports import Embedder
from tidegate_runtime.pulling import PulledRevisions
from tidegate_runtime.releases import Releases, RevisionSource
from tidegate_runtime.revisions import LocalRevisions
from tidegate_runtime.settings import Settings, parse
from tidegate_runtime.warmup import warm_up

_logger = logging.getLogger(__name__)
_SOCKET_MODE = 0o660
_WARM_UP_SECONDS = 120.0


class SocketInUseError(Exception):
    """Another process answers on the socket's path, or the path is something else than a socket."""


class BuiltInEmbedders:
    """Loads encoders off the event loop."""

    def __init__(self, *, threads: int) -> None:
        self._threads = threads

    async def open(self, fingerprint: EmbedderFingerprint) -> Embedder:
        """Open the encoder with this fingerprint."""
        return await asyncio.to_thread(open_embedder, fingerprint, threads=self._threads)


def listening_socket(path: Path) -> socket.socket:
    """Bind a Unix socket at `path`.

    Raises:
        SocketInUseError: the path is taken by something that is not a left-over.
        OSError: the folder is missing or not writable.
    """
    if path.exists():
        _remove_leftover(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    os.chmod(path, _SOCKET_MODE)
    return listener


def _remove_leftover(path: Path) -> None:
    if not path.is_socket():
        raise SocketInUseError(f"--socket {path} is there and is no socket; give another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise SocketInUseError(f"another process answers on --socket {path}; stop it or give another path")


async def serve(settings: Settings, listener: socket.socket) -> None:
    """Serve until SIGTERM or SIGINT, then let running requests end."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    engine, metrics = Engine(search_threads=settings.search_threads), SearchMetrics()
    session = aiohttp.ClientSession() if settings.pull else None
    releases = Releases(
        revisions=_revisions(settings, session),
        embedders=BuiltInEmbedders(threads=settings.threads),
        warm_up=lambda release: warm_up(engine, release, deadline_seconds=_WARM_UP_SECONDS),
    )
    dataplane = DataPlane(releases=releases, engine=engine, metrics=metrics)
    endpoints = Endpoints(dataplane=dataplane, releases=releases, metrics=metrics, process=uuid.uuid4().hex)
    runner = web.AppRunner(
        endpoints.application(), access_log=None, handler_cancellation=True, shutdown_timeout=settings.drain_seconds
    )
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        _logger.info("listening", extra={"socket": str(settings.socket)})
        await stop.wait()
        _logger.info("draining")
    finally:
        await runner.cleanup()
        await releases.close_all()
        engine.close()
        if session is not None:
            await session.close()


def _revisions(settings: Settings, session: aiohttp.ClientSession | None) -> RevisionSource:
    if session is None:
        return LocalRevisions(settings.revisions_root)
    return PulledRevisions(settings.revisions_root, origins=settings.pull, session=session)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a runtime; return the exit status."""
    settings = parse(arguments)
    set_up_logs()
    try:
        listener = listening_socket(settings.socket)
    except (SocketInUseError, OSError) as error:
        _logger.error("cannot listen", extra={"socket": str(settings.socket), "reason": str(error)})
        return 1
    try:
        asyncio.run(serve(settings, listener))
    finally:
        settings.socket.unlink(missing_ok=True)
    return 0
