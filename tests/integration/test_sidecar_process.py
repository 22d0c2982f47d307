"""The sidecar as a process: its ports, its configuration on disk, its signals, in front of a played runtime."""

import asyncio
import json
import os
import signal

import pytest
from tests.integration.sidecar_lab import (
    Call,
    call,
    echo,
    read_answer,
    reply,
    request_bytes,
    until,
)
from tests.integration.sidecar_process import BEARER, KEY, keys, put, running, start
from tests.unit.sidecar.builders import config, key_entry, table

from tidegate_api.config import LimitsConfig


async def test_a_question_is_answered_by_the_stable_release(tmp_path):
    async with running(
        tmp_path, settings=keys(tmp_path, web=key_entry(KEY, "acme")), tables=table("rel-a", version=3)
    ) as sidecar:
        answer = await sidecar.ask(**BEARER)
        assert answer.status == 200
        assert answer.document["results"] == [{"content": "how many days", "tenant": "acme"}]
        assert answer.document["release"] == answer.headers["x-tidegate-release"] == "rel-a"
        assert (await sidecar.ask(authorization="Bearer wrong")).status == 401
        missing = await call(sidecar.port, "POST", "/v1/nothing", {})
        assert (missing.status, missing.document["error"]["code"]) == (404, "not_found")
        state = await sidecar.state()
        assert (state.table_version, state.table_source, state.ready, state.message) == (3, "file", True, "")
        assert (state.table_hash, state.api_keys) == (table("rel-a").table_hash(), 1)
        assert [(release.name, release.phase) for release in state.releases] == [("rel-a", "Warm")]
        assert state.requests == {"rel-a": {"ok": 1}}
        metrics = (await call(sidecar.state_port, "GET", "/metrics")).body.decode()
        assert 'tidegate_requests_total{arm="stable",outcome="ok",pipeline="handbook"} 1.0' in metrics
        assert 'tidegate_node_seconds_count{node="dense"} 1.0' in metrics
        assert (await call(sidecar.state_port, "POST", "/v1/retrieve", {})).status == 404
    logged = json.dumps(sidecar.log)
    assert KEY not in logged
    assert "how many days" not in logged


async def test_a_new_table_is_obeyed_at_once_and_releases_that_left_are_closed(tmp_path):
    async with running(tmp_path, tables=table("rel-a", version=1)) as sidecar:
        sidecar.put("table.json", table("rel-b", version=2))

        async def moved() -> bool:
            return (await sidecar.ask()).headers.get("x-tidegate-release") == "rel-b"

        await until(moved, "the new release answers")
        await until(lambda: sidecar.runtime.phases == {"rel-b": "Warm"}, "the old release is closed")
        sidecar.put("table.json", table("rel-a", version=1))

        async def told() -> bool:
            return "older than 2" in (await sidecar.state()).message

        await until(told, "the older table is refused")
        assert (await sidecar.ask()).headers["x-tidegate-table"] == "2"


async def test_a_release_with_a_running_request_is_closed_after_it(tmp_path):
    release = asyncio.Event()

    async def slow(one: Call, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        await echo(one, writer)

    async with running(tmp_path, tables=table("rel-a", version=1)) as sidecar:
        sidecar.runtime.play = slow
        asked = asyncio.create_task(sidecar.ask())
        await until(lambda: len(sidecar.runtime.searches) == 1, "the search arrived")
        sidecar.put("table.json", table("rel-b", version=2))
        await until(lambda: "rel-b" in sidecar.runtime.phases, "the new release is open")
        assert "rel-a" in sidecar.runtime.phases
        release.set()
        assert (await asked).document["release"] == "rel-a"
        await until(lambda: sidecar.runtime.phases == {"rel-b": "Warm"}, "the old release is closed")


async def test_keys_and_limits_change_without_a_restart(tmp_path):
    async with running(tmp_path, settings=keys(tmp_path, web=key_entry(KEY, "acme")), tables=table()) as sidecar:
        put(tmp_path / "keys", "app", key_entry("k-new", "bank"))

        async def status_of(key: str) -> int:
            return (await sidecar.ask(authorization=f"Bearer {key}")).status

        async def new_key_lives() -> bool:
            return await status_of("k-new") == 200

        await until(new_key_lives, "the new key is live")
        assert await status_of(KEY) == 200
        put(tmp_path / "keys", "web", b"{broken")

        async def told() -> bool:
            return "key 'web'" in (await sidecar.state()).message

        await until(told, "the broken key is told")
        assert [await status_of(KEY), await status_of("k-new")] == [401, 200]
        smaller = keys(tmp_path).model_copy(update={"limits": LimitsConfig(max_query_bytes=5)})
        sidecar.put("config.json", smaller)

        async def too_large() -> bool:
            return await status_of("k-new") == 413

        await until(too_large, "the new limit holds")


async def test_a_query_of_ten_megabytes_is_answered_not_cut(tmp_path):
    async with running(tmp_path, tables=table()) as sidecar:
        answer = await sidecar.ask("x" * 10_000_000)
        assert (answer.status, answer.document["error"]["code"]) == (413, "too_large")
        assert not sidecar.runtime.searches


async def test_the_deadline_of_the_caller_ends_a_search(tmp_path):
    async def hang(_: Call, __: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with running(tmp_path, tables=table()) as sidecar:
        sidecar.runtime.play = hang
        late = await call(sidecar.port, "POST", "/v1/retrieve", {"query": "q", "deadline_ms": 50})
        assert (late.status, late.document["error"]["code"]) == (504, "deadline_exceeded")
        await until(lambda: sidecar.runtime.abandoned == 1, "the runtime was told")


async def test_a_caller_who_leaves_ends_the_search(tmp_path):
    async def hang(_: Call, __: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with running(tmp_path, tables=table()) as sidecar:
        sidecar.runtime.play = hang
        _, writer = await asyncio.open_connection("127.0.0.1", sidecar.port)
        writer.write(request_bytes("POST", "/v1/retrieve", {"query": "q"}))
        await until(lambda: len(sidecar.runtime.searches) == 1, "the search arrived")
        writer.close()
        await until(lambda: sidecar.runtime.abandoned == 1, "the runtime was told")

        async def counted() -> bool:
            return (await sidecar.state()).requests == {"rel-a": {"cancelled": 1}}

        await until(counted, "the end is counted")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_requests_finish_and_ends_with_zero(tmp_path, number):
    release = asyncio.Event()

    async def slow(one: Call, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        await echo(one, writer)

    async with running(tmp_path, tables=table()) as sidecar:
        sidecar.runtime.play = slow
        idle_reader, idle_writer = await asyncio.open_connection("127.0.0.1", sidecar.port)
        reader, writer = await asyncio.open_connection("127.0.0.1", sidecar.port)
        writer.write(request_bytes("POST", "/v1/retrieve", {"query": "q"}))
        await until(lambda: len(sidecar.runtime.searches) == 1, "the search arrived")
        sidecar.process.send_signal(number)
        assert await idle_reader.read() == b""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", sidecar.port)
        release.set()
        answer = await read_answer(reader)
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await reader.read() == b""
        assert await asyncio.wait_for(sidecar.process.wait(), 10) == 0
        for each in (writer, idle_writer):
            each.close()


async def test_two_hundred_parallel_requests_of_twenty_tenants_never_meet(tmp_path):
    async def jittered(one: Call, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(int(one.body["query_id"][:2], 16) / 5_000)
        await echo(one, writer)

    entries = {f"key-{n}": key_entry(f"key-{n}", f"tenant-{n}") for n in range(20)}
    settings = keys(tmp_path, **entries).model_copy(update={"limits": LimitsConfig(max_concurrent=200)})
    async with running(tmp_path, settings=settings, tables=table()) as sidecar:
        sidecar.runtime.play = jittered
        answers = await asyncio.gather(
            *(sidecar.ask(f"token-{n}", authorization=f"Bearer key-{n % 20}") for n in range(200))
        )
        for n, answer in enumerate(answers):
            assert answer.status == 200, answer.document
            assert answer.document["results"] == [{"content": f"token-{n}", "tenant": f"tenant-{n % 20}"}]
        assert len({answer.document["query_id"] for answer in answers}) == 200


async def test_a_sidecar_that_starts_again_leaves_warm_releases_alone(tmp_path):
    async with running(tmp_path, tables=table("rel-a")) as sidecar:
        sidecar.process.kill()
        await sidecar.process.wait()
        sidecar.runtime.calls.clear()
        sidecar.process = await start(tmp_path)
        sidecar.log.clear()
        reading = asyncio.create_task(sidecar.read_log())
        await sidecar.listening()
        await until(sidecar.ready, "the sidecar is ready")
        assert {each.line for each in sidecar.runtime.calls} == {"GET /v1/state"}
        sidecar.process.kill()
        await reading


async def test_an_error_of_the_runtime_keeps_its_code(tmp_path):
    async def refuse(_: Call, writer: asyncio.StreamWriter) -> None:
        error = {"error": {"code": "invalid_request", "message": "unknown knowledge base 'x'"}}
        writer.write(reply(error, status="400 Bad Request"))

    async with running(tmp_path, tables=table()) as sidecar:
        sidecar.runtime.play = refuse
        answer = await sidecar.ask()
        assert (answer.status, answer.document["error"]["message"]) == (400, "unknown knowledge base 'x'")
        assert answer.document["error"]["query_id"]


async def test_an_unusable_config_ends_with_two_and_names_the_field(tmp_path):
    put(tmp_path, "config.json", b'{"pipeline": "p"}')
    process = await start(tmp_path)
    _, errors = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 2
    assert "namespace: Field required" in json.loads(errors)["reason"]


async def test_a_config_map_outside_a_cluster_ends_with_two_and_says_what_to_use(tmp_path):
    put(tmp_path, "config.json", config())
    process = await start(tmp_path, "--configmap", "acme/handbook-routing")
    _, errors = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 2
    assert json.loads(errors)["reason"].startswith("--configmap acme/handbook-routing: not in a pod")


async def test_a_port_in_use_ends_with_one(tmp_path):
    put(tmp_path, "config.json", config())
    taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = taken.sockets[0].getsockname()[1]
    process = await start(tmp_path, "--listen", f"127.0.0.1:{port}")
    _, errors = await asyncio.wait_for(process.communicate(), 20)
    taken.close()
    assert process.returncode == 1
    assert "can't listen" in errors.decode()


async def test_assignments_are_the_same_in_every_process(tmp_path):
    """Two sidecars with other hash seeds give every user the same release."""
    tables = table("rel-a", "rel-b", candidate="rel-b", share=40)
    arms = []
    for seed in ("1", "2"):
        folder = tmp_path / seed
        folder.mkdir()
        os.environ["PYTHONHASHSEED"] = seed
        try:
            async with running(folder, settings=keys(folder, web=key_entry(KEY, "acme")), tables=tables) as sidecar:
                answers = await asyncio.gather(*(sidecar.ask(x_tidegate_user=f"user-{n}", **BEARER) for n in range(50)))
        finally:
            del os.environ["PYTHONHASHSEED"]
        arms.append([answer.headers["x-tidegate-arm"] for answer in answers])
    assert arms[0] == arms[1]
    assert {"stable", "candidate"} == set(arms[0])
