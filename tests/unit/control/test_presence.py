"""Two operators notice each other by one Lease; one alone, or after another that died, notices nobody."""

import asyncio
import logging

import pytest

from tidegate_operator.core.kinds import Kind, Manifest, Ref
from tidegate_operator.errors import RefusedError
from tidegate_operator.presence import Presence, keep_announcing

from .fake_cluster import FakeCluster
from .fake_planes import ManualClock

LEASE = Ref(Kind.LEASE, "system", "tidegate-operator")


def presence(cluster: FakeCluster, identity: str) -> Presence:
    return Presence(cluster, ManualClock(), namespace="system", lease="tidegate-operator", identity=identity)


async def test_an_operator_alone_notices_nobody() -> None:
    cluster = FakeCluster()
    only = presence(cluster, "a")
    for _ in range(3):
        await only.announce()
    assert only.other == ""
    assert cluster.objects[LEASE]["spec"]["holderIdentity"] == "a"
    assert cluster.objects[LEASE]["spec"]["renewTime"] == "2026-01-01T12:00:00.000000Z"


async def test_what_a_dead_one_has_left_is_written_over_without_a_word() -> None:
    cluster = FakeCluster()
    await presence(cluster, "dead").announce()
    after = presence(cluster, "a")
    await after.announce()
    await after.announce()
    assert after.other == ""


async def test_both_of_two_notice_the_other_once_and_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tidegate_operator.presence")
    cluster = FakeCluster()
    first, second = presence(cluster, "a"), presence(cluster, "b")
    for _ in range(3):
        await first.announce()
        await second.announce()
    assert (first.other, second.other) == ("b", "a")
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]

    await first.announce()
    await first.announce()
    assert first.other == ""
    assert "gone" in caplog.messages[-1]


async def test_a_lease_that_may_not_be_written_is_said_once_and_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    enough = asyncio.Event()

    class Forbidding(FakeCluster):
        tries = 0

        async def apply(self, manifest: Manifest) -> Manifest:
            self.tries += 1
            if self.tries == 3:
                enough.set()
            raise RefusedError("leases is forbidden", reason="Forbidden")

    running = asyncio.create_task(keep_announcing(presence(Forbidding(), "a"), period_seconds=0.001))
    async with asyncio.timeout(5):
        await enough.wait()
    running.cancel()
    assert len(caplog.records) == 1
    assert caplog.records[0].error == "leases is forbidden"  # type: ignore[attr-defined]
