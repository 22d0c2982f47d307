"""Old revisions: kept in step while they may be needed, gone in two phases when nobody needs them."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tidegate_operator.core.kinds import Kind, Ref
from tidegate_operator.core.revisions import newest_built, retention

from .rig import DOCS, Rig, knowledge_base, source_map


def release(revision: str, *, pipeline: str = "desk") -> dict[str, object]:
    labels = {"tidegate.dev/pipeline": pipeline, "index.tidegate.dev/docs": revision}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": f"{pipeline}-rel-{revision}", "namespace": "acme", "labels": labels},
        "revision": 1,
    }


async def built(*sizes: int, limit: int = 1) -> tuple[Rig, list[str]]:
    rig = Rig()
    rig.cluster.put(source_map())
    names = []
    for size in sizes:
        rig.cluster.put(knowledge_base(size_tokens=size, revisionHistoryLimit=limit))
        rig.clock.advance(1)
        await rig.settle()
        names.append(rig.status()["desiredRevision"])
    return rig, names


def phases(rig: Rig) -> dict[str, str]:
    return {each["name"]: each["phase"] for each in rig.status()["revisions"]}


def in_config(rig: Rig) -> set[str]:
    data = rig.get(Kind.CONFIG_MAP, "docs-indexer")["data"]["config.json"]
    return {each["name"] for each in json.loads(data)["revisions"]}


async def test_as_many_as_the_limit_stay_in_step() -> None:
    rig, (first, second) = await built(200, 100)

    assert phases(rig) == {first: "Ready", second: "Ready"}
    assert in_config(rig) == {first, second}


async def test_one_too_many_is_marked_first_and_dropped_after_a_pause() -> None:
    rig, (first, second, third) = await built(200, 100, 50)
    assert phases(rig) == {first: "Retiring", second: "Ready", third: "Ready"}
    assert in_config(rig) == {first, second, third}

    rig.clock.advance(61)
    await rig.settle()
    assert phases(rig) == {second: "Ready", third: "Ready"}
    assert in_config(rig) == {second, third}
    assert Ref(Kind.CONTROLLER_REVISION, "acme", first) not in rig.cluster.objects


async def test_a_reference_that_appears_in_the_pause_brings_it_back() -> None:
    rig, (first, second, third) = await built(200, 100, 50)
    rig.cluster.put(release(first))
    rig.clock.advance(61)
    await rig.settle()

    assert phases(rig) == {first: "Ready", second: "Ready", third: "Ready"}
    entry = next(each for each in rig.status()["revisions"] if each["name"] == first)
    assert (entry["references"], entry["referencedBy"]) == (1, ["RetrievalPipeline/desk"])


async def test_what_is_referred_to_stays_whatever_the_limit() -> None:
    rig, (first, *_) = await built(200, limit=0)
    rig.cluster.put(release(first))
    rig.cluster.put(knowledge_base(size_tokens=100, revisionHistoryLimit=0))
    for _ in range(3):
        await rig.settle()
        rig.clock.advance(61)
    assert phases(rig)[first] == "Ready"

    rig.cluster.remove(Ref(Kind.CONTROLLER_REVISION, "acme", f"desk-rel-{first}"))
    await rig.settle()
    assert phases(rig)[first] == "Retiring"


async def test_the_wanted_revision_back_from_retiring_is_kept() -> None:
    rig, (first, *_) = await built(200, 100, 50)
    rig.cluster.put(knowledge_base(size_tokens=200, revisionHistoryLimit=1))
    await rig.settle()

    assert phases(rig)[first] == "Ready"
    assert rig.status()["latestRevision"] == first


async def test_one_that_was_never_built_is_no_history() -> None:
    rig, (first,) = await built(200, limit=5)
    rig.cluster.put(knowledge_base(size_tokens=100, revisionHistoryLimit=5))
    rig.planes.silent = True
    await rig.reconciler(DOCS)
    half_built = rig.status()["desiredRevision"]
    rig.planes.building, rig.planes.silent = {half_built}, False
    rig.cluster.put(knowledge_base(size_tokens=50, revisionHistoryLimit=5))
    await rig.settle()

    assert phases(rig)[half_built] == "Retiring"
    assert phases(rig)[first] == "Ready"


async def test_nothing_is_dropped_while_the_indexer_is_silent() -> None:
    rig, (first, *_) = await built(200, 100, 50)
    rig.planes.silent = True
    rig.clock.advance(600)
    await rig.settle()

    assert phases(rig)[first] == "Retiring"
    assert Ref(Kind.CONTROLLER_REVISION, "acme", first) in rig.cluster.objects


async def test_more_revisions_than_status_shows_lose_nothing() -> None:
    rig, names = await built(*range(20, 160, 10), limit=50)

    assert len(rig.status()["revisions"]) == 10
    assert in_config(rig) == set(names)


def test_without_anything_built_there_is_no_newest() -> None:
    assert newest_built([], desired="", before="docs-1") == ""


@pytest.mark.parametrize("limit", [0, 1])
def test_nothing_to_keep_is_no_error(limit: int) -> None:

    now = datetime(2026, 1, 1, tzinfo=UTC)
    kept = retention([], keep=frozenset(), references={}, limit=limit, now=now, pause=timedelta(seconds=60))
    assert (kept.retire, kept.drop) == (frozenset(), frozenset())
