"""Requests to the API server with the pod's own identity.

Every answer has a deadline. Errors are one class with the HTTP status, so that callers can tell
"does not exist" from "cannot be reached"; the text never holds the token.
"""

import json
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REQUEST_SECONDS = 10.0
# A watch that says nothing for longer than the server was asked to keep it open is dead.
WATCH_SECONDS = 240
WATCH_SLACK_SECONDS = 30.0
EVENT_BYTES_MAX = 4 * 1024 * 1024
# Each watch holds one for as long as it lasts: an indexer's config, its at most 32 sources, and calls beside them.
CONNECTIONS_MAX = 48
MERGE_PATCH = "application/merge-patch+json"

Document = dict[str, object]


class LinkError(Exception):
    """The API server could not be reached (`status` 0) or refused (`status` is the HTTP status)."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the API server is and how to prove who we are to it."""

    url: str
    token_file: Path | None
    ca_file: Path | None

    @staticmethod
    def in_cluster(service_account: Path = SERVICE_ACCOUNT) -> "Endpoint":
        """Return the endpoint that a pod is given.

        Raises:
            LinkError: this process does not run in a pod with a service account.
        """
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
        if not host or not port or not (service_account / "token").is_file():
            raise LinkError("not in a pod with a service-account token; use a file instead of a ConfigMap here")
        bracketed = f"[{host}]" if ":" in host else host
        return Endpoint(f"https://{bracketed}:{port}", service_account / "token", service_account / "ca.crt")


class ApiClient:
    """An HTTP session with the API server; open it with `async with`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        context = ssl.create_default_context(cafile=str(self._endpoint.ca_file)) if self._endpoint.ca_file else False
        connector = aiohttp.TCPConnector(ssl=context, limit=CONNECTIONS_MAX)
        self._session = aiohttp.ClientSession(connector=connector, read_bufsize=EVENT_BYTES_MAX)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, path: str, *, query: Mapping[str, str] | None = None) -> Document | None:
        """Return an object, None when it does not exist."""
        try:
            return await self._call("GET", path, query=query)
        except LinkError as error:
            if error.status == 404:
                return None
            raise

    async def create(self, path: str, body: Document) -> Document:
        """Create an object; status 409 when it exists."""
        return await self._call("POST", path, body=body)

    async def replace(self, path: str, body: Document) -> Document:
        """Replace an object; with its resourceVersion in the body, status 409 when somebody was faster."""
        return await self._call("PUT", path, body=body)

    async def merge(self, path: str, body: Document) -> Document:
        """Apply a JSON merge patch (RFC 7386)."""
        return await self._call("PATCH", path, body=body, content_type=MERGE_PATCH)

    async def watch(self, path: str, *, query: Mapping[str, str]) -> AsyncIterator[Document]:
        """Yield watch events until the server ends the watch; an event of type ERROR is raised as a LinkError."""
        parameters = {**query, "watch": "1", "timeoutSeconds": str(WATCH_SECONDS), "allowWatchBookmarks": "true"}
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=REQUEST_SECONDS, sock_read=WATCH_SECONDS + WATCH_SLACK_SECONDS
        )
        try:
            async with self._open().get(
                self._endpoint.url + path, params=parameters, headers=self._headers(), timeout=timeout
            ) as response:
                if response.status >= 400:
                    raise _refused(response.status, await response.read())
                async for line in response.content:
                    event = _parsed(line)
                    if event.get("type") == "ERROR":
                        raise _refused(_code_of(event.get("object")), line)
                    yield event
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise LinkError(f"watch of {path} broke: {type(error).__name__}") from error

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Document | None = None,
        content_type: str = "application/json",
    ) -> Document:
        headers = self._headers()
        data = None
        if body is not None:
            headers["content-type"] = content_type
            data = json.dumps(body).encode()
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        try:
            async with self._open().request(
                method, self._endpoint.url + path, params=query, data=data, headers=headers, timeout=timeout
            ) as response:
                content = await response.read()
                if response.status >= 400:
                    raise _refused(response.status, content)
                return _parsed(content)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise LinkError(f"{method} {path} failed: {type(error).__name__}") from error

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise LinkError("the client is not open; use it in `async with`")
        return self._session

    def _headers(self) -> dict[str, str]:
        headers = {"accept": "application/json"}
        if self._endpoint.token_file is not None:
            headers["authorization"] = f"Bearer {self._endpoint.token_file.read_text().strip()}"
        return headers


def _parsed(content: bytes) -> Document:
    document = json.loads(content)
    if not isinstance(document, dict):
        raise LinkError("the API server's answer is not an object")
    return document


def _code_of(status: object) -> int:
    code = status.get("code") if isinstance(status, dict) else None
    return code if isinstance(code, int) else 500


def _refused(status: int, content: bytes) -> LinkError:
    try:
        message = str(json.loads(content).get("message", ""))
    except (ValueError, AttributeError):
        message = ""
    return LinkError(f"the API server answered {status}: {message[:300]}", status=status)
