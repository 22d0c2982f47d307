"""A small API server of our own: ConfigMaps and Leases in memory, with versions, conflicts and watches.

For tests of what happens on the wire between a pod and the API server; TLS and RBAC are left to the
cluster tests.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tidegate_link.client import Endpoint


class ApiServer:
    """ConfigMaps and Leases in memory, with resource versions, conflicts and watches."""

    def __init__(self) -> None:
        self.objects: dict[str, dict] = {}
        self.version = 0
        self.tokens: list[str] = []
        self.watchers: list[asyncio.Queue[dict | None]] = []
        self.refuse_with = 0
        self.watch_errors: list[int] = []

    def put(self, path: str, body: dict, kind: str = "MODIFIED") -> dict:
        self.version += 1
        body = {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": str(self.version)}}
        self.objects[path] = body
        for queue in self.watchers:
            queue.put_nowait({"type": kind, "object": body})
        return body

    def remove(self, path: str) -> None:
        body = self.objects.pop(path)
        for queue in self.watchers:
            queue.put_nowait({"type": "DELETED", "object": body})

    def end_watches(self) -> None:
        for queue in self.watchers:
            queue.put_nowait(None)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.tokens.append(request.headers.get("authorization", ""))
        if self.refuse_with:
            return web.json_response({"message": "refused"}, status=self.refuse_with)
        if request.query.get("watch"):
            return await self._watch(request)
        path = request.path
        if request.method == "GET":
            if path not in self.objects:
                return web.json_response({"message": "not found"}, status=404)
            return web.json_response(self.objects[path])
        body = await request.json()
        if request.method == "PATCH":
            found = self.objects[path]
            annotations = {**found["metadata"].get("annotations", {}), **body["metadata"]["annotations"]}
            return web.json_response(
                self.put(path, {**found, "metadata": {**found["metadata"], "annotations": annotations}})
            )
        if request.method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                return web.json_response({"message": "exists"}, status=409)
        elif body["metadata"].get("resourceVersion") != self.objects[path]["metadata"]["resourceVersion"]:
            return web.json_response({"message": "conflict"}, status=409)
        return web.json_response(self.put(path, body))

    def _replay(self, request: web.Request, queue: asyncio.Queue[dict | None]) -> None:
        """Begin with what has changed since the version that the watcher knows, as an API server does."""
        name = request.query["fieldSelector"].removeprefix("metadata.name=")
        found = self.objects.get(f"{request.path}/{name}")
        if found is not None and int(found["metadata"]["resourceVersion"]) > int(
            request.query.get("resourceVersion", "0")
        ):
            queue.put_nowait({"type": "MODIFIED", "object": found})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if self.watch_errors:
            event = {"type": "ERROR", "object": {"code": self.watch_errors.pop(0)}}
            await response.write(json.dumps(event).encode() + b"\n")
            return response
        queue: asyncio.Queue[dict | None] = asyncio.Queue()
        self._replay(request, queue)
        self.watchers.append(queue)
        await response.write(b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "1"}}}\n')
        try:
            while (event := await queue.get()) is not None:
                await response.write(json.dumps(event).encode() + b"\n")
        finally:
            self.watchers.remove(queue)
        return response


@asynccontextmanager
async def running_api_server() -> AsyncIterator[tuple[ApiServer, Endpoint]]:
    """Run one on a free port while the block lasts."""
    state = ApiServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", state.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield state, Endpoint(f"http://127.0.0.1:{runner.addresses[0][1]}", None, None)
    state.end_watches()
    await runner.cleanup()
