"""What a run reads: a child once, its own kinds in every pass, and what it has written as it was answered."""

from collections import Counter

from tidegate_operator.core.kinds import OWN_KINDS, Kind, Ref
from tidegate_operator.run_cluster import RunCluster

from .rig import DESK, DOCS, Rig, knowledge_base, pipeline, policy, secret, source_map

FILES = Ref(Kind.CONFIG_MAP, "acme", "docs-files")
KEYS = Ref(Kind.SECRET, "acme", "keys")


def rig_with(*manifests: dict[str, object]) -> Rig:
    rig = Rig()
    for manifest in manifests:
        rig.cluster.put(manifest)
    return rig


async def test_a_child_is_read_once_and_our_own_kinds_in_every_pass() -> None:
    rig = rig_with(source_map(), knowledge_base(), policy(), pipeline())
    await rig.reconciler(DOCS)
    await rig.reconciler(DESK)
    rig.cluster.calls.clear()

    rig.cluster.put(knowledge_base(refresh="2m"))
    await rig.reconciler(DOCS)

    reads = Counter(ref for verb, ref in rig.cluster.calls if verb == "get")
    assert {ref for ref, count in reads.items() if ref is not None and count > 1 and ref.kind not in OWN_KINDS} == set()
    assert reads[DOCS.ref] > 1


async def test_what_was_missing_is_remembered_until_it_is_written() -> None:
    rig = rig_with()
    cluster = RunCluster(rig.cluster)
    assert await cluster.get(FILES) is None
    assert await cluster.get_metadata(FILES) is None
    assert await cluster.find(Kind.CONFIG_MAP, "acme") == []

    await cluster.create(source_map())

    calls = len(rig.cluster.calls)
    assert (await cluster.get(FILES) or {})["data"] == {"leave.md": "# Leave"}
    assert (await cluster.get_metadata(FILES) or {}).keys() == {"apiVersion", "kind", "metadata"}
    assert len(rig.cluster.calls) == calls
    assert len(await cluster.find(Kind.CONFIG_MAP, "acme")) == 1


async def test_a_write_brings_up_to_date_the_lists_of_its_kind_alone() -> None:
    rig = rig_with(source_map(), secret("keys"))
    cluster = RunCluster(rig.cluster)
    await cluster.find(Kind.CONFIG_MAP, "acme")
    await cluster.find(Kind.SECRET, "acme")
    rig.cluster.remove(KEYS)

    await cluster.delete(FILES, uid=rig.get(Kind.CONFIG_MAP, "docs-files")["metadata"]["uid"])

    assert await cluster.find(Kind.CONFIG_MAP, "acme") == []
    assert len(await cluster.find(Kind.SECRET, "acme")) == 1


async def test_the_next_run_sees_what_others_have_changed() -> None:
    rig = rig_with(source_map(), knowledge_base())
    await rig.settle(DOCS)
    indexer = Ref(Kind.DEPLOYMENT, "acme", "docs-indexer")
    rig.cluster.remove(indexer)

    await rig.reconciler(DOCS)

    assert indexer in rig.cluster.objects
