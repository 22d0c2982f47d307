"""A real API server, without nodes and controllers, for tests marked `apiserver`: one a session, a namespace a test.

Where the lab's binaries are missing these tests are skipped with the reason.
"""

import os
import secrets
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.e2e.cluster import Cluster, Namespace
from tests.integration.indexer_process import Indexer, new_indexer

from tidegate_api.crdgen import crd_files
from tidegate_operator.adapters.kube import KubeCluster

LAB = Path(__file__).resolve().parent.parent / "e2e" / "lab"
LAB_HOME = Path(os.environ.get("TIDEGATE_LAB", "/var/lib/tidegate-lab"))
START_SECONDS = 180
# Starting the server counts for the first test that needs it.
TEST_SECONDS = 240


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the API server."""
    for item in items:
        if "api_server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.apiserver)
            item.add_marker(pytest.mark.timeout(TEST_SECONDS))


@pytest.fixture(scope="session")
def api_server() -> Iterator[Cluster]:
    """Return an API server with our resource definitions."""
    if not (LAB_HOME / "bin" / "kube").exists():
        pytest.skip(f"no API server: {LAB_HOME}/bin is empty; run tests/e2e/lab/build.sh")
    name = f"it{secrets.token_hex(3)}"
    environment = {**os.environ, "LAB_NAME": name, "LAB_PORT": str(_free_ports())}
    up = [LAB / "up.sh", "--control-plane-only", "--api-only"]
    try:
        subprocess.run(up, env=environment, check=True, capture_output=True, text=True, timeout=START_SECONDS)
        cluster = Cluster(
            provider="lab",
            kubeconfig=LAB_HOME / "run" / name / "admin.kubeconfig",
            path=os.pathsep.join([str(LAB_HOME / "bin"), os.environ["PATH"]]),
        )
        install_definitions(cluster)
        started = (LAB_HOME / "run" / name / "pids").read_text().split()
        yield cluster
        subprocess.run([LAB / "down.sh"], env=environment, check=True, capture_output=True, timeout=60)
        assert not (LAB_HOME / "run" / name).exists()
        assert [pid for pid in started if _runs_a_part(pid)] == []
    finally:
        subprocess.run([LAB / "down.sh"], env=environment, check=False, capture_output=True, timeout=60)


def _runs_a_part(pid: str) -> bool:
    """Return whether the process with this id runs one of the lab's programs."""
    try:
        return Path(f"/proc/{pid}/exe").resolve().is_relative_to((LAB_HOME / "bin").resolve())
    except OSError:
        return False


@pytest.fixture
def namespace(api_server: Cluster) -> Iterator[Namespace]:
    """Return a new namespace. Without controllers its objects stay; names are never used twice."""
    name = f"t-{secrets.token_hex(4)}"
    api_server.kubectl("create", "namespace", name)
    yield Namespace(api_server, name)
    for kind in ("knowledgebases", "retrievalpipelines", "routingpolicies"):
        api_server.kubectl("-n", name, "delete", kind, "--all", "--ignore-not-found")


@pytest.fixture
async def kube(api_server: Cluster) -> AsyncIterator[KubeCluster]:
    """Return the operator's adapter, connected as an administrator."""
    async with await KubeCluster.from_environment(str(api_server.kubeconfig)) as cluster:
        yield cluster


@pytest.fixture
def indexer(tmp_path: Path) -> Iterator[Indexer]:
    """Return an indexer process that is not started, with one empty source on a volume."""
    made = new_indexer(tmp_path)
    yield made
    made.kill()


def install_definitions(cluster: Cluster) -> None:
    """Install our resource definitions and wait until they are served."""
    text = "---\n".join(crd_files().values())
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=text)
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")


def _free_ports() -> int:
    """Return a port that is free together with the few after it."""
    for _ in range(50):
        first = secrets.randbelow(20_000) + 20_000
        if all(_free(port) for port in range(first, first + 6)):
            return first
    raise RuntimeError("no free ports on this machine")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
