"""Fixtures of the end-to-end tests: one cluster and one set of images a session, a namespace a test.

The cluster is the one that `cluster.sh` finds or starts; one that was already running is left as it
was. Where none can be had the tests are skipped with the reason, or fail with it when
TIDEGATE_REQUIRE_CLUSTER is set, so that a continuous build can't pass by skipping.

Tests may run side by side (`pytest -n`): each has a namespace of its own, and what they share is set up
by one worker after the other. Those that break what all of them stand on, the API server say, or the
operator, are marked `alone` and belong in a run without `-n`; tests/run.sh does both.
"""

import fcntl
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from tests.e2e.chart import Chart
from tests.e2e.cluster import SCRIPTS, Cluster, CommandError, Namespace, images_by_plane, run, running_cluster
from tests.e2e.wait import wait_for

# building Kubernetes from nothing on two busy cores; a second when it is there
CLUSTER_SECONDS = 2700
IMAGES_SECONDS = 900
TEST_SECONDS = 600
OPERATOR_NAMESPACE = "tidegate-system"
STATE = SCRIPTS.parents[1] / ".state"
# There while the cluster is one that tests have started.
STARTED_HERE = STATE / "e2e-started-the-cluster"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that keeps a cluster which the session has started."""
    parser.addoption("--keep-cluster", action="store_true", help="leave the cluster running that the tests started")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs a cluster; time limits count the test alone, not the start of the cluster."""
    for item in items:
        if SCRIPTS in item.path.parents and "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.timeout(TEST_SECONDS, func_only=True))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Forget what a session left behind that was killed: its cluster is one that was already running."""
    if not _is_worker(session):
        STARTED_HERE.unlink(missing_ok=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the cluster that this session has started, once no worker needs it any more."""
    if (
        not _is_worker(session)
        and STARTED_HERE.exists()
        and not session.config.getoption("keep_cluster", default=False)
    ):
        run(SCRIPTS / "cluster.sh", "down", timeout_seconds=CLUSTER_SECONDS)
        STARTED_HERE.unlink()


@contextmanager
def one_worker_at_a_time() -> Iterator[None]:
    """Keep the other workers of this session out of the block."""
    STATE.mkdir(exist_ok=True)
    with (STATE / "e2e.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """Return the running cluster, started when there is none."""
    script = SCRIPTS / "cluster.sh"
    try:
        run(script, "check")
    except CommandError as error:
        if os.environ.get("TIDEGATE_REQUIRE_CLUSTER"):
            raise
        pytest.skip(f"no cluster: {error}")
    with one_worker_at_a_time():
        if not _succeeds("status"):
            STARTED_HERE.touch()
            run(script, "up", timeout_seconds=CLUSTER_SECONDS)
    return running_cluster()


@pytest.fixture(scope="session")
def images(cluster: Cluster) -> Mapping[str, str]:
    """Return the image names by plane, built from this tree and known to the cluster's nodes."""
    with one_worker_at_a_time():
        told = run(SCRIPTS / "images.sh", "load", timeout_seconds=IMAGES_SECONDS, path=cluster.path)
    return images_by_plane(told)


@pytest.fixture(scope="session")
def chart(cluster: Cluster, images: Mapping[str, str]) -> Chart:
    """Return the chart, to be installed with this session's images."""
    return Chart(cluster, images)


@pytest.fixture(scope="session")
def operator(chart: Chart) -> Namespace:
    """Return the namespace of an operator that serves the whole cluster, installed by the chart."""
    with one_worker_at_a_time():
        chart.install(OPERATOR_NAMESPACE)
    return Namespace(chart.cluster, OPERATOR_NAMESPACE)


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """Return a new namespace that refuses pods which the restricted profile refuses."""
    with new_namespace(cluster, request.node.name) as created:
        yield created


@contextmanager
def new_namespace(cluster: Cluster, title: str) -> Iterator[Namespace]:
    """Yield a namespace of its own, named after `title`, and delete it afterwards."""
    words = re.sub(r"[^a-z0-9]+", "-", title.lower().removeprefix("test_"))
    name = f"{words[:40].strip('-')}-{secrets.token_hex(3)}"
    with one_worker_at_a_time():
        run(SCRIPTS / "cluster.sh", "free-volumes", path=cluster.path)
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    created = Namespace(cluster, name)
    wait_for(
        lambda: created.get("serviceaccount/default"),
        what="the namespace has its default service account",
        timeout_seconds=30,
        describe=lambda: cluster.kubectl("get", "namespace", name, "-o", "yaml"),
    )
    yield created
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def _is_worker(session: pytest.Session) -> bool:
    return hasattr(session.config, "workerinput")


def _succeeds(command: str) -> bool:
    try:
        run(SCRIPTS / "cluster.sh", command)
    except CommandError:
        return False
    return True
