"""From specs to documents: what a spec means is hashed, not how it is written."""

from pathlib import Path
from typing import Any

import pytest

from tidegate_api.builtins import MINILM, UnknownModelError
from tidegate_api.config import (
    AuthConfig,
    ConfigMapFrom,
    IndexRef,
    LimitsConfig,
    ReleaseConfig,
    RevisionConfig,
    SourceConfig,
    Versions,
    VolumeFrom,
)
from tidegate_api.shape import ChunkingShape, Language
from tidegate_api.v1alpha1 import KnowledgeBaseSpec, RetrievalPipelineSpec
from tidegate_operator.core.desired import (
    chunk_cap_tokens,
    indexer_config,
    pipeline_config,
    revision_shape,
    sidecar_config,
)

SOURCE = {"name": "docs", "from": {"configMap": {"name": "docs"}}}


def knowledge_base(**spec: Any) -> KnowledgeBaseSpec:
    """Return a spec of one source, or as given."""
    return KnowledgeBaseSpec.model_validate({"sources": [SOURCE], **spec})


def pipeline(**spec: Any) -> RetrievalPipelineSpec:
    """Return an anonymous pipeline over one knowledge base, or as given."""
    return RetrievalPipelineSpec.model_validate(
        {"knowledgeBases": [{"name": "docs"}], "auth": {"anonymous": {}}, **spec}
    )


def revision(language: Language = "en", **spec: Any) -> str:
    """Return the name of the revision that a spec asks for."""
    return revision_shape(knowledge_base(**spec), language).revision_name("docs")


# --- revisions -------------------------------------------------------------------------------------


def test_names_of_the_smallest_example_are_frozen() -> None:
    assert [revision(language) for language in ("en", "zh", "multi")] == [
        "docs-15599bd8aa",
        "docs-d7ab5914b6",
        "docs-4627665ab1",
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {"language": "en"},
        {"chunking": {}},
        {"chunking": {"strategy": "markdown", "sizeTokens": 200, "overlapTokens": 24}},
        {"embedding": {"model": "auto"}},
        {"embedding": {"model": "minilm"}},
        {"store": {"index": {"embedded": {"size": "10Gi"}}}},
        {"metadataSchema": {}},
        {"sources": [{**SOURCE, "chunking": {"sizeTokens": 200}}]},
    ],
    ids=["language", "empty", "chunking", "auto", "model", "store", "schema", "override"],
)
def test_writing_a_default_out_makes_no_other_revision(spec: dict[str, Any]) -> None:
    assert revision(**spec) == revision()


@pytest.mark.parametrize(
    "spec",
    [
        {"sources": [SOURCE, {"name": "more", "from": {"volume": {"claimName": "docs"}}}]},
        {"sources": [{**SOURCE, "name": "other"}]},
        {"sources": [{**SOURCE, "include": ["*.md"], "refresh": "1m", "metadata": {"a": "b"}, "tenants": ["acme"]}]},
        {"build": {"resources": {"limits": {"cpu": 2}}}},
        {"revisionHistoryLimit": 1},
        {"readyPolicy": "Serving"},
    ],
    ids=["source", "name", "content", "build", "limit", "policy"],
)
def test_content_and_upkeep_make_no_other_revision(spec: dict[str, Any]) -> None:
    assert revision(**spec) == revision()


@pytest.mark.parametrize(
    "spec",
    [
        {"chunking": {"strategy": "fixed"}},
        {"chunking": {"sizeTokens": 199}},
        {"chunking": {"overlapTokens": 0}},
        {"embedding": {"model": "use-m3"}},
        {"metadataSchema": {"year": "number"}},
        {"sources": [{**SOURCE, "chunking": {"strategy": "fixed"}}]},
    ],
    ids=["strategy", "size", "overlap", "model", "schema", "override"],
)
def test_a_change_of_shape_makes_another_revision(spec: dict[str, Any]) -> None:
    assert revision(**spec) != revision()


@pytest.mark.parametrize(
    ("chunking", "size", "overlap"),
    [
        ({}, 200, 24),
        ({"sizeTokens": 500}, 222, 24),
        ({"sizeTokens": 40}, 40, 19),
        ({"sizeTokens": 41}, 41, 20),
        ({"sizeTokens": 16, "overlapTokens": 8}, 16, 7),
        ({"sizeTokens": 8000, "overlapTokens": 4000}, 222, 110),
    ],
)
def test_sizes_are_capped_by_the_encoder_and_overlap_by_half_the_size(
    chunking: dict[str, int], size: int, overlap: int
) -> None:
    shape = revision_shape(knowledge_base(chunking=chunking), "en")
    assert shape.chunking == ChunkingShape(strategy="markdown", size_tokens=size, overlap_tokens=overlap)


def test_a_prefix_takes_its_room_from_the_chunk() -> None:
    assert chunk_cap_tokens(MINILM) == 222
    assert chunk_cap_tokens(MINILM.model_copy(update={"passage_prefix": "passage: "})) == 213


def test_a_source_inherits_what_it_does_not_say() -> None:
    tables = {"name": "tables", "from": {"configMap": {"name": "t"}}, "chunking": {"strategy": "fixed"}}
    shape = revision_shape(knowledge_base(sources=[SOURCE, tables], chunking={"sizeTokens": 100}), "en")
    assert shape.source_chunking == {"tables": ChunkingShape(strategy="fixed", size_tokens=100, overlap_tokens=24)}
    assert shape.algorithms == {
        "analyzer": "analyzer/1",
        "embedded": "embedded/1",
        "fixed": "fixed/1",
        "markdown": "markdown/1",
    }


def test_only_algorithms_that_are_used_are_part_of_a_shape() -> None:
    shape = revision_shape(knowledge_base(chunking={"strategy": "recursive"}), "en")
    assert set(shape.algorithms) == {"analyzer", "embedded", "recursive"}


def test_an_unknown_model_has_no_shape() -> None:
    with pytest.raises(UnknownModelError):
        revision_shape(knowledge_base(embedding={"model": "bge"}), "en")


# --- indexer ---------------------------------------------------------------------------------------


def test_indexer_config_names_absolute_folders_and_seconds() -> None:
    spec = knowledge_base(
        sources=[
            {**SOURCE, "metadata": {"year": 2024}, "refresh": "1h30m"},
            {"name": "files", "from": {"volume": {"claimName": "shelf", "path": "a/b"}}, "tenants": ["acme"]},
        ]
    )
    shape = revision_shape(spec, "en")
    revisions = [RevisionConfig(name=shape.revision_name("docs"), shape=shape)]
    paths = {"docs": Path("/sources/docs"), "files": Path("/claims/shelf/a/b")}
    config = indexer_config(spec, name="docs", namespace="acme", revisions=revisions, paths=paths, sync="7")
    assert (config.knowledge_base, config.namespace, config.language, config.sync) == ("docs", "acme", "auto", "7")
    assert config.revisions == revisions
    assert config.sources == [
        SourceConfig(
            name="docs",
            config_map=ConfigMapFrom(name="docs", path="/sources/docs"),
            refresh_seconds=5400,
            metadata={"year": 2024},
        ),
        SourceConfig(
            name="files",
            volume=VolumeFrom(claim_name="shelf", path="/claims/shelf/a/b"),
            refresh_seconds=900,
            tenants=["acme"],
        ),
    ]


def test_equal_durations_give_equal_configs() -> None:
    def config_hash(refresh: str) -> str:
        spec = knowledge_base(sources=[{**SOURCE, "refresh": refresh}])
        paths = {"docs": Path("/docs")}
        return indexer_config(spec, name="docs", namespace="acme", revisions=[], paths=paths).config_hash()

    assert config_hash("60s") == config_hash("1m") != config_hash("2m")


# --- pipeline --------------------------------------------------------------------------------------

HYBRID = {
    "nodes": [
        {"name": "lexical", "type": "bm25", "with": {"topK": 50}},
        {"name": "dense", "type": "dense", "with": {"topK": 50}},
        {
            "name": "fused",
            "type": "fuse",
            "inputs": ["lexical", "dense"],
            "with": {"method": "weighted", "weights": {"lexical": 0.4, "dense": 0.6}, "completion": True},
        },
    ],
    "output": "fused",
}


def release_name(**spec: Any) -> str:
    """Return the name of the release that a spec asks for."""
    indexes = [IndexRef(knowledge_base="docs", revision="docs-15599bd8aa")]
    versions = Versions(runtime="0.1.0", sidecar="0.1.0")
    return ReleaseConfig.make(pipeline=pipeline_config(pipeline(**spec)), indexes=indexes, versions=versions).name


def test_name_of_the_smallest_release_is_frozen() -> None:
    assert pipeline_config(pipeline()).revision() == "a1e1a56e61"
    assert release_name() == "rel-42612ad16a"


@pytest.mark.parametrize(
    "spec",
    [
        HYBRID,
        {**HYBRID, "nodes": HYBRID["nodes"][::-1]},
        {"nodes": []},
        {"output": "fused"},
        {
            "nodes": [
                {"name": "lexical", "type": "bm25"},
                {"name": "dense", "type": "dense", "with": {}},
                {
                    "name": "fused",
                    "type": "fuse",
                    "inputs": ["dense", "lexical"],
                    "with": {"weights": {"lexical": 0.40, "dense": 0.60}, "k": 60, "lexicalGuard": True},
                },
            ],
            "output": "fused",
        },
    ],
    ids=["preset", "order", "empty", "output", "defaults"],
)
def test_the_preset_written_out_in_any_way_is_the_same_release(spec: dict[str, Any]) -> None:
    assert release_name(**spec) == release_name()


@pytest.mark.parametrize(
    "spec",
    [
        {"runtime": {"replicas": 3, "resources": {"limits": {"cpu": "1000m"}}, "gpu": {"count": 1}}},
        {"limits": {"requestTimeout": "2s"}},
        {"auth": {"apiKeys": {"secretRef": {"name": "keys"}}}},
        {"suspend": True, "readyPolicy": "Serving", "releases": {"waitForBuilds": False}},
    ],
    ids=["runtime", "limits", "auth", "rest"],
)
def test_what_answers_do_not_depend_on_makes_no_other_release(spec: dict[str, Any]) -> None:
    assert release_name(**spec) == release_name()


def test_a_whole_number_is_equal_however_it_is_written() -> None:
    one = {"name": "fused", "type": "fuse", "inputs": ["lexical"], "with": {"weights": {"lexical": 1}}}
    nodes = [{"name": "lexical", "type": "bm25"}, one]
    spelt = [nodes[0], {**one, "with": {"weights": {"lexical": 1.0}}}]
    left_out = [nodes[0], {**one, "with": {}}]
    names = {release_name(nodes=each, output="fused") for each in (nodes, spelt, left_out)}
    assert len(names) == 1


@pytest.mark.parametrize(
    "spec",
    [
        {"nodes": [{"name": "lexical", "type": "bm25"}], "output": "lexical"},
        {**HYBRID, "output": "dense"},
        {"nodes": [{**HYBRID["nodes"][0], "with": {"topK": 51}}, *HYBRID["nodes"][1:]], "output": "fused"},
        {"knowledgeBases": [{"name": "docs"}, {"name": "news"}]},
    ],
    ids=["nodes", "output", "setting", "knowledge base"],
)
def test_what_changes_answers_makes_another_release(spec: dict[str, Any]) -> None:
    assert release_name(**spec) != release_name()


# --- sidecar ---------------------------------------------------------------------------------------


def test_sidecar_config_of_the_smallest_example() -> None:
    config = sidecar_config(pipeline(), pipeline="docs", namespace="acme", auth_paths={})
    assert config.auth == AuthConfig(anonymous=True)
    assert config.limits == LimitsConfig()


def test_sidecar_config_says_where_secrets_are_and_parses_limits() -> None:
    spec = pipeline(
        auth={"apiKeys": {"secretRef": {"name": "keys"}}, "trustedHeaders": {"secretRef": {"name": "proxy"}}},
        limits={
            "requestTimeout": "1m500ms",
            "maxQueryBytes": "1.5Ki",
            "maxTopK": 7,
            "maxConcurrent": 8,
            "requestsPerSecondPerTenant": 0.5,
        },
    )
    paths = {"api_keys": Path("/auth/keys"), "trusted_headers": Path("/auth/proxy")}
    config = sidecar_config(spec, pipeline="docs", namespace="acme", auth_paths=paths)
    assert config.auth == AuthConfig(api_keys_dir="/auth/keys", trusted_headers_dir="/auth/proxy")
    assert config.limits == LimitsConfig(
        request_timeout_ms=60_500,
        max_query_bytes=1536,
        max_top_k=7,
        max_concurrent=8,
        requests_per_second_per_tenant=0.5,
    )
