"""The smuggling corpus against the real front, on real sockets and the loop that production uses."""

import asyncio
import json

import pytest
import uvloop
from tests.unit.sidecar.smuggling.corpus import Case, load_corpus

from tidegate_sidecar.answers import Response
from tidegate_sidecar.http1 import HttpServer, Request, Respond

CASES = load_corpus()


async def exchange(raw: bytes) -> tuple[bytes, list[str]]:
    """Send `raw` on a connection of its own; return all that came back and the targets handlers saw."""
    seen: list[str] = []

    def handle(request: Request, respond: Respond) -> None:
        seen.append(request.target.decode())
        respond(Response(200, b"{}"))

    server = HttpServer(handle)
    port = await server.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(raw)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = int(answer.split(b"content-length: ")[1].split(b"\r\n")[0])
        answer += await reader.readexactly(length)
        if b"\r\nconnection: close\r\n" in answer:
            answer += await reader.read()
    finally:
        writer.close()
        await server.drain(1)
    return answer, seen


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_corpus(case: Case) -> None:
    async def run() -> tuple[bytes, list[str]]:
        async with asyncio.timeout(10):
            return await exchange(case.raw)

    answer, seen = uvloop.run(run())
    assert answer.startswith(b"HTTP/1.1 %d " % case.status)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert seen == list(case.seen)
    if case.status != 200:
        assert b"\r\nconnection: close\r\n" in answer
        assert json.loads(answer.rpartition(b"\r\n\r\n")[2])["error"]["query_id"]
