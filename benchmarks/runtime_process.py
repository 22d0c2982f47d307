"""A runtime as a process of its own, and the lightest client that can ask it.

The client knows just enough HTTP for answers with a content-length, so that what is timed is the
runtime and not a client library.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tidegate_api.config import ReleaseConfig, RuntimeState

START_SECONDS = 60.0


@dataclass(slots=True)
class Connection:
    """One kept-alive connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @staticmethod
    async def open(socket: Path) -> "Connection":
        """Connect."""
        return Connection(*await asyncio.open_unix_connection(str(socket)))

    async def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        """Send a request and return the body of its answer, which must be 200."""
        head = f"{method} {path} HTTP/1.1\r\nhost: runtime\r\ncontent-length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().splitlines()
        length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length:"))
        answer = await self.reader.readexactly(length)
        assert " 200 " in lines[0], answer
        return answer


@asynccontextmanager
async def runtime_process(root: Path, release: ReleaseConfig) -> AsyncIterator[Path]:
    """Start a runtime with one encoder thread, open `release`, wait until it is warm; yield the socket."""
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "runtime.sock"
        places = ("--socket", str(socket), "--revisions-root", str(root))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tidegate_runtime", *places, "--threads", "1", stderr=asyncio.subprocess.DEVNULL
        )
        try:
            async with asyncio.timeout(START_SECONDS):
                await _until_warm(socket, release)
            yield socket
        finally:
            process.terminate()
            await process.wait()


async def _until_warm(socket: Path, release: ReleaseConfig) -> None:
    connection = await _first_connection(socket)
    await connection.call("POST", "/v1/open", release.model_dump_json(by_alias=True).encode())
    while True:
        state = RuntimeState.model_validate_json(await connection.call("GET", "/v1/state"))
        (held,) = state.releases
        assert held.phase != "Failed", held.message
        if held.phase == "Warm":
            connection.writer.close()
            return
        await asyncio.sleep(0.05)


async def _first_connection(socket: Path) -> Connection:
    while True:
        try:
            return await Connection.open(socket)
        except (FileNotFoundError, ConnectionRefusedError):
            await asyncio.sleep(0.05)
