"""What the sidecar costs: CPU for each request, against nginx, and memory at rest.

Three servers stand in turn before the same Unix-socket upstream: the whole sidecar (key, 256 rules, 10,000
pinned tenants, JSON, metrics), its front and client alone (`bare`), and nginx. CPU is what the kernel counts
for the server's threads over a round of requests on kept-alive connections; rounds alternate between
the servers, and medians are reported, so other work on the machine hits all of them alike; the fastest round
says what a quiet machine would come to. The upstream answers with ten results of a thousand characters; `--answer-bytes` changes that.
"""

import argparse
import asyncio
import contextlib
import json
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import httptools
import uvloop

from tidegate_api.config import (
    AuthConfig,
    HeaderMatch,
    IndexRef,
    NodeConfig,
    PinConfig,
    PipelineConfig,
    ReleaseConfig,
    ReleaseState,
    RoutingTable,
    RuleConfig,
    RuntimeState,
    SidecarConfig,
    Versions,
)
from tidegate_sidecar.adapters.runtime_socket import RuntimeSocket
from tidegate_sidecar.answers import Response
from tidegate_sidecar.http1 import Cancel, HttpServer, Request, Respond
from tidegate_sidecar.ports import RuntimeReply

KEY = "bench-0123456789abcdef"
CONNECTIONS = 8
CPU_BAR_US = 100
RATIO_BAR = 1.6
RSS_BAR_MB = 64
NGINX = """
user root; worker_processes 1; daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 256; }}
http {{
  access_log off; keepalive_requests 1000000000;
  upstream runtime {{ server unix:{upstream}; keepalive 64; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://runtime/v1/search; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
}}
"""


# --- the servers, each a process of its own ------------------------------------------------------


class Upstream(asyncio.Protocol):
    """A runtime that has every release warm and one answer to every search."""

    answer = b""
    state = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        """Parse."""
        self.parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        """Remember what is asked."""
        self.url = url

    def on_message_complete(self) -> None:
        """Answer."""
        self.transport.write(self.state if self.url == b"/v1/state" else self.answer)  # type: ignore[attr-defined]


def http_answer(body: bytes) -> bytes:
    """Return an answer as the runtime writes it."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-tidegate-results: 10\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


async def serve_upstream(path: str, answer_bytes: int) -> None:
    """Serve the upstream until killed."""
    content = "x" * (answer_bytes // 10)
    results = [{"chunk_id": f"c{n}", "document_id": f"d{n}.md", "content": content} for n in range(10)]
    document = {"results": results, "degraded": [], "timings_ms": {"total": 5.0}}
    Upstream.answer = http_answer(json.dumps(document).encode())
    states = [ReleaseState(name=release.name, phase="Warm") for release in routing_table().releases]
    Upstream.state = http_answer(RuntimeState(process="p", releases=states).model_dump_json(by_alias=True).encode())
    await asyncio.get_running_loop().create_unix_server(Upstream, path)
    await asyncio.Event().wait()


async def serve_bare(path: str, port: int) -> None:
    """Serve the sidecar's front and its client of the runtime, with nothing between them, until killed."""
    runtime, loop = RuntimeSocket(path), asyncio.get_running_loop()

    def forward(request: Request, respond: Respond) -> Cancel:
        def answer(outcome: RuntimeReply | Exception) -> None:
            assert isinstance(outcome, RuntimeReply), outcome
            respond(Response(outcome.status, outcome.body))

        return runtime.search(request.body, deadline=loop.time() + 10, done=answer).cancel

    await HttpServer(forward).start("127.0.0.1", port)
    await asyncio.Event().wait()


# --- what the sidecar is given -------------------------------------------------------------------


def routing_table() -> RoutingTable:
    """Return a table of 256 rules and 10,000 pinned tenants, none of which is the one that asks."""
    pipeline = PipelineConfig(
        knowledge_bases=["handbook"], nodes=[NodeConfig(name="lexical", type="bm25")], output="lexical"
    )
    releases = [
        ReleaseConfig.make(
            pipeline=pipeline,
            indexes=[IndexRef(knowledge_base="handbook", revision=f"handbook-{n}")],
            versions=Versions(runtime="1", sidecar="1"),
        )
        for n in range(2)
    ]
    stable, candidate = (release.name for release in releases)
    rules = [
        RuleConfig(name=f"tenants-{n}", tenants=[f"t-{n}-{m}" for m in range(8)], release=candidate) for n in range(128)
    ]
    rules += [
        RuleConfig(name=f"users-{n}", users=[f"u-{n}-{m}" for m in range(8)], release=candidate) for n in range(96)
    ]
    rules += [
        RuleConfig(name=f"headers-{n}", headers=[HeaderMatch(name="x-beta", exact=str(n))], release=candidate)
        for n in range(32)
    ]
    return RoutingTable(
        version=1,
        pipeline="handbook",
        salt="acme/handbook",
        stable=stable,
        candidate=candidate,
        share=5,
        pins=[PinConfig(tenants=[f"pinned-{n}" for n in range(10_000)], release=stable)],
        rules=rules,
        releases=releases,
    )


def write_inputs(folder: Path) -> None:
    """Write configuration, keys and table as files."""
    keys = folder / "keys"
    keys.mkdir()
    for n in range(20):
        digest = sha256(KEY.encode() if n == 0 else f"other-{n}".encode()).hexdigest()
        (keys / f"key-{n}").write_text(json.dumps({"sha256": digest, "tenants": [f"tenant-{n}"]}))
    config = SidecarConfig(pipeline="handbook", namespace="acme", auth=AuthConfig(api_keys_dir=str(keys)))
    (folder / "config.json").write_text(config.model_dump_json(by_alias=True))
    (folder / "table.json").write_text(routing_table().model_dump_json(by_alias=True))


# --- measuring -----------------------------------------------------------------------------------


def request_bytes() -> bytes:
    """Return the request that every server gets."""
    body = json.dumps({"query": "how many days of leave do I have in my first year?", "top_k": 10}).encode()
    head = (
        "POST /v1/retrieve HTTP/1.1\r\nHost: localhost:8080\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\n"
        f"User-Agent: bench/1\r\nContent-Type: application/json\r\nAuthorization: Bearer {KEY}\r\n"
        f"X-Tidegate-User: user-17\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@dataclass
class Target:
    """A server under load."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    connections: list[socket.socket] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)

    def connect(self) -> None:
        """Open the connections; waits for the server to listen."""
        for _ in range(CONNECTIONS):
            self.connections.append(_connected(self.port))

    def cpu_seconds(self) -> float:
        """Return the CPU time of all threads so far: utime + stime, without their ticks of 10 ms."""
        tasks = Path(f"/proc/{self.process.pid}/task")
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9

    def round(self, request: bytes, count: int) -> None:
        """Send `count` requests, one at a time on each connection, and note the CPU they cost."""
        before = self.cpu_seconds()
        for _ in range(count // CONNECTIONS):
            for connection in self.connections:
                connection.sendall(request)
            for connection in self.connections:
                _read_answer(connection)
        self.cpu_us.append((self.cpu_seconds() - before) / count * 1e6)

    def memory_mb(self) -> float:
        """Return resident memory."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def _connected(port: int) -> socket.socket:
    for _ in range(200):
        with contextlib.suppress(ConnectionRefusedError):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        time.sleep(0.05)
    raise SystemExit(f"nothing listens on port {port}")


def _read_answer(connection: socket.socket) -> bytes:
    data = connection.recv(262_144)
    head, _, body = data.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), data[:500]
    missing = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]) - len(body)
    while missing > 0:
        more = connection.recv(262_144)
        missing -= len(more)
        body += more
    return body


def free_port() -> int:
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process until the end of the block."""
    process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def start_targets(stack: contextlib.ExitStack, folder: Path, upstream: str) -> dict[str, Target]:
    """Start every server that can be had."""
    targets: dict[str, Target] = {}

    def add(name: str, port: int, *arguments: str) -> None:
        targets[name] = Target(name, stack.enter_context(started(*arguments)), port)

    port, state_port = free_port(), free_port()
    options = ("--config", f"{folder}/config.json", "--table", f"{folder}/table.json", "--runtime-socket", upstream)
    listen = ("--listen", f"127.0.0.1:{port}", "--state-listen", f"127.0.0.1:{state_port}")
    add("sidecar", port, sys.executable, "-m", "tidegate_sidecar", *options, *listen)
    port = free_port()
    add("bare", port, sys.executable, __file__, "--serve-bare", upstream, "--port", str(port))
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        print("nginx is not installed (apt-get install nginx-light): no comparison with it")
    else:
        port = free_port()
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, upstream=upstream, port=port))
        add("nginx", port, nginx, "-c", f"{folder}/nginx.conf", "-p", str(folder))
    return targets


def wait_until_ready(port: int) -> None:
    """Wait until the sidecar is ready."""
    for _ in range(400):
        connection = _connected(port)
        connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = connection.recv(65_536)
        connection.close()
        if answer.startswith(b"HTTP/1.1 200 "):
            return
        time.sleep(0.05)
    raise SystemExit(f"the sidecar did not become ready: {answer.decode()}")


def measure(arguments: argparse.Namespace) -> None:
    """Measure and print."""
    print(f"{platform.python_implementation()} {platform.python_version()} of {sys.base_prefix}")
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        write_inputs(folder)
        upstream = f"{folder}/upstream.sock"
        serve = ("--serve-upstream", upstream, "--answer-bytes", str(arguments.answer_bytes))
        stack.enter_context(started(sys.executable, __file__, *serve))
        targets = start_targets(stack, folder, upstream)
        sidecar = targets["sidecar"]
        wait_until_ready(sidecar.port)
        at_rest = sidecar.memory_mb()
        for target in targets.values():
            target.connect()
        request = request_bytes()
        for _ in range(arguments.rounds + 1):
            for target in targets.values():
                target.round(request, arguments.requests)
        report(targets, at_rest=at_rest)


def report(targets: dict[str, Target], *, at_rest: float) -> None:
    """Print medians; the first round warmed up and is left out."""
    cpu = {name: statistics.median(target.cpu_us[1:]) for name, target in targets.items()}
    for name, value in cpu.items():
        print(f"RESULT {name}_cpu_us_per_request={value:.1f}")
        print(f"RESULT {name}_cpu_us_fastest_round={min(targets[name].cpu_us[1:]):.1f}")
    print(f"bar: at most {CPU_BAR_US} us for the sidecar")
    if "nginx" in targets:
        ratios = [
            bare / nginx for bare, nginx in zip(targets["bare"].cpu_us[1:], targets["nginx"].cpu_us[1:], strict=True)
        ]
        print(f"RESULT bare_to_nginx={statistics.median(ratios):.2f}")
        print(f"bar: at most {RATIO_BAR} times nginx")
    print(f"RESULT sidecar_rss_at_rest_mb={at_rest:.1f}")
    print(f"RESULT sidecar_rss_after_load_mb={targets['sidecar'].memory_mb():.1f}")
    print(f"bar: at most {RSS_BAR_MB} MB at rest")


def main() -> None:
    """Read the flags and measure, or be one of the servers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40, help="alternations between the servers")
    parser.add_argument("--requests", type=int, default=800, help="requests of one round")
    parser.add_argument("--answer-bytes", type=int, default=10_000, help="text in an answer of the upstream")
    parser.add_argument("--serve-upstream", metavar="SOCKET", help=argparse.SUPPRESS)
    parser.add_argument("--serve-bare", metavar="SOCKET", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve_upstream:
        uvloop.run(serve_upstream(arguments.serve_upstream, arguments.answer_bytes))
    elif arguments.serve_bare:
        uvloop.run(serve_bare(arguments.serve_bare, arguments.port))
    else:
        measure(arguments)


if __name__ == "__main__":
    main()
