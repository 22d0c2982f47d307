"""An order to stop ends work between two texts, and loses nothing."""

from collections.abc import Sequence
from typing import Any

import pytest

from tidegate_runtime.indexer.stopping import CALL_SECONDS, HeedingEmbedder, StoppedError, StopSign
from tidegate_runtime.models.fake import FakeEmbedder
from tidegate_runtime.ports import FloatVector

TEXTS = [f"words of passage {number}" for number in range(40)]


class TimedEmbedder(FakeEmbedder):
    """Takes so many seconds a text on a clock of its own; `on_call` runs with each call."""

    def __init__(self, *, text_seconds: float) -> None:
        super().__init__()
        self.text_seconds = text_seconds
        self.seconds = 0.0
        self.calls: list[int] = []
        self.on_call = lambda: None

    def embed_passages(self, texts: Sequence[str]) -> FloatVector:
        self.on_call()
        self.calls.append(len(texts))
        self.seconds += self.text_seconds * len(texts)
        return super().embed_passages(texts)


def heeding(embedder: TimedEmbedder, stop: StopSign) -> HeedingEmbedder:
    return HeedingEmbedder(embedder, stop, monotonic=lambda: embedder.seconds)


def test_vectors_are_those_of_one_call() -> None:
    whole = FakeEmbedder().embed_passages(TEXTS)

    assert heeding(TimedEmbedder(text_seconds=0.1), StopSign()).embed_passages(TEXTS).tobytes() == whole.tobytes()


def test_no_text_is_embedded_after_the_order() -> None:
    slow, stop = TimedEmbedder(text_seconds=0.1), StopSign()
    slow.on_call = stop.set

    with pytest.raises(StoppedError):
        heeding(slow, stop).embed_passages(TEXTS)

    assert len(slow.calls) == 1


@pytest.mark.parametrize("text_seconds", [0.0001, 0.02, 0.1, 2.0], ids=["GPU", "quick", "slow", "very slow"])
def test_a_call_takes_about_as_long_as_it_should(text_seconds: float) -> None:
    embedder = TimedEmbedder(text_seconds=text_seconds)
    heeded = heeding(embedder, StopSign())

    heeded.embed_passages(TEXTS * 10)
    heeded.embed_passages(TEXTS * 10)

    last = embedder.calls[-2]
    assert last == 1 or last * text_seconds <= 2 * CALL_SECONDS
    assert last * text_seconds >= CALL_SECONDS / 2 or last > len(TEXTS)


def test_a_stop_in_the_middle_of_a_batch_loses_only_that_batch(world: Any, shape: Any) -> None:
    for number in range(100):
        world.write(f"{number}.md", f"words of document {number}")
    world.configure(shape())
    stop = world.loop_stop

    def stops_in_the_second_batch() -> None:
        if world.store.writers and world.writer.commits:
            stop.set()

    slow = TimedEmbedder(text_seconds=0.1)
    slow.on_call = stops_in_the_second_batch
    world.open_embedder = lambda _: heeding(slow, stop)

    world.loop.run()

    assert (len(world.ids()), world.writer.closed) == (64, True)
    world.open_embedder = None
    world.start()
    assert (world.tick().message, len(world.ids()), world.revision.phase) == ("", 100, "Ready")
