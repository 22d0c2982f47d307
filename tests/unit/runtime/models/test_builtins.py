"""The real built-in encoders: bits, devices, neighbours."""

from collections.abc import Sequence

import numpy as np
import pytest

from tidegate_api.builtins import MINILM, USE_M3
from tidegate_runtime.errors import ModelUnavailableError
from tidegate_runtime.models.batching import plan_bucketed
from tidegate_runtime.models.onnx import OnnxEmbedder, open_minilm
from tidegate_runtime.models.registry import open_embedder
from tidegate_runtime.models.use_m3 import open_use_m3
from tidegate_runtime.ports import Embedder

pytestmark = pytest.mark.models

ENGLISH = ("How do I reset my password?", "I forgot my login, recover it", "The capital of France is Paris")
CHINESE = ("如何重置密码？", "忘记登录密码怎么找回", "法国的首都是巴黎")


def cosines(embedder: Embedder, texts: Sequence[str]) -> tuple[float, float]:
    """Return how near the first text is to the second, and to the third."""
    first, second, third = embedder.embed_passages(texts)
    return float(first @ second), float(first @ third)


def test_minilm_finds_the_related_english_text() -> None:
    near, far = cosines(open_embedder(MINILM), ENGLISH)
    assert near > 0.5 > 0.2 > far


@pytest.mark.parametrize("texts", [ENGLISH, CHINESE])
def test_the_multilingual_encoder_finds_the_related_text(texts: Sequence[str]) -> None:
    near, far = cosines(open_embedder(USE_M3), texts)
    assert near > 0.3 > 0.2 > far


@pytest.mark.parametrize("fingerprint", [MINILM, USE_M3], ids=lambda fingerprint: fingerprint.model)
def test_components_stay_within_the_scale_of_the_fingerprint(fingerprint) -> None:
    vectors = open_embedder(fingerprint).embed_passages([*ENGLISH, *CHINESE])
    assert np.abs(vectors).max() <= fingerprint.scale


def test_minilm_gives_the_same_bits_with_any_number_of_threads() -> None:
    texts = [*ENGLISH, "word " * 200]
    one, two = (open_embedder(MINILM, threads=threads).embed_passages(texts) for threads in (1, 2))
    assert np.array_equal(one, two)


def test_minilm_reads_no_further_than_its_limit() -> None:
    alike, longer = open_embedder(MINILM).embed_passages(["dog " * 254, "dog " * 254 + "and a cat"])
    assert np.array_equal(alike, longer)


def test_padded_batches_give_the_same_vectors_up_to_rounding() -> None:
    exact = open_embedder(MINILM)
    assert isinstance(exact, OnnxEmbedder)
    bucketed = OnnxEmbedder(exact._session, fingerprint=MINILM, tokenizer=exact.tokenizer, plan=plan_bucketed)
    texts = [*ENGLISH, *CHINESE, "word " * 100, ""]
    assert np.allclose(bucketed.embed_passages(texts), exact.embed_passages(texts), atol=1e-5)


def test_cuda_by_name_on_a_machine_without_it_is_refused() -> None:
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this machine's onnxruntime has CUDA")
    with pytest.raises(ModelUnavailableError, match="device cuda was asked for"):
        open_minilm(MINILM, threads=1, device="cuda")


def test_other_weights_than_the_fingerprints_are_refused() -> None:
    with pytest.raises(ModelUnavailableError, match="expected sha256 0000"):
        open_use_m3(USE_M3.model_copy(update={"digest": "0" * 64}))
