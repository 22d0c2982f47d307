"""Rendered documents: names and hashes are frozen, and what a newer writer adds is ignored."""

from tidegate_api.config import (
    IndexerConfig,
    IndexRef,
    NodeConfig,
    PipelineConfig,
    ReleaseConfig,
    RoutingTable,
    SourceConfig,
    Versions,
)

PIPELINE = PipelineConfig(
    knowledge_bases=["docs"],
    nodes=[NodeConfig(name="lexical", type="bm25", settings={"topK": 50})],
    output="lexical",
)
INDEXES = [
    IndexRef(knowledge_base="docs", revision="docs-15599bd8aa"),
    IndexRef(knowledge_base="news", revision="news-0123456789"),
]
VERSIONS = Versions(runtime="0.1.0", sidecar="0.1.0")
RELEASE = ReleaseConfig.make(pipeline=PIPELINE, indexes=INDEXES, versions=VERSIONS)
TABLE = RoutingTable(version=7, pipeline="docs", salt="acme/docs", stable=RELEASE.name, releases=[RELEASE])


def test_names_are_frozen() -> None:
    assert PIPELINE.revision() == "b918a8e3b7"
    assert RELEASE.name == "rel-856b695567"


def test_a_release_is_named_by_what_answers_depend_on() -> None:
    reordered = ReleaseConfig.make(pipeline=PIPELINE, indexes=INDEXES[::-1], versions=VERSIONS)
    newer_images = ReleaseConfig.make(
        pipeline=PIPELINE, indexes=INDEXES, versions=Versions(runtime="0.2.0", sidecar="0.2.0"), deployment="abc"
    )
    other_index = ReleaseConfig.make(pipeline=PIPELINE, indexes=INDEXES[:1], versions=VERSIONS)
    assert reordered == RELEASE
    assert newer_images.name == RELEASE.name
    assert other_index.name != RELEASE.name


def test_a_table_of_another_version_but_equal_content_needs_no_write() -> None:
    assert TABLE.model_copy(update={"version": 8}).table_hash() == TABLE.table_hash()
    assert TABLE.model_copy(update={"share": 5}).table_hash() != TABLE.table_hash()
    assert TABLE.model_copy(update={"share": 5.0}).table_hash() == TABLE.model_copy(update={"share": 5}).table_hash()


def test_config_hash_speaks_of_everything_that_an_indexer_obeys() -> None:
    config = IndexerConfig(
        knowledge_base="docs", namespace="acme", language="auto", sources=[SourceConfig(name="docs")]
    )
    assert config.config_hash() == IndexerConfig.model_validate(config.to_document()).config_hash()
    assert config.model_copy(update={"sync": "now"}).config_hash() != config.config_hash()


def test_a_member_that_a_newer_writer_knows_is_ignored() -> None:
    assert RoutingTable.model_validate({**TABLE.to_document(), "shadow": {"percent": 20}}) == TABLE


def test_a_constant_keeps_its_type() -> None:
    source = SourceConfig.model_validate(
        {"name": "docs", "metadata": {"year": 2024, "part": 1.5, "kind": "hr", "open": True}}
    )
    assert [type(value) for value in source.metadata.values()] == [int, float, str, bool]
