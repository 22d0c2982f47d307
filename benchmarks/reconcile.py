"""A thousand of each kind against an API server alone: how long until all is settled, at what cost, and is it quiet then.

An API server and etcd are started without nodes and controllers, the operator as a process of its own.
All objects are put in at once; measured is the time until every status speaks of its generation and no
write follows, requests and CPU per object, then memory over further changes of each, then writes at
rest. The documents' language is given, so that index revisions are made although no indexer runs.

    python benchmarks/reconcile.py [--objects 1000] [--changes 10] [--rest-seconds 600]

Prints RESULT lines; a missed bar is named and makes the exit status 1.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.integration.operator_process import OperatorProcess, running_operator

from tidegate_api.crdgen import crd_files
from tidegate_operator.adapters.kube import KubeCluster
from tidegate_operator.core.kinds import OWN_KINDS, Kind, Manifest, api_version, plural

LAB = Path(__file__).resolve().parent.parent / "tests" / "e2e" / "lab"
LAB_HOME = Path(os.environ.get("TIDEGATE_LAB", "/var/lib/tidegate-lab"))
NAMESPACES = 10
PARALLEL = 32
# Writing its metrics down is work for an API server, too.
LOOK_SECONDS = 2.0
# A key whose request has failed (the API server was busy) is looked at again after 75 s at most.
RETRIED_SECONDS = 90.0
# A published run of another operator takes this long for a thousand custom resources.
BAR_SETTLE_SECONDS = 258.0
BAR_REST_WRITES = 0
BAR_MEMORY_GROWTH_SHARE = 0.05
# Connections and caches grow until these are through; what grows after them is a leak.
FIRST_CHANGES = 2
_COUNTED = re.compile(r"^apiserver_request_total\{(?P<labels>.*)\} (?P<count>\S+)$", re.MULTILINE)
_RESOURCE = re.compile(r'resource="([^"]*)"')
_VERB = re.compile(r'verb="(\w+)"')
# The API server writes for itself now and then; only what the operator may touch is counted.
_OURS = frozenset({plural(kind) for kind in Kind if kind is not Kind.LEASE} | {"events"})
_WRITES = frozenset({"APPLY", "CREATE", "DELETE", "PATCH", "POST", "PUT", "UPDATE"})


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests that the API server has counted, Leases left out."""

    reads: int
    writes_by: Counter[str]

    @property
    def writes(self) -> int:
        """All writes, of whatever verb and resource."""
        return self.writes_by.total()

    def __sub__(self, other: "Requests") -> "Requests":
        """Return what came after `other`."""
        return Requests(self.reads - other.reads, self.writes_by - other.writes_by)


class Subject:
    """The API server with the objects, and the operator that is measured."""

    def __init__(self, kube: KubeCluster, operator: OperatorProcess, *, objects: int) -> None:
        self.kube = kube
        self.operator = operator
        self.names = [(f"bench-{number % NAMESPACES}", f"kb{number:04}") for number in range(objects)]

    async def each(self, work: Callable[[str, str], Awaitable[None]]) -> None:
        """Do something for every name, many at a time."""
        slots = asyncio.Semaphore(PARALLEL)

        async def one(namespace: str, name: str) -> None:
            async with slots:
                await work(namespace, name)

        await asyncio.gather(*(one(*place) for place in self.names))

    async def put(self, change: int) -> None:
        """Create the objects (change 0) or change each of them."""

        async def work(namespace: str, name: str) -> None:
            for kind, spec in specs(name, change):
                body = {
                    "apiVersion": api_version(kind),
                    "kind": str(kind),
                    "metadata": {"name": name, "namespace": namespace},
                    "spec": spec,
                }
                status, answer = await self.kube._call(
                    "PATCH",
                    f"/apis/{api_version(kind)}/namespaces/{namespace}/{plural(kind)}/{name}",
                    query={"fieldManager": "bench", "force": "true"},
                    body=body,
                    content_type="application/apply-patch+yaml",
                )
                if status >= 300:
                    raise RuntimeError(answer)

        await self.each(work)

    async def settled(self) -> bool:
        """Return whether every status speaks of its object's generation."""
        for kind in OWN_KINDS:
            for item in await self.kube.find(kind, None):
                if (item.get("status") or {}).get("observedGeneration") != item["metadata"]["generation"]:
                    return False
        return True

    async def until_quiet(self, *, quiet_seconds: float = 6.0) -> float:
        """Return when the last write was seen, once all is settled and none has followed for a while."""
        last, at = await self.requests(), time.monotonic()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = await self.requests()
            if now.writes != last.writes:
                last, at = now, time.monotonic()
            elif time.monotonic() - at >= quiet_seconds and await self.settled():
                return at

    async def requests(self) -> Requests:
        """Return what the API server has counted so far."""
        answer = await self.kube._client.rest_client.request("GET", f"{self.kube._client.configuration.host}/metrics")
        text = (await answer.read()).decode()
        reads, writes = 0, Counter[str]()
        for found in _COUNTED.finditer(text):
            verb, resource = _VERB.search(found["labels"]), _RESOURCE.search(found["labels"])
            if verb is None or resource is None or resource[1] not in _OURS:
                continue
            if verb[1] in _WRITES:
                writes[f"{verb[1]} {resource[1]}"] += int(float(found["count"]))
            elif verb[1] in ("GET", "LIST"):
                reads += int(float(found["count"]))
        return Requests(reads, writes)

    def cpu_seconds(self) -> float:
        """Return the CPU time of the operator."""
        fields = Path(f"/proc/{self.operator.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mib(self) -> float:
        """Return the resident memory of the operator."""
        status = Path(f"/proc/{self.operator.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) / 1024 if found else 0.0


def specs(name: str, change: int) -> Iterator[tuple[Kind, Manifest]]:
    """Yield the three specs of a name; `change` tells one generation from the next."""
    sources = [{"name": "files", "from": {"configMap": {"name": "files"}}, "refresh": f"{15 + change}m"}]
    yield Kind.KNOWLEDGE_BASE, {"language": "en", "sources": sources}
    yield (
        Kind.RETRIEVAL_PIPELINE,
        {"knowledgeBases": [{"name": name}], "auth": {"anonymous": {}}, "limits": {"maxTopK": 100 + change}},
    )
    yield Kind.ROUTING_POLICY, {"pipeline": {"name": name}, "rollbackWindow": {"duration": f"{2 + change}h"}}


async def measure(subject: Subject, options: argparse.Namespace) -> dict[str, float]:
    """Run the phases and return the figures."""
    count = 3 * options.objects
    before, cpu, began = await subject.requests(), subject.cpu_seconds(), time.monotonic()
    await subject.put(0)
    put_seconds = time.monotonic() - began
    settle_seconds = await subject.until_quiet() - began
    spent = await subject.requests() - before
    figures = {
        "put_seconds": put_seconds,
        "settle_seconds": settle_seconds,
        "reads_per_object": spent.reads / count,
        # The objects themselves are put by this benchmark, one write each.
        "writes_per_object": spent.writes / count - 1,
        "cpu_ms_per_object": 1000 * (subject.cpu_seconds() - cpu) / count,
        "memory_mib": subject.memory_mib(),
    }
    show(figures)  # the rest takes far longer
    peaks = []
    for change in range(1, options.changes + 1):
        await subject.put(change)
        await subject.until_quiet()
        peaks.append(subject.memory_mib())
        print(f"change {change}: {peaks[-1]:.0f} MiB", flush=True)
    if peaks:
        settled_mib = peaks[min(FIRST_CHANGES, len(peaks)) - 1]
        figures |= {"memory_mib_after_changes": peaks[-1], "memory_growth_share": peaks[-1] / settled_mib - 1}
    await asyncio.sleep(RETRIED_SECONDS)
    before, cpu = await subject.requests(), subject.cpu_seconds()
    await asyncio.sleep(options.rest_seconds)
    spent = await subject.requests() - before
    print(f"writes at rest: {dict(spent.writes_by) or 'none'}")
    figures |= {"rest_writes": spent.writes, "rest_cpu_seconds": subject.cpu_seconds() - cpu}
    return figures


@contextlib.contextmanager
def api_server() -> Iterator[Path]:
    """Start an API server alone and yield its kubeconfig."""
    name = f"be{secrets.token_hex(3)}"
    environment = {**os.environ, "LAB_NAME": name, "LAB_PORT": str(20_000 + secrets.randbelow(20_000))}
    try:
        up = [LAB / "up.sh", "--control-plane-only", "--api-only"]
        subprocess.run(up, env=environment, check=True, capture_output=True, timeout=180)
        yield LAB_HOME / "run" / name / "admin.kubeconfig"
    finally:
        subprocess.run([LAB / "down.sh"], env=environment, check=False, capture_output=True, timeout=60)


def prepare(kubeconfig: Path) -> None:
    """Install the definitions, make namespaces and sources."""
    kubectl = [LAB_HOME / "bin" / "kubectl", f"--kubeconfig={kubeconfig}"]
    definitions = "---\n".join(crd_files().values())
    subprocess.run(
        [*kubectl, "apply", "--server-side", "-f", "-"], input=definitions, text=True, check=True, capture_output=True
    )
    subprocess.run([*kubectl, "wait", "--for=condition=Established", "crd", "--all"], check=True, capture_output=True)
    for number in range(NAMESPACES):
        items = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"bench-{number}"}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "files", "namespace": f"bench-{number}"}},
        ]
        for item in items:
            subprocess.run(
                [*kubectl, "create", "-f", "-"], input=json.dumps(item), text=True, check=True, capture_output=True
            )


def show(figures: dict[str, float]) -> None:
    """Print figures as they are known."""
    for name, value in figures.items():
        print(f"RESULT reconcile_{name}={value:.3f}", flush=True)


def missed(figures: dict[str, float]) -> list[str]:
    """Return the bars that were not met."""
    found = []
    if figures["settle_seconds"] > BAR_SETTLE_SECONDS:
        found.append(f"settled after {figures['settle_seconds']:.0f} s, the bar is {BAR_SETTLE_SECONDS:.0f} s")
    if figures["rest_writes"] > BAR_REST_WRITES:
        found.append(f"{figures['rest_writes']:.0f} writes at rest, the bar is {BAR_REST_WRITES}")
    if figures.get("memory_growth_share", 0.0) > BAR_MEMORY_GROWTH_SHARE:
        found.append(f"memory grew by {figures['memory_growth_share']:.0%} over the changes")
    return found


async def run(options: argparse.Namespace) -> int:
    """Measure and print; return the exit status."""
    with api_server() as kubeconfig, tempfile.TemporaryDirectory() as folder:
        prepare(kubeconfig)
        with running_operator(kubeconfig, Path(folder)) as operator:
            async with await KubeCluster.from_environment(str(kubeconfig)) as kube:
                figures = await measure(Subject(kube, operator, objects=options.objects), options)
    show(figures)
    for line in missed(figures):
        print(f"MISSED {line}")
    return 1 if missed(figures) else 0


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="Reconcile many objects against an API server alone.")
    parser.add_argument("--objects", type=int, default=1000, help="of each of the three kinds")
    parser.add_argument("--changes", type=int, default=10, help="further changes of every object")
    parser.add_argument("--rest-seconds", type=float, default=600.0, help="how long nothing may be written")
    options = parser.parse_args()
    if not (LAB_HOME / "bin" / "kube").exists():
        print(f"no API server: {LAB_HOME}/bin is empty; run tests/e2e/lab/build.sh")
        return 2
    return asyncio.run(run(options))


if __name__ == "__main__":
    sys.exit(main())
