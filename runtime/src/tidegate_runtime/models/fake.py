"""A deterministic encoder without weights, for tests and for trying the machinery where no model fits.

Every word is hashed to a direction; a text is the sum of its words. Texts that share words are near
each other, in every process alike. A text without a word gives the zero vector, so the
handling of unusable vectors can be exercised for real.
"""

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from tidegate_api.shape import EmbedderFingerprint
from tidegate_runtime.models.vectors import require_usable, unit_vector
from tidegate_runtime.ports import FloatVector

FAKE_FINGERPRINT = EmbedderFingerprint(
    model="fake", digest="0" * 64, dimension=64, max_tokens=256, scale=0.4, languages=["*"]
)
_WORD = re.compile(r"\S+")


class WhitespaceTokenizer:
    """A token is a run of characters that are not white space."""

    def offsets(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the character span of every word of `text`."""
        return [match.span() for match in _WORD.finditer(text)]


class FakeEmbedder:
    """An Embedder that needs nothing; stateless, hence thread-safe."""

    def __init__(self, fingerprint: EmbedderFingerprint = FAKE_FINGERPRINT) -> None:
        self._fingerprint = fingerprint
        self._tokenizer = WhitespaceTokenizer()

    @property
    def fingerprint(self) -> EmbedderFingerprint:
        """Return what makes this encoder's vectors comparable."""
        return self._fingerprint

    @property
    def tokenizer(self) -> WhitespaceTokenizer:
        """Return the tokenizer that chunk sizes are counted in."""
        return self._tokenizer

    def embed_passages(self, texts: Sequence[str]) -> FloatVector:
        """Return unit vectors; texts without a word are NaN."""
        vectors = np.zeros((len(texts), self._fingerprint.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in _WORD.findall(text.casefold())[: self._fingerprint.max_tokens - 2]:
                digest = hashlib.shake_256(word.encode()).digest(self._fingerprint.dimension)
                vectors[row] += np.frombuffer(digest, dtype=np.int8)
            vectors[row] = unit_vector(vectors[row])
        return vectors

    def embed_query(self, text: str) -> FloatVector:
        """Return one unit vector.

        Raises:
            UnusableVectorError: the text has no word.
        """
        vector: FloatVector = self.embed_passages([text])[0]
        return require_usable(vector, model=self._fingerprint.model)
