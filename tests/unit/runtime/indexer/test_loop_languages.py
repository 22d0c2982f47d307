"""The dense leg comes and goes with the languages of the documents."""

from typing import Any

from tests.unit.runtime.indexer.steps import documents


def test_too_many_chunks_beyond_the_encoder_mean_no_dense_leg(world: Any, shape: Any) -> None:
    documents(world, 15)
    world.write("zh.md", "员工的年假规定在这里说明")
    world.configure(shape(languages=["en"]))

    world.tick()

    assert (world.revision.phase, world.revision.provides) == ("Ready", ["bm25"])
    assert world.revision.message.startswith("EmbedderLanguageMismatch: ")
    assert not world.writer.dense


def test_the_dense_leg_follows_the_content(world: Any, shape: Any) -> None:
    documents(world, 15)
    world.write("zh.md", "员工的年假规定在这里说明")
    world.configure(shape(languages=["en"]))
    world.tick()
    world.start()
    documents(world, 40)

    world.tick()

    assert (world.revision.provides, world.revision.message, world.writer.dense) == (["bm25", "dense"], "", True)
