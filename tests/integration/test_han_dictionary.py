"""Who pays for the dictionary of Chinese: a second of CPU and 90 MB. In processes of their own, since it is loaded once."""

import subprocess
import sys
from pathlib import Path

import pytest

ANSWER = """
import asyncio, sys
from pathlib import Path
from tests.integration.indexer_process import make_shape, new_indexer
from tidegate_api.config import IndexRef, NodeConfig, PipelineConfig, ReleaseConfig, RevisionConfig, Versions
from tidegate_runtime.engine import Engine
from tidegate_runtime.indexer.build import build_revision
from tidegate_runtime.models.fake import FakeEmbedder
from tidegate_runtime.releases import Releases
from tidegate_runtime.revisions import LocalRevisions
from tidegate_runtime.stores.embedded import han
from tidegate_runtime.stores.embedded.analyzer import terms_of
from tidegate_runtime.warmup import warm_up

folder, language, text = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
shape = make_shape().model_copy(update={"language": language})
name = shape.revision_name("kb")
config = new_indexer(folder).config.model_copy(update={"revisions": [RevisionConfig(name=name, shape=shape)]})
(folder / "docs" / "one.md").write_text(text, encoding="utf-8")

class Encoders:
    async def open(self, fingerprint):
        return FakeEmbedder(fingerprint)

def loaded():
    return han._load.cache_info().currsize == 1

async def main():
    build_revision(folder / "root" / "kb", config, FakeEmbedder())
    built = loaded()
    engine = Engine()
    releases = Releases(
        revisions=LocalRevisions(folder / "root"), embedders=Encoders(),
        warm_up=lambda release: warm_up(engine, release, deadline_seconds=60),
    )
    nodes = [NodeConfig(name="lexical", type="bm25"), NodeConfig(name="dense", type="dense"),
             NodeConfig(name="fused", type="fuse", inputs=["lexical", "dense"])]
    release = ReleaseConfig.make(
        pipeline=PipelineConfig(knowledge_bases=["kb"], nodes=nodes, output="fused"),
        indexes=[IndexRef(knowledge_base="kb", revision=name)], versions=Versions(runtime="0", sidecar="0"),
    )
    releases.open(release)
    while (state := (await releases.states())[0]).phase == "Loading":
        await asyncio.sleep(0.01)
    assert state.phase == "Warm", state
    warm = loaded()
    terms_of("caf\\u00e9 \\u0394\\u03b5\\u03bb\\u03c4\\u03b1")
    words = loaded()
    terms_of("\\u9884\\u70ed")
    await releases.close_all()
    engine.close()
    print(built, warm, words, loaded())

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("language", "text", "loaded"),
    [
        ("en", "Paid leave, à la carte, for everybody.", "False False False True"),
        ("zh", "员工每年有三十天假期。", "True True True True"),
    ],
    ids=["English", "Chinese"],
)
def test_the_dictionary_is_loaded_where_han_text_is_and_nowhere_else(
    tmp_path: Path, language: str, text: str, loaded: str
) -> None:
    command = [sys.executable, "-c", ANSWER, str(tmp_path), language, text]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    assert (ended.stdout.strip(), ended.returncode) == (loaded, 0), ended.stderr
