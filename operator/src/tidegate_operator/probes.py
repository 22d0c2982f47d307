"""Liveness and metrics over HTTP. Liveness asks two things: do keys get worked on, and does the watch see."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest


def health_application(problem: Callable[[], str]) -> web.Application:
    """Return the application that answers 200 while there is no problem, else 503 with it."""

    async def healthz(_: web.Request) -> web.Response:
        found = problem()
        return web.Response(text=f"{found or 'ok'}\n", status=503 if found else 200)

    application = web.Application()
    application.add_routes([web.get("/healthz", healthz)])
    return application


def metrics_application() -> web.Application:
    """Return the application that Prometheus scrapes."""

    async def scrape(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    application = web.Application()
    application.add_routes([web.get("/metrics", scrape)])
    return application


@asynccontextmanager
async def served(application: web.Application, host: str, port: int) -> AsyncIterator[int]:
    """Serve while the context lasts; yield the port."""
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0, handle_signals=False)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
