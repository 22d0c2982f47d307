"""Opens and closes releases of the runtime, and reads its state, over the same Unix socket as searches."""

import asyncio

from pydantic import ValidationError

from tidegate_api.config import ReleaseConfig, RuntimeState
from tidegate_api.wire import CloseRequest, ErrorCode
from tidegate_sidecar.adapters.runtime_socket import RuntimeSocket, deadline_passed
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.ports import RuntimeReply
from tidegate_sidecar.replies import error_of_reply

CALL_SECONDS = 5.0
# The socket ends a call at its deadline; this is for the case that it does not.
GRACE_SECONDS = 1.0


class SocketRuntimeAdmin:
    """The port `RuntimeAdmin` over a socket."""

    def __init__(self, socket: RuntimeSocket, *, call_seconds: float = CALL_SECONDS) -> None:
        self._socket = socket
        self._call_seconds = call_seconds

    async def open(self, release: ReleaseConfig) -> None:
        """Ask for a release to be loaded."""
        await self._call(b"POST /v1/open", release.model_dump_json(by_alias=True, exclude_none=True).encode())

    async def close(self, release: str) -> None:
        """Ask for a release to be dropped."""
        await self._call(b"POST /v1/close", CloseRequest(release=release).model_dump_json().encode())

    async def state(self) -> RuntimeState:
        """Return what the runtime holds."""
        body = await self._call(b"GET /v1/state", b"")
        try:
            return RuntimeState.model_validate_json(body)
        except ValidationError:
            raise RequestError(ErrorCode.INTERNAL, "the runtime's state is not what this sidecar can read") from None

    async def _call(self, line: bytes, body: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[bytes] = loop.create_future()

        def settle(outcome: RuntimeReply | RequestError) -> None:
            if answered.done():
                return
            if isinstance(outcome, RequestError):
                answered.set_exception(outcome)
            elif outcome.status >= 300:
                answered.set_exception(error_of_reply(outcome))
            else:
                answered.set_result(outcome.body)

        deadline = loop.time() + self._call_seconds
        exchange = self._socket.send(line, body, deadline=deadline, done=settle)
        try:
            async with asyncio.timeout_at(deadline + GRACE_SECONDS):
                return await answered
        except TimeoutError:
            raise deadline_passed() from None
        finally:
            exchange.cancel()
