"""The operator's adapter keeps the contract against a real API server; so the fake in unit tests can be believed."""

import json
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path

import pytest
from aiohttp import web
from kubernetes.aio import client
from tests.e2e.cluster import Cluster, Namespace
from tests.unit.control.cluster_contract import ClusterContract, Theirs, config_map

from tidegate_operator.adapters.kube import KubeCluster
from tidegate_operator.core.kinds import Kind, Manifest, Ref
from tidegate_operator.core.plan import Note
from tidegate_operator.errors import RefusedError, UnavailableError


class TestKubeCluster(ClusterContract):
    @pytest.fixture
    def cluster(self, kube: KubeCluster) -> KubeCluster:
        return kube

    @pytest.fixture
    def namespace(self, namespace: Namespace) -> str:
        return namespace.name

    @pytest.fixture
    def theirs(self, namespace: str, kubectl_apply: Callable[[Manifest], Manifest]) -> Theirs:
        async def apply(manifest: Manifest) -> Manifest:
            return kubectl_apply(manifest)

        return apply


@pytest.fixture
def kubectl_apply(api_server: Cluster) -> Callable[[Manifest], Manifest]:
    """Return a function that applies a manifest as a user's tool does."""

    def apply(manifest: Manifest) -> Manifest:
        arguments = ("apply", "--server-side", "--field-manager=gitops", "-o", "json", "-f", "-")
        found: Manifest = json.loads(api_server.kubectl(*arguments, stdin=json.dumps(manifest)))
        return found

    return apply


async def test_a_member_that_the_schema_does_not_know_is_a_refusal_with_its_path(
    kube: KubeCluster, namespace: Namespace
) -> None:
    """The API server answers 500 to that; it must not be tried for ever as if the server were ill."""
    manifest = {**config_map(namespace.name, a="1"), "dat": {}}
    with pytest.raises(RefusedError, match=r"\.dat: field not declared in schema"):
        await kube.create(manifest)


async def test_a_value_out_of_bounds_is_a_refusal_with_the_servers_message(
    kube: KubeCluster, namespace: Namespace
) -> None:
    with pytest.raises(RefusedError, match="Invalid value"):
        await kube.create(config_map(namespace.name, **{"no/slash": "1"}))


async def test_many_objects_are_found_over_several_pages(
    kube: KubeCluster, namespace: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate_operator.adapters.kube.LIST_PAGE", 2)
    for number in range(5):
        await kube.create(config_map(namespace.name, name=f"page-{number}", labels={"pages": "yes"}))

    assert len(await kube.find(Kind.CONFIG_MAP, namespace.name, labels="pages=yes")) == 5


async def test_an_event_is_written_once_and_a_failure_to_write_one_is_none(
    kube: KubeCluster, namespace: Namespace
) -> None:
    ref = Ref(Kind.KNOWLEDGE_BASE, namespace.name, "docs")
    for _ in range(2):
        await kube.record_event(ref, "uid-1", Note("Normal", "Ready", "in force"), identity="7/Ready")
    (event,) = namespace.items("events")
    assert (event["reason"], event["involvedObject"]["name"]) == ("Ready", "docs")

    await kube.record_event(
        Ref(Kind.KNOWLEDGE_BASE, "no-such-namespace", "docs"), "uid-1", Note("Normal", "Ready", ""), identity="1"
    )


async def test_a_server_that_is_away_is_unavailable(namespace: Namespace, tmp_path: Path) -> None:
    text = namespace.cluster.kubeconfig.read_text()
    away = tmp_path / "away.kubeconfig"
    away.write_text(_with_port(text, "1"))
    async with await KubeCluster.from_environment(str(away)) as cluster:
        with pytest.raises(UnavailableError):
            await cluster.get(Ref(Kind.CONFIG_MAP, "default", "x"))


async def test_a_conflict_over_a_name_that_nobody_has_is_tried_again_later() -> None:
    """A quota that many objects count against at once answers so, too; it is no taken name."""

    async def answer(request: web.Request) -> web.Response:
        status = HTTPStatus.CONFLICT if request.method == "PATCH" else HTTPStatus.NOT_FOUND
        return web.json_response({"message": 'cannot be fulfilled on resourcequotas "q"'}, status=status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with KubeCluster(client.Configuration(host=f"http://127.0.0.1:{runner.addresses[0][1]}")) as cluster:
            with pytest.raises(UnavailableError, match="resourcequotas"):
                await cluster.create(config_map("acme", a="1"))
    finally:
        await runner.cleanup()


def _with_port(kubeconfig: str, port: str) -> str:
    head, _, rest = kubeconfig.partition("https://127.0.0.1:")
    return f"{head}https://127.0.0.1:{port}{rest[rest.index(chr(34)) :]}"
