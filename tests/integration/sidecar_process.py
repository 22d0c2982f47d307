"""A sidecar as a process in front of a played runtime, with its configuration in a folder."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.integration.sidecar_lab import Answer, PlayedRuntime, call, until
from tests.unit.sidecar.builders import config

from tidegate_api.config import RoutingTable, SidecarConfig, SidecarState

KEY = "k-123456"
BEARER = {"authorization": f"Bearer {KEY}"}


@dataclass
class Sidecar:
    """A running sidecar, its folder and its runtime."""

    folder: Path
    runtime: PlayedRuntime
    process: asyncio.subprocess.Process
    port: int = 0
    state_port: int = 0
    log: list[dict[str, Any]] = field(default_factory=list)

    async def ask(self, query: str = "how many days", /, **headers: str) -> Answer:
        return await call(self.port, "POST", "/v1/retrieve", {"query": query}, **headers)

    async def state(self) -> SidecarState:
        return SidecarState.model_validate((await call(self.state_port, "GET", "/v1/state")).document)

    async def ready(self) -> bool:
        return (await call(self.port, "GET", "/readyz")).status == 200

    def put(self, name: str, document: RoutingTable | SidecarConfig | bytes) -> None:
        put(self.folder, name, document)

    async def read_log(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.log.append(json.loads(line))

    async def listening(self) -> None:
        await until(lambda: any(line["message"] == "listening" for line in self.log), "the sidecar listens")
        ports = next(line for line in self.log if line["message"] == "listening")
        self.port, self.state_port = ports["port"], ports["state_port"]


def put(folder: Path, name: str, document: RoutingTable | SidecarConfig | bytes) -> None:
    content = document if isinstance(document, bytes) else document.model_dump_json(by_alias=True).encode()
    fresh = folder / f".{name}"
    fresh.write_bytes(content)
    fresh.replace(folder / name)


async def start(folder: Path, *more: str) -> asyncio.subprocess.Process:
    arguments = [
        *("--config", str(folder / "config.json"), "--table", str(folder / "table.json")),
        *("--runtime-socket", str(folder / "runtime.sock")),
        *("--listen", "127.0.0.1:0", "--state-listen", "127.0.0.1:0"),
    ]
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tidegate_sidecar", *arguments, *more, stderr=asyncio.subprocess.PIPE
    )


@contextlib.asynccontextmanager
async def running(
    folder: Path, *, settings: SidecarConfig | None = None, tables: RoutingTable | None = None
) -> AsyncIterator[Sidecar]:
    """Run a sidecar on `folder`; with a table, wait until it is ready."""
    put(folder, "config.json", settings or config())
    if tables is not None:
        put(folder, "table.json", tables)
    async with PlayedRuntime(folder / "runtime.sock").listening() as runtime:
        sidecar = Sidecar(folder, runtime, await start(folder))
        reading = asyncio.create_task(sidecar.read_log())
        try:
            await sidecar.listening()
            if tables is not None:
                await until(sidecar.ready, "the sidecar is ready")
            yield sidecar
        finally:
            with contextlib.suppress(ProcessLookupError):
                sidecar.process.kill()
            await sidecar.process.wait()
            await reading


def keys(folder: Path, **entries: bytes) -> SidecarConfig:
    """Configure API keys, one file a key."""
    directory = folder / "keys"
    directory.mkdir(exist_ok=True)
    for name, content in entries.items():
        (directory / name).write_bytes(content)
    return config(anonymous=False, api_keys_dir=str(directory))
