"""Which routing table is obeyed."""

import pytest
from tests.unit.sidecar.builders import PIPELINE, table

from tidegate_api.config import PinConfig, RoutingTable
from tidegate_api.wire import ErrorCode
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.tables import TableKeeper


class Kept:
    """A keeper and how often it told of a change."""

    def __init__(self) -> None:
        self.changes = 0
        self.keeper = TableKeeper(PIPELINE, on_change=self.change)

    def change(self) -> None:
        self.changes += 1

    async def offer(self, document: RoutingTable | bytes | None) -> "Kept":
        content = document.model_dump_json(by_alias=True).encode() if isinstance(document, RoutingTable) else document
        await self.keeper.offer(content, "file")
        return self

    @property
    def version(self) -> int:
        return self.keeper.index().version


async def test_the_newest_table_is_obeyed():
    kept = await Kept().offer(table("rel-a", version=4))
    await kept.offer(table("rel-b", version=6))
    current = kept.keeper.current
    assert current is not None
    assert (kept.version, current.origin, kept.changes) == (6, "file", 2)
    assert current.hash == table("rel-b").table_hash()
    assert [release.name for release in kept.keeper.wanted() or ()] == ["rel-b"]
    assert kept.keeper.message == ""


async def test_an_older_table_is_never_obeyed():
    kept = await Kept().offer(table("rel-a", version=4))
    await kept.offer(table("rel-b", version=3))
    assert kept.version == 4
    assert "3 is older than 4" in kept.keeper.message


async def test_the_same_table_again_changes_nothing():
    kept = await Kept().offer(table("rel-a", version=4))
    await kept.offer(table("rel-a", version=4))
    assert (kept.changes, kept.keeper.message) == (1, "")


async def test_another_content_under_the_same_version_is_not_obeyed():
    kept = await Kept().offer(table("rel-a", version=4))
    await kept.offer(table("rel-b", version=4))
    assert kept.keeper.index().stable == "rel-a"
    assert "another content" in kept.keeper.message


BROKEN = {
    "not JSON": (b"{", "broken"),
    "empty file": (b"", "broken"),
    "missing member": (b'{"version": 9}', "broken: pipeline: Field required"),
    "stable missing": (table("rel-a", version=9).model_copy(update={"stable": "rel-x"}), "stable 'rel-x'"),
    "another pipeline": (table("rel-a", version=9).model_copy(update={"pipeline": "other"}), "for pipeline other"),
    "no file": (None, "is gone"),
}


@pytest.mark.parametrize(("document", "message"), BROKEN.values(), ids=BROKEN)
async def test_what_cannot_be_obeyed_leaves_the_last_good_table_in_force(document, message):
    kept = await Kept().offer(table("rel-a", version=4))
    await kept.offer(document)
    assert kept.version == 4
    assert message in kept.keeper.message
    await kept.offer(table("rel-a", version=5))
    assert (kept.version, kept.keeper.message) == (5, "")


async def test_without_any_table_requests_fail_and_say_so():
    kept = await Kept().offer(None)
    with pytest.raises(RequestError, match="no routing table") as refused:
        kept.keeper.index()
    assert refused.value.code is ErrorCode.RELEASE_UNAVAILABLE
    assert kept.keeper.wanted() is None


async def test_a_table_with_many_pins_is_understood():
    pins = [PinConfig(tenants=[f"tenant-{n}" for n in range(10_000)], release="stable")]
    kept = await Kept().offer(table("rel-a", pins=pins))
    assert len(kept.keeper.index().pins) == 10_000
