"""Encoders are opened by fingerprint, once, and only when every part that decides vectors is known."""

import pytest

from tidegate_api.builtins import MINILM
from tidegate_api.shape import EmbedderFingerprint
from tidegate_runtime.errors import ModelUnavailableError
from tidegate_runtime.models.fake import FAKE_FINGERPRINT
from tidegate_runtime.models.registry import open_embedder


def test_an_encoder_is_opened_once_per_process() -> None:
    assert open_embedder(FAKE_FINGERPRINT) is open_embedder(FAKE_FINGERPRINT)


def test_an_unknown_model_is_refused_naming_what_is_built_in() -> None:
    unknown = FAKE_FINGERPRINT.model_copy(update={"model": "word2vec"})
    with pytest.raises(ModelUnavailableError, match=r"'word2vec' is not built in; built in are minilm, use-m3"):
        open_embedder(unknown)


@pytest.mark.parametrize(
    ("field", "value"),
    [("digest", "1" * 64), ("dimension", 768), ("max_tokens", 512), ("pooling", "cls"), ("query_prefix", "query: ")],
)
def test_a_difference_that_decides_vectors_is_refused_by_name(field: str, value: object) -> None:
    other = MINILM.model_copy(update={field: value})
    with pytest.raises(ModelUnavailableError, match=f"model minilm: the index expects {field} {value!r}"):
        open_embedder(other)


def test_languages_and_scale_do_not_decide_vectors() -> None:
    later = FAKE_FINGERPRINT.model_copy(update={"languages": ["en"], "scale": 0.5})
    assert open_embedder(later).fingerprint == later


def test_a_fingerprint_of_an_index_survives_its_document() -> None:
    stored = EmbedderFingerprint.model_validate(FAKE_FINGERPRINT.to_document())
    assert open_embedder(stored) is open_embedder(FAKE_FINGERPRINT)
