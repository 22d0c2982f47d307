"""The release that `tidegate local` serves: nothing is switched before it is warm, nothing goes before it is let go."""

import json
from pathlib import Path

import pytest

from tidegate_api.config import (
    IndexerState,
    ReleaseState,
    RevisionConfig,
    RevisionState,
    RoutingTable,
    SidecarState,
)
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseSpec
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipelineSpec
from tidegate_cli.local_files import LocalFiles
from tidegate_cli.local_knowledge import LocalKnowledgeBase
from tidegate_cli.local_pipeline import LocalPipeline
from tidegate_cli.manifests import Manifests
from tidegate_cli.processes import Command, ProcessTree
from tidegate_operator.core.desired import revision_shape


class Still(ProcessTree):
    """Starts nothing."""

    def __init__(self) -> None:
        super().__init__(say=lambda _: None)
        self.kept: dict[str, Command] = {}

    async def keep(self, command: Command) -> None:
        self.kept[command.name] = command


class Rig:
    """A pipeline over one knowledge base whose revisions are ready when the test says so."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "config").mkdir(exist_ok=True)
        self.tree = Still()
        self.knowledge = LocalKnowledgeBase("docs", folder, 1, "en")
        self.pipeline = self.again()

    def again(self) -> LocalPipeline:
        """Return the pipeline as another start finds it."""
        self.pipeline = LocalPipeline(
            name="docs", folder=self.folder, host="127.0.0.1", port=8080, state_port=2, version=0
        )
        return self.pipeline

    def build(self, size_tokens: int, *, ready: bool = True) -> str:
        """Let the knowledge base want a revision of this chunk size; return its name."""
        source = {"name": "docs", "from": {"configMap": {"name": "docs"}}}
        spec = KnowledgeBaseSpec.model_validate({"sources": [source], "chunking": {"sizeTokens": size_tokens}})
        shape = revision_shape(spec, "en")
        self.knowledge.desired = RevisionConfig(name=shape.revision_name("docs"), shape=shape)
        state = RevisionState(name=self.knowledge.desired.name, phase="Ready" if ready else "Building", language="en")
        self.knowledge.state = IndexerState(process="p", config_hash="c", revisions=[state])
        return self.knowledge.desired.name

    async def reconcile(self, **spec: object) -> RoutingTable | None:
        """Run a pass and return the table on disk."""
        body = {"knowledgeBases": [{"name": "docs"}], "auth": {"anonymous": {}}, **spec}
        files = LocalFiles(self.folder, Manifests({}), {})
        await self.pipeline.reconcile(
            RetrievalPipelineSpec.model_validate(body),
            files=files,
            knowledge={"docs": self.knowledge},
            tree=self.tree,
        )
        path = self.folder / "config" / "docs-routing.json"
        return RoutingTable.model_validate_json(path.read_bytes()) if path.is_file() else None

    def sidecar(
        self, *releases: tuple[str, str, str], ready: bool = True, message: str = "", tables_behind: int = 0
    ) -> list[str]:
        """Let the sidecar tell its state; return what a person hears."""
        states = [ReleaseState.model_validate({"name": n, "phase": p, "message": m}) for n, p, m in releases]
        version = self.pipeline.version - tables_behind
        state = SidecarState(process="p", table_version=version, releases=states, ready=ready, message=message)
        return self.pipeline.take(state)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


async def test_processes_run_while_the_first_index_is_built_and_the_table_comes_with_it(rig: Rig) -> None:
    rig.build(200, ready=False)
    assert await rig.reconcile() is None
    assert set(rig.tree.kept) == {"docs-runtime", "docs-sidecar"}
    revision = rig.build(200)
    table = await rig.reconcile()
    assert table is not None
    assert (table.version, [index.revision for index in table.releases[0].indexes]) == (1, [revision])
    assert await rig.reconcile() == table, "nothing new, nothing written"


async def test_another_release_serves_once_it_is_warm_and_the_old_index_stays_until_it_is_let_go(rig: Rig) -> None:
    first = rig.build(200)
    one = await rig.reconcile()
    assert one is not None
    rig.sidecar((one.stable, "Warm", ""))
    second = rig.build(100)
    both = await rig.reconcile()
    assert both is not None
    assert (both.stable, len(both.releases)) == (one.stable, 2)
    candidate = next(release.name for release in both.releases if release.name != one.stable)
    rig.sidecar((one.stable, "Warm", ""), (candidate, "Loading", ""))
    assert await rig.reconcile() == both
    rig.sidecar((one.stable, "Warm", ""), (candidate, "Warm", ""))
    new = await rig.reconcile()
    assert new is not None
    assert (new.stable, len(new.releases)) == (candidate, 1)
    assert rig.pipeline.serving_revisions() == {first, second}
    rig.sidecar((one.stable, "Warm", ""), (candidate, "Warm", ""))
    assert rig.pipeline.serving_revisions() == {first, second}
    assert not rig.pipeline.settled
    rig.sidecar((candidate, "Warm", ""))
    assert rig.pipeline.serving_revisions() == {second}
    assert rig.pipeline.settled


async def test_the_table_of_the_last_run_is_taken_up_and_versions_grow(rig: Rig) -> None:
    first = rig.build(200)
    one = await rig.reconcile()
    assert one is not None
    rig.again()
    assert rig.pipeline.serving_revisions() == {first}
    assert await rig.reconcile() == one
    rig.build(100)
    both = await rig.reconcile()
    assert both is not None
    assert (both.version, both.stable) == (2, one.stable)
    (rig.folder / "config" / "docs-routing.json").write_text(json.dumps({"version": "broken"}))
    assert rig.again().table is None


async def test_a_silent_sidecar_means_that_nothing_is_warm(rig: Rig) -> None:
    rig.build(200)
    one = await rig.reconcile()
    assert one is not None
    rig.build(100)
    both = await rig.reconcile()
    assert both is not None
    rig.sidecar(*((release.name, "Warm", "") for release in both.releases))
    assert rig.pipeline.take(None) == []
    assert await rig.reconcile() == both


async def test_a_suspended_pipeline_keeps_what_it_serves(rig: Rig) -> None:
    rig.build(200)
    one = await rig.reconcile(suspend=True)
    assert one is not None, "something has to serve first"
    rig.build(100)
    assert await rig.reconcile(suspend=True, limits={"maxTopK": 5}) == one
    assert '"maxTopK": 100' in (rig.folder / "config" / "docs-sidecar.json").read_text()
    both = await rig.reconcile()
    assert both is not None
    assert len(both.releases) == 2


async def test_a_pipeline_that_does_not_wait_for_builds_goes_on_with_the_built_index(rig: Rig) -> None:
    first = rig.build(200)
    await rig.reconcile()
    rig.build(100, ready=False)
    words = {"nodes": [{"name": "words", "type": "bm25"}], "output": "words"}
    waiting = await rig.reconcile(**words)
    assert waiting is not None
    assert len(waiting.releases) == 1
    going_on = await rig.reconcile(**words, releases={"waitForBuilds": False})
    assert going_on is not None
    assert len(going_on.releases) == 2
    assert {index.revision for release in going_on.releases for index in release.indexes} == {first}


async def test_what_the_sidecar_says_is_told_when_it_is_new(rig: Rig) -> None:
    rig.build(200)
    table = await rig.reconcile()
    assert table is not None
    stable = table.stable
    assert rig.sidecar((stable, "Loading", ""), ready=False, message=f"release {stable} is Loading") == []
    answers = f"{stable} answers at http://127.0.0.1:8080"
    assert rig.sidecar((stable, "Warm", "")) == [answers]
    assert rig.sidecar((stable, "Warm", "")) == []
    assert rig.sidecar((stable, "Warm", ""), message="key 'a': broken") == ["key 'a': broken"]
    assert rig.sidecar((stable, "Warm", ""), ready=False, message="no key") == ["not ready: no key"]
    assert rig.sidecar((stable, "Warm", ""), ("rel-x", "Failed", "no room")) == [
        answers,
        f"rel-x cannot serve, {stable} goes on: no room",
    ]
    assert rig.sidecar((stable, "Failed", "damaged"), ready=False, message=f"{stable} is Failed: damaged") == [
        f"not ready: {stable} is Failed: damaged"
    ]
    assert rig.sidecar((stable, "Warm", ""), tables_behind=1) == [], "an old table says nothing of the new one"


def test_an_ipv6_address_is_written_in_brackets(tmp_path: Path) -> None:
    pipeline = LocalPipeline(name="docs", folder=tmp_path, host="::1", port=8080, state_port=2, version=0)
    assert pipeline.url == "http://[::1]:8080"
