"""An order to stop, heeded where the indexer is busy longest: between two texts that it embeds, two files that it reads.

A batch takes an encoder up to half a minute on one core, and whoever stops a process kills it before
that. So the batch in hand is given up: nothing of it is committed, and the next start makes it again.
"""

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from tidegate_runtime.ports import Embedder, FloatVector, Tokenizer

# A call takes about this long; an encoder that is quick gets more texts at once, as a GPU needs.
CALL_SECONDS = 0.25
FIRST_CALL_TEXTS = 4


class StoppedError(Exception):
    """The indexer was told to end in the middle of something."""


class StopSign:
    """Set by one thread, heeded by another."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Order to stop."""
        self._event.set()

    def is_set(self) -> bool:
        """Whether the order was given."""
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Wait for the order, so long at most."""
        self._event.wait(seconds)

    def heed(self) -> None:
        """Go on, unless the order was given.

        Raises:
            StoppedError: it was.
        """
        if self._event.is_set():
            raise StoppedError


class HeedingEmbedder:
    """An Embedder that hands passages to another one in several calls, and heeds a stop sign before each."""

    def __init__(self, embedder: Embedder, stop: StopSign, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._embedder = embedder
        self._stop = stop
        self._monotonic = monotonic
        self._call_texts = FIRST_CALL_TEXTS
        self.fingerprint = embedder.fingerprint

    @property
    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer that chunk sizes are counted in."""
        return self._embedder.tokenizer

    def embed_passages(self, texts: Sequence[str]) -> FloatVector:
        """Return unit vectors; rows without a direction are NaN.

        Raises:
            StoppedError: the order came.
        """
        vectors = np.empty((len(texts), self.fingerprint.dimension), dtype=np.float32)
        done = 0
        while done < len(texts):
            self._stop.heed()
            part = texts[done : done + self._call_texts]
            began = self._monotonic()
            vectors[done : done + len(part)] = self._embedder.embed_passages(part)
            self._keep_pace(self._monotonic() - began)
            done += len(part)
        return vectors

    def embed_query(self, text: str) -> FloatVector:
        """Return one unit vector."""
        return self._embedder.embed_query(text)

    def _keep_pace(self, took_seconds: float) -> None:
        if took_seconds < CALL_SECONDS / 2:
            self._call_texts *= 2
        elif took_seconds > CALL_SECONDS:
            self._call_texts = max(1, self._call_texts // 2)
