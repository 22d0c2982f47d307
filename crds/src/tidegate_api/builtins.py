"""Encoders that come with Tidegate, as constants: a revision's name must not depend on reading weights.

Digests are those of the weights that the packages of the `runtime` extra install; the adapters refuse
other files. `auto` chooses by language: MiniLM is better on English and useless on Chinese, the
multilingual encoder reads everything.
"""

from types import MappingProxyType

from tidegate_api.shape import EmbedderFingerprint, Language
from tidegate_api.violation import listed

AUTO = "auto"

MINILM = EmbedderFingerprint(
    model="minilm",
    digest="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    dimension=384,
    max_tokens=256,
    scale=0.38,
    languages=["en"],
)
# The model itself has no limit; longer texts lose detail in their mean, so chunks stay below this.
USE_M3 = EmbedderFingerprint(
    model="use-m3",
    digest="0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
    dimension=512,
    max_tokens=512,
    pooling="model",
    scale=0.12,
    languages=["*"],
)

BUILTINS = MappingProxyType({fingerprint.model: fingerprint for fingerprint in (MINILM, USE_M3)})
_AUTOMATIC: dict[Language, EmbedderFingerprint] = {"en": MINILM, "zh": USE_M3, "multi": USE_M3}


class UnknownModelError(Exception):
    """`embedding.model` names nothing that is there."""

    def __init__(self, model: str) -> None:
        """Name the model that was asked for and those that are known."""
        super().__init__(f'"{model}" is not a known model: write one of {listed([AUTO, *BUILTINS])}')
        self.model = model


def resolve_embedder(model: str, language: Language) -> EmbedderFingerprint:
    """Return the encoder that `model` stands for in a knowledge base of `language`.

    Raises:
        UnknownModelError: there is no such model.
    """
    if model == AUTO:
        return _AUTOMATIC[language]
    if model not in BUILTINS:
        raise UnknownModelError(model)
    return BUILTINS[model]
