"""What a person hears of an index: each thing once, and again when it comes back."""

from pathlib import Path

import pytest

from tidegate_api.config import Census, DocumentFailure, IndexerState, RevisionState, SyncState
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBaseSpec
from tidegate_cli.local_files import LocalFiles
from tidegate_cli.local_knowledge import LocalKnowledgeBase
from tidegate_cli.manifests import Manifest, Manifests
from tidegate_cli.processes import Command, ProcessTree
from tidegate_cli.progress import Reporter


class Heard(Reporter):
    """Collects what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def news(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines


class Still(ProcessTree):
    """Starts nothing."""

    async def keep(self, command: Command) -> None:
        self.kept = command


@pytest.fixture
def docs(tmp_path: Path) -> LocalKnowledgeBase:
    (tmp_path / "config").mkdir()
    return LocalKnowledgeBase("docs", tmp_path, 1, None)


def state(*revisions: RevisionState, message: str = "", **sync: object) -> IndexerState:
    return IndexerState(
        process="p", config_hash="c", revisions=list(revisions), message=message, sync=SyncState.model_validate(sync)
    )


def revision(phase: str, *, done: int = 0, name: str = "docs-1", message: str = "") -> RevisionState:
    return RevisionState.model_validate(
        {
            "name": name,
            "phase": phase,
            "language": "en",
            "message": message,
            "documents": 9,
            "chunks": 20,
            "documentsDone": done,
            "documentsTotal": 9,
        }
    )


async def reconcile(docs: LocalKnowledgeBase, *, serving: set[str], sync: str = "", **spec: object) -> str:
    source = {"name": "notes", "from": {"configMap": {"name": "notes"}}}
    body = {"kind": "ConfigMap", "metadata": {"name": "notes"}, "data": {"a.md": "text"}}
    files = LocalFiles(
        docs.folder, Manifests({("ConfigMap", "notes"): Manifest(Path("m"), "ConfigMap", "notes", body)}), {}
    )
    await docs.reconcile(
        KnowledgeBaseSpec.model_validate({"sources": [source], **spec}),
        files,
        sync=sync,
        serving=serving,
        tree=Still(say=lambda _: None),
    )
    return (docs.folder / "config" / "docs-indexer.json").read_text()


def test_a_build_is_told_at_its_begin_and_end(docs: LocalKnowledgeBase) -> None:
    heard = Heard()
    docs.take(IndexerState(process="p", message="the config is not there yet"), heard)
    assert heard.news() == []
    docs.take(state(revision("Building", done=3)), heard)
    docs.take(state(revision("Building", done=6)), heard)
    assert heard.news() == ["docs-1: building, 9 documents, 3 of them are done already"]
    docs.take(state(revision("Ready")), heard)
    (line,) = heard.news()
    assert line.startswith("docs-1: 9 documents, 20 chunks, ready in ")
    docs.take(state(revision("Ready")), heard)
    assert heard.news() == []


def test_a_build_that_fails_or_is_given_up_begins_anew_when_it_comes_back(docs: LocalKnowledgeBase) -> None:
    heard = Heard()
    for end in (state(revision("Failed", message="no room")), state()):
        docs.take(state(revision("Building")), heard)
        assert heard.news() == ["docs-1: building, 9 documents"]
        docs.take(end, heard)
        heard.news()
    docs.take(state(revision("Failed", message="no room")), heard)
    assert heard.news() == ["docs: docs-1: no room"]


def test_a_failure_is_told_once_and_again_when_it_comes_back(docs: LocalKnowledgeBase) -> None:
    heard = Heard()
    failing = state(failed=1, failures=[DocumentFailure(document="a.md", reason="is binary")])
    docs.take(failing, heard)
    docs.take(failing, heard)
    assert heard.news() == ["docs: a.md: is binary"]
    docs.take(state(), heard)
    docs.take(failing, heard)
    assert heard.news() == ["docs: a.md: is binary"]
    docs.take(
        failing.model_copy(update={"sync": failing.sync.model_copy(update={"failed": 30}), "message": "gone"}), heard
    )
    assert heard.news() == ["docs: gone", "docs: 30 documents could not be indexed; the first 1 are named above"]


async def test_auto_is_decided_by_the_first_census_and_a_drift_is_told(docs: LocalKnowledgeBase) -> None:
    heard = Heard()
    assert '"revisions": []' in await reconcile(docs, serving=set())
    first = state().model_copy(update={"census": Census(language="zh", documents=3)})
    docs.take(first, heard)
    assert '"language": "zh"' in await reconcile(docs, serving=set())
    docs.take(first, heard)
    assert heard.news() == []
    docs.take(state().model_copy(update={"census": Census(language="en", documents=9)}), heard)
    assert '"language": "zh"' in await reconcile(docs, serving=set())
    assert heard.news() == [
        "docs: the documents are now en, the index was built for zh; set spec.language to en to rebuild it"
    ]
    assert '"language": "en"' in await reconcile(docs, serving=set(), language="en")
    assert docs.decided == "zh", "what auto came to is not what a person set"


async def test_a_revision_that_serves_stays_with_its_shape_until_it_is_not_needed(docs: LocalKnowledgeBase) -> None:
    await reconcile(docs, serving=set(), language="en")
    assert docs.desired is not None
    first = docs.desired
    config = await reconcile(docs, serving={first.name}, language="en", chunking={"sizeTokens": 40})
    assert docs.desired != first
    assert first.name in config
    assert docs.desired.name in config
    config = await reconcile(docs, serving={docs.desired.name}, language="en", chunking={"sizeTokens": 40}, sync="now")
    assert first.name not in config
    assert '"sync": "now"' in config
