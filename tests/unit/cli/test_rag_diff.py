"""What `kubectl rag diff` says: each leaf that differs, nodes by name, and what could not be compared."""

import pytest

from tidegate_api.config import IndexRef, NodeConfig, PipelineConfig, ReleaseConfig, Versions
from tidegate_api.nodes import HYBRID_NODES, HYBRID_OUTPUT, complete_settings
from tidegate_api.v1alpha1.retrievalpipeline import IndexRevision, ReleaseStatus, ReleaseVersions
from tidegate_cli.rag_diff import Difference, difference, difference_document, difference_text
from tidegate_cli.rag_frozen import Unreadable
from tidegate_operator.core.releases import FrozenRelease

HYBRID = {node.name: node for node in HYBRID_NODES}
GONE = Unreadable('Error from server (NotFound): controllerrevisions.apps "docs-rel-1" not found')


def frozen(
    *nodes: NodeConfig, index: str = "docs-1", image: str = "runtime:1", output: str = HYBRID_OUTPUT
) -> FrozenRelease:
    """Freeze a release as the operator does, with every default of its nodes filled in."""
    complete = [
        node.model_copy(update={"settings": complete_settings(node)}) for node in nodes or tuple(HYBRID.values())
    ]
    made = ReleaseConfig.make(
        pipeline=PipelineConfig(knowledge_bases=["docs"], nodes=complete, output=output),
        indexes=[IndexRef(knowledge_base="docs", revision=index)],
        versions=Versions(runtime="1", sidecar="1"),
        deployment="d1",
    )
    return FrozenRelease(release=made, runtime_image=image, sidecar_image="sidecar:1")


def status(of: FrozenRelease, version: str = "1") -> ReleaseStatus:
    return ReleaseStatus(
        name=of.release.name,
        pipeline_revision=of.release.pipeline.revision(),
        index_revisions=[
            IndexRevision(knowledge_base=i.knowledge_base, revision=i.revision) for i in of.release.indexes
        ],
        versions=ReleaseVersions(runtime=version, sidecar="1"),
        phase="Warm",
    )


def compared(first: FrozenRelease, second: FrozenRelease) -> Difference:
    return difference(status(first), status(second), frozen=(first, second))


def settings_lines(first: FrozenRelease, second: FrozenRelease) -> list[str]:
    """Return the lines that the status alone would not have."""
    lines = difference_text(compared(first, second)).splitlines()
    assert lines[0].startswith("pipelineRevision: ")
    return lines[1:]


def changed(name: str, **settings: object) -> list[NodeConfig]:
    """Return the preset's nodes with other settings in one of them."""
    node = HYBRID[name]
    other = node.model_copy(update={"settings": {**node.settings, **settings}})
    return [other if each.name == name else each for each in HYBRID.values()]


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        (changed("dense", topK=20), "nodes[dense].topK: 50 -> 20"),
        (changed("fused", lexicalGuard=False), "nodes[fused].lexicalGuard: true -> false"),
        (changed("fused", weights={"lexical": 0.3, "dense": 0.6}), "nodes[fused].weights.lexical: 0.4 -> 0.3"),
    ],
)
def test_a_setting_is_told_by_its_path_and_nothing_else_is(nodes: list[NodeConfig], line: str) -> None:
    assert settings_lines(frozen(), frozen(*nodes)) == [line]


def test_a_default_that_is_written_out_is_no_difference() -> None:
    assert difference_text(compared(frozen(), frozen(*changed("fused", k=60)))) == "no difference"


def test_settings_that_only_one_method_has_come_and_go() -> None:
    lines = settings_lines(frozen(), frozen(*changed("fused", method="rrf", weights={})))
    assert set(lines) == {
        "nodes[fused].method: weighted -> rrf",
        "nodes[fused].weights.dense: 0.6 -> -",
        "nodes[fused].weights.lexical: 0.4 -> -",
    }


def test_nodes_are_matched_by_name_and_said_to_be_added_or_removed() -> None:
    extra = NodeConfig(name="exact", type="bm25", settings={"topK": 5})
    fused = HYBRID["fused"].model_copy(update={"inputs": ["dense", "exact"]})
    lines = settings_lines(frozen(), frozen(extra, HYBRID["dense"], fused))
    assert lines[0] == "nodes[exact]: added (type: bm25, topK: 5)"
    assert "nodes[fused].inputs: [lexical, dense] -> [dense, exact]" in lines
    assert lines[-1] == "nodes[lexical]: removed"
    joined = settings_lines(frozen(HYBRID["dense"], output="dense"), frozen(HYBRID["dense"], fused))
    assert joined[0].startswith("nodes[fused]: added (type: fuse, inputs: [dense, exact], method: weighted, ")
    assert joined[1] == "output: dense -> fused"


def test_a_node_of_another_type_is_changed_not_replaced() -> None:
    dense = HYBRID["dense"].model_copy(update={"type": "bm25"})
    lines = settings_lines(frozen(), frozen(HYBRID["lexical"], dense, HYBRID["fused"]))
    assert lines == ["nodes[dense].type: dense -> bm25"]


def test_indexes_versions_and_images_are_told() -> None:
    first, second = frozen(), frozen(index="docs-2", image="runtime:2")
    found = difference(status(first), status(second, version="2"), frozen=(first, second))
    assert difference_text(found).splitlines() == [
        "indexes[docs]: docs-1 -> docs-2",
        "versions.runtime: 1 -> 2",
        "runtimeImage: runtime:1 -> runtime:2",
    ]


def test_a_knowledge_base_more_has_an_index_more() -> None:
    first, second = status(frozen()), status(frozen(index="docs-2"))
    more = [*first.index_revisions, IndexRevision(knowledge_base="faq", revision="faq-1")]
    found = difference(first, second.model_copy(update={"index_revisions": more}), frozen=(GONE, GONE))
    assert difference_text(found).splitlines()[0] == "indexes[faq]: - -> faq-1"


def test_what_cannot_be_read_leaves_what_the_status_says_and_is_said() -> None:
    first, second = frozen(), frozen(*changed("dense", topK=20), index="docs-2")
    found = difference(status(first), status(second), frozen=(GONE, second))
    text = difference_text(found).splitlines()
    assert text[0].startswith("pipelineRevision: ")
    assert text[1:] == [
        "indexes[docs]: docs-1 -> docs-2",
        f"nodes, settings and images are not compared: {GONE.why}",
    ]
    alike = difference(status(first), status(first), frozen=(GONE, GONE))
    assert difference_text(alike).splitlines() == [
        "no difference in indexes and versions",
        f"nodes, settings and images are not compared: {GONE.why}",
    ]


def test_the_document_holds_values_not_text() -> None:
    first, second = frozen(), frozen(*changed("dense", topK=20))
    document = difference_document(compared(first, second))
    assert (document["first"], document["second"]) == (first.release.name, second.release.name)
    assert document["changes"][-1] == {"path": "nodes[dense].topK", "before": 50, "after": 20}
    assert document["unread"] == ()
    added = difference_document(compared(frozen(HYBRID["dense"]), frozen(HYBRID["dense"], HYBRID["lexical"])))
    node = {"name": "lexical", "type": "bm25", "inputs": [], "with": {"topK": 50}}
    assert added["changes"][-1] == {"path": "nodes[lexical]", "before": None, "after": node}
