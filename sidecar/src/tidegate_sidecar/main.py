"""The sidecar's composition root: reads the command line, builds the parts, runs until told to stop.

    python -m tidegate_sidecar --config FILE --table FILE --runtime-socket PATH \
        --listen HOST:PORT --state-listen HOST:PORT

In a cluster also `--configmap NAMESPACE/NAME`, the ConfigMap that --table is the mounted copy of, and
`--deployment HASH --peer-listen HOST:PORT --hop-keys DIR`: who this pod is among its pipeline's Deployments.

Exit codes: 0 drained after SIGTERM or SIGINT, 1 a port can't be listened on, 2 unusable configuration.
"""

import argparse
import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import uvloop

from tidegate_api.arguments import Address, address, namespaced_name
from tidegate_api.logs import set_up_logs
from tidegate_sidecar.adapters.files import TableFile
from tidegate_sidecar.adapters.hop_keys import HopKeys
from tidegate_sidecar.adapters.runtime_admin import SocketRuntimeAdmin
from tidegate_sidecar.adapters.runtime_socket import PeerSocket, RuntimeSocket
from tidegate_sidecar.health import Health
from tidegate_sidecar.http1 import FrontLimits, HttpServer
from tidegate_sidecar.limits import InFlight
from tidegate_sidecar.metrics import Recorder
from tidegate_sidecar.peers import Dispatcher, HopReceiver
from tidegate_sidecar.ports import TableSource
from tidegate_sidecar.proxy import Retrieval
from tidegate_sidecar.releases import ReleaseKeeper
from tidegate_sidecar.routes import Router, public_routes, state_routes
from tidegate_sidecar.scrape import Scrape
from tidegate_sidecar.settings import Settings, SettingsError, SettingsKeeper
from tidegate_sidecar.tables import TableKeeper

logger = logging.getLogger(__name__)

# A request whose own deadline did not end it is a fault of ours; it is cut after this much more.
ANSWER_MARGIN_SECONDS = 2.0
STATE_DRAIN_SECONDS = 1.0
PEER_PORT = 8082
# A query may be written with six characters a byte (\u0041); the rest of a body is filters.
BODY_BYTES_BESIDE_QUERY = 65_536
BODY_BYTES_PER_QUERY_BYTE = 6


@dataclass(frozen=True, slots=True)
class Options:
    """The command line."""

    config: Path
    table: Path
    runtime_socket: str
    listen: Address
    state_listen: Address
    configmap: tuple[str, str] | None
    deployment: str
    peer_listen: Address | None
    hop_keys: Path | None


def front_limits(settings: Settings) -> FrontLimits:
    """Return the bounds of the front that follow from the pipeline's limits."""
    limits = settings.config.limits
    return replace(
        FrontLimits(),
        max_body_bytes=BODY_BYTES_BESIDE_QUERY + BODY_BYTES_PER_QUERY_BYTE * limits.max_query_bytes,
        answer_seconds=limits.request_timeout_ms / 1000 + ANSWER_MARGIN_SECONDS,
    )


async def serve(options: Options, stop: asyncio.Event, on_listening: Callable[[int, int], None]) -> None:
    """Serve until `stop` is set, then drain. `on_listening` is told the public port and the one for state.

    Raises:
        SettingsError: the configuration can't be used.
        OSError: a port can't be listened on.
    """
    settings = SettingsKeeper(options.config)
    pipeline = settings.current.config.pipeline
    socket = RuntimeSocket(options.runtime_socket, on_idle_end=lambda: releases.wake())
    recorder, in_flight, keys = Recorder(pipeline), InFlight(), HopKeys(options.hop_keys)
    releases = ReleaseKeeper(SocketRuntimeAdmin(socket), in_flight)
    tables = TableKeeper(pipeline, on_change=releases.wake, deployment=options.deployment)
    table_source = _table_source(options, tables)
    health = Health(settings=settings, tables=tables, releases=releases, recorder=recorder)
    retrieval = Retrieval(
        settings=lambda: settings.current,
        table=tables.index,
        searcher=_dispatcher(options, settings, tables=tables, here=socket, keys=keys, releases=releases),
        in_flight=in_flight,
        recorder=recorder,
        on_unavailable=releases.wake,
    )
    public = HttpServer(public_routes(retrieval, health), limits=front_limits(settings.current))
    scrape = Scrape(recorder, socket, loop_time=asyncio.get_running_loop().time)
    state = HttpServer(state_routes(health, scrape))
    on_listening(
        await public.start(options.listen.host, options.listen.port),
        await state.start(options.state_listen.host, options.state_listen.port),
    )
    peers = await _listen_for_peers(options, settings, here=socket, keys=keys, in_flight=in_flight)
    following = [
        settings.follow(lambda fresh: public.set_limits(front_limits(fresh))),
        table_source.follow(tables.offer),
        releases.follow(tables.wanted),
        keys.follow(),
    ]
    servers = [server for server in (public, peers) if server]
    await _follow(following, until=_drained(stop, servers, lambda: front_limits(settings.current).answer_seconds))
    await state.drain(STATE_DRAIN_SECONDS)
    socket.close()


async def _follow(following: Sequence[Coroutine[object, object, None]], *, until: Awaitable[None]) -> None:
    """Run all of `following` until `until` is over; a fault in one of them ends everything."""
    async with asyncio.TaskGroup() as group:
        followers = [group.create_task(each) for each in following]
        await until
        for follower in followers:
            follower.cancel()


async def _drained(stop: asyncio.Event, servers: Sequence[HttpServer], seconds: Callable[[], float]) -> None:
    await stop.wait()
    logger.info("draining")
    await asyncio.gather(*(server.drain(seconds()) for server in servers))


def _table_source(options: Options, tables: TableKeeper) -> TableSource:
    if options.configmap is None:
        return TableFile(options.table)
    # Only in a cluster: the client of the API server takes 10 MB, a fifth of what a sidecar needs.
    from tidegate_link.client import Endpoint, LinkError
    from tidegate_sidecar.adapters.table_config_map import TableConfigMap, TablePlace

    namespace, name = options.configmap
    place = TablePlace(namespace, name, mounted=options.table.parent)
    try:
        return TableConfigMap(Endpoint.in_cluster(), place, tables.report_link)
    except LinkError as error:
        raise SettingsError(f"--configmap {namespace}/{name}: {error}") from error


def _dispatcher(
    options: Options,
    settings: SettingsKeeper,
    *,
    tables: TableKeeper,
    here: RuntimeSocket,
    keys: HopKeys,
    releases: ReleaseKeeper,
) -> Dispatcher:
    config = settings.current.config

    def connect(deployment: str) -> PeerSocket:
        return PeerSocket(f"{config.pipeline}-{deployment}.{config.namespace}.svc", PEER_PORT)

    loop_time = asyncio.get_running_loop().time
    return Dispatcher(
        here,
        elsewhere=tables.elsewhere,
        connect=connect,
        keys=keys.live,
        loop_time=loop_time,
        deployment=options.deployment,
        on_unavailable=releases.wake,
    )


async def _listen_for_peers(
    options: Options, settings: SettingsKeeper, *, here: RuntimeSocket, keys: HopKeys, in_flight: InFlight
) -> HttpServer | None:
    if options.peer_listen is None:
        return None
    receiver = HopReceiver(
        here,
        keys=keys.live,
        in_flight=in_flight,
        maximum=lambda: settings.current.config.limits.max_concurrent,
        loop_time=asyncio.get_running_loop().time,
    )
    server = HttpServer(Router({(b"POST", b"/v1/hop"): receiver}), limits=front_limits(settings.current))
    await server.start(options.peer_listen.host, options.peer_listen.port)
    return server


async def _run(options: Options) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await serve(
        options,
        stop,
        lambda port, state_port: logger.info("listening", extra={"port": port, "state_port": state_port}),
    )
    logger.info("stopped")


def parse_arguments(arguments: Sequence[str] | None = None) -> Options:
    """Return the command line's options; exits with 2 when they are wrong."""
    parser = argparse.ArgumentParser(prog="tidegate_sidecar", description="Routes queries to releases of a pipeline.")
    parser.add_argument("--config", required=True, type=Path, help="SidecarConfig as JSON; reloaded on change")
    parser.add_argument("--table", required=True, type=Path, help="RoutingTable as JSON; the newest version is obeyed")
    parser.add_argument("--runtime-socket", required=True, help="Unix socket of the runtime")
    parser.add_argument("--listen", default="0.0.0.0:8080", type=address, help="public HOST:PORT")
    parser.add_argument("--state-listen", default="0.0.0.0:8081", type=address, help="state and metrics")
    parser.add_argument("--configmap", type=namespaced_name, help="NAMESPACE/NAME; --table is its mounted copy")
    parser.add_argument("--deployment", default="", help="hash of this pod's Deployment; absent = it holds everything")
    parser.add_argument("--peer-listen", type=address, help="port for signed hops of other Deployments' pods")
    parser.add_argument("--hop-keys", type=Path, help="folder of the keys that sign hops; the first by name signs")
    return Options(**vars(parser.parse_args(arguments)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sidecar and return its exit code."""
    options = parse_arguments(arguments)
    set_up_logs()
    try:
        uvloop.run(_run(options))
    except SettingsError as error:
        logger.error("unusable configuration", extra={"reason": str(error)})
        return 2
    except OSError as error:
        logger.error("can't listen", extra={"reason": str(error)})
        return 1
    return 0
