"""Following a config file: the last good one stays in force."""

from pathlib import Path
from typing import Any

import pytest

from tidegate_api.config import ConfigMapFrom, IndexerConfig, RevisionConfig, SourceConfig, VolumeFrom
from tidegate_runtime.indexer.config_source import FileConfigSource, config_problem

VOLUME = VolumeFrom(claim_name="claim", path="/docs")


def config(**changes: object) -> IndexerConfig:
    base = IndexerConfig(
        knowledge_base="kb", namespace="ns", language="auto", sources=[SourceConfig(name="docs", volume=VOLUME)]
    )
    return base.model_copy(update=changes)


def put(path: Path, content: str) -> None:
    replacement = path.with_suffix(".new")
    replacement.write_text(content)
    replacement.replace(path)


def test_a_config_is_read_and_stays_the_same_object_while_it_is_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    put(path, config().model_dump_json(by_alias=True))
    source = FileConfigSource(path)

    first = source.read()
    assert (first, source.problem) == (config(), "")
    assert source.read() is first

    put(path, config().model_dump_json(by_alias=True, indent=1))

    assert source.read() is first


def test_a_replaced_config_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    put(path, config().model_dump_json(by_alias=True))
    source = FileConfigSource(path)
    source.read()

    put(path, config(sync="now").model_dump_json(by_alias=True))

    assert source.read() == config(sync="now")


def test_before_the_first_config_the_problem_says_what_is_awaited(tmp_path: Path) -> None:
    source = FileConfigSource(tmp_path / "config.json")

    assert source.read() is None
    assert "config.json cannot be read (No such file or directory)" in source.problem


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "the document: Invalid JSON"),
        ('{"knowledgeBase": "kb"}', "namespace: Field required"),
        (
            config(sources=[SourceConfig(name="a")]).model_dump_json(by_alias=True),
            "exactly one of configMap and volume",
        ),
    ],
)
def test_a_bad_config_is_told_and_the_last_good_one_stays(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "config.json"
    put(path, config().model_dump_json(by_alias=True))
    source = FileConfigSource(path)
    first = source.read()

    put(path, content)

    assert source.read() is first
    assert problem in source.problem
    assert source.problem.endswith("the last good one stays in force")


def test_a_config_that_is_removed_stays_in_force(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    put(path, config().model_dump_json(by_alias=True))
    source = FileConfigSource(path)
    first = source.read()
    path.unlink()

    assert source.read() is first
    assert source.problem


def test_a_corrected_config_ends_the_problem(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    put(path, "{")
    source = FileConfigSource(path)
    source.read()

    put(path, config().model_dump_json(by_alias=True))

    assert (source.read(), source.problem) == (config(), "")


def test_a_config_without_mistakes_has_no_problem(shape: Any) -> None:
    revision = RevisionConfig(name=shape().revision_name("kb"), shape=shape())

    assert config_problem(config(revisions=[revision])) is None


@pytest.mark.parametrize("name", ["../out", "a/b", ".hidden", "", "lock", "UPPER", "x" * 64, "state.json"])
def test_a_revision_cannot_lead_out_of_the_folder(name: str, shape: Any) -> None:
    problem = config_problem(config(revisions=[RevisionConfig(name=name, shape=shape())]))

    assert problem is not None
    assert "cannot name a folder" in problem


def test_double_names_are_named(shape: Any) -> None:
    twice = [SourceConfig(name="docs", volume=VOLUME)] * 2
    assert "sources: 'docs' stands there twice" in str(config_problem(config(sources=twice)))
    revisions = [RevisionConfig(name="kb-1", shape=shape())] * 2
    assert "revisions: 'kb-1' stands there twice" in str(config_problem(config(revisions=revisions)))


def test_a_source_comes_from_one_place() -> None:
    both = SourceConfig(name="docs", volume=VOLUME, config_map=ConfigMapFrom(name="x", path="/x"))

    assert "sources[docs]: exactly one of" in str(config_problem(config(sources=[both])))
