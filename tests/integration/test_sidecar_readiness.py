"""When the sidecar process says that it is ready, and how soon it notices that it is not."""

import time

from tests.integration.sidecar_lab import call, until
from tests.integration.sidecar_process import running
from tests.unit.sidecar.builders import table


async def test_readiness_waits_for_a_table_and_its_stable_release(tmp_path):
    async with running(tmp_path) as sidecar:

        async def says(message: str) -> bool:
            answer = await call(sidecar.port, "GET", "/readyz")
            return answer.status == 503 and message in answer.document["error"]["message"]

        await until(lambda: says("no routing table"), "the missing table is told")
        assert (await sidecar.ask()).document["error"]["code"] == "release_unavailable"
        assert (await call(sidecar.port, "GET", "/healthz")).status == 200
        sidecar.runtime.opens_as = "Loading"
        sidecar.put("table.json", table("rel-a"))
        await until(lambda: says("rel-a is Loading"), "loading is told")
        sidecar.runtime.phases["rel-a"] = "Warm"
        await until(sidecar.ready, "the sidecar is ready")


async def test_a_runtime_that_goes_and_comes_back(tmp_path):
    async with running(tmp_path, tables=table()) as sidecar:
        path = sidecar.runtime.path
        await sidecar.runtime.drop_connections()
        path.rename(path.with_suffix(".gone"))
        gone = await sidecar.ask()
        assert (gone.status, gone.headers["retry-after"]) == (503, "1")
        assert gone.document["error"]["code"] == "release_unavailable"

        async def not_ready() -> bool:
            return not await sidecar.ready()

        await until(not_ready, "the sidecar is not ready")
        metrics = (await call(sidecar.state_port, "GET", "/metrics")).body
        assert (b"tidegate_requests_total" in metrics, b"tidegate_node_seconds" in metrics) == (True, False)
        sidecar.runtime.phases.clear()
        path.with_suffix(".gone").rename(path)
        await until(sidecar.ready, "the release is warm again")
        assert (await sidecar.ask()).status == 200


async def test_a_runtime_that_is_killed_is_noticed_before_anybody_asks(tmp_path):
    async with running(tmp_path, tables=table()) as sidecar:
        path = sidecar.runtime.path
        path.rename(path.with_suffix(".gone"))
        began = time.monotonic()
        await sidecar.runtime.drop_connections()

        async def not_ready() -> bool:
            return not await sidecar.ready()

        await until(not_ready, "the sidecar is not ready")
        assert time.monotonic() - began < 2
        assert not sidecar.runtime.searches
