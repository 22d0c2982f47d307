"""What an indexer tells over HTTP: its state to the control plane, its segments to pods.

State holds names, counts and reasons. Segments hold the text of every tenant, so they need the
bearer token, exist for ready revisions alone, and only names that lie in the root and that the
revision's manifest lists are files: a path is never built from what a caller sent. Without a token
file there are no segments.

Whether a revision is ready is read from its manifest on the volume, not from the state: a process
that has just started, or waits for the Lease, does not know its revisions yet, and pods must get
what was proven before.
"""

import asyncio
import hmac
import os
import re
from collections.abc import Callable
from pathlib import Path

import orjson
from aiohttp import web

from tidegate_api.config import IndexerState
from tidegate_runtime.errors import RevisionUnavailableError, StateVersionError
from tidegate_runtime.stores.embedded import MANIFEST_NAME, Manifest

_TOKEN = re.compile(rb"Bearer +([\x21-\x7e]+)", re.IGNORECASE)


class IndexerServer:
    """Handlers. `state` is called for every answer; `token_file` is read for every request, so a new token needs no restart."""

    def __init__(self, *, state: Callable[[], IndexerState], root: Path, token_file: Path | None) -> None:
        self._state = state
        self._root = root
        self._token_file = token_file

    def application(self) -> web.Application:
        """Return the routes."""
        application = web.Application()
        application.add_routes([web.get("/v1/state", self.state), web.get("/healthz", self.healthz)])
        if self._token_file is not None:
            application.add_routes(
                [
                    web.get("/v1/revisions/{revision}/manifest", self.manifest),
                    web.get("/v1/revisions/{revision}/files/{name}", self.file),
                ]
            )
        return application

    async def state(self, _: web.Request) -> web.Response:
        """Tell what is true of the revisions."""
        return _json(self._state().to_document())

    async def healthz(self, _: web.Request) -> web.Response:
        """Tell that the process answers."""
        return web.Response(text="ok\n")

    async def manifest(self, request: web.Request) -> web.Response:
        """Send the manifest of a ready revision."""
        refusal = await self._refusal(request)
        if refusal is not None:
            return refusal
        found = await self._manifest(request.match_info["revision"])
        if found is None:
            return _error(404, "not_found", "no ready revision of this name")
        return web.Response(body=found[0], content_type="application/json")

    async def file(self, request: web.Request) -> web.StreamResponse:
        """Send a file that the manifest of a ready revision names."""
        refusal = await self._refusal(request)
        if refusal is not None:
            return refusal
        revision, name = request.match_info["revision"], request.match_info["name"]
        found = await self._manifest(revision)
        if found is None or all(entry.name != name for entry in found[1].files()):
            return _error(404, "not_found", "no such file in a ready revision; read its manifest again")
        return web.FileResponse(self._root / revision / name)

    async def _refusal(self, request: web.Request) -> web.Response | None:
        expected = await asyncio.to_thread(self._token)
        given = _TOKEN.fullmatch(request.headers.get("Authorization", "").encode("utf-8", "surrogateescape").strip())
        if expected and given and hmac.compare_digest(given[1], expected):
            return None
        return _error(401, "unauthenticated", "segments need the indexer's bearer token")

    def _token(self) -> bytes:
        """Return the token; empty, which nothing matches, when there is none to be read."""
        if self._token_file is None:
            return b""
        try:
            return self._token_file.read_bytes().strip()
        except OSError:
            return b""

    async def _manifest(self, revision: str) -> tuple[bytes, Manifest] | None:
        return await asyncio.to_thread(_ready_manifest, self._root, revision)


def _ready_manifest(root: Path, revision: str) -> tuple[bytes, Manifest] | None:
    """Return the manifest of a revision that lies in `root` and is ready."""
    # What is being removed has a name with a dot in front.
    if revision.startswith(".") or revision not in os.listdir(root):
        return None
    folder = root / revision
    try:
        content = (folder / MANIFEST_NAME).read_bytes()
        manifest = Manifest.decode(content, place=str(folder))
    except (FileNotFoundError, NotADirectoryError, RevisionUnavailableError, StateVersionError):
        return None
    return (content, manifest) if manifest.ready else None


def _json(document: object, *, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(document), status=status, content_type="application/json")


def _error(status: int, code: str, message: str) -> web.Response:
    return _json({"error": {"code": code, "message": message}}, status=status)
