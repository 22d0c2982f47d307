"""What every Embedder keeps; one class, run against each adapter."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tidegate_api.builtins import MINILM, USE_M3
from tidegate_runtime.errors import UnusableVectorError
from tidegate_runtime.models.fake import FAKE_FINGERPRINT, FakeEmbedder
from tidegate_runtime.models.registry import open_embedder
from tidegate_runtime.ports import Embedder

TEXTS = (
    "Annual leave is 25 days.",
    "年假为二十五天。",
    "ＲＴＸ４０９０ weighs 2 ㎏ 👩‍🚀",
    "a",
    "many words " * 120,
    "Annual leave is 25 days.",
)
CALLS = 200


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(FAKE_FINGERPRINT, id="fake"),
        pytest.param(MINILM, id="minilm", marks=pytest.mark.models),
        pytest.param(USE_M3, id="use-m3", marks=pytest.mark.models),
    ],
)
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return open_embedder(request.param)


class TestEmbedder:
    """The contract of `ports.Embedder`."""

    def test_passages_are_unit_vectors_of_the_fingerprints_dimension(self, embedder: Embedder) -> None:
        vectors = embedder.embed_passages(TEXTS)
        assert vectors.shape == (len(TEXTS), embedder.fingerprint.dimension)
        assert vectors.dtype == np.float32
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)

    def test_no_passages_give_no_rows(self, embedder: Embedder) -> None:
        assert embedder.embed_passages([]).shape == (0, embedder.fingerprint.dimension)

    def test_a_text_has_the_same_bits_alone_and_in_any_batch(self, embedder: Embedder) -> None:
        together = embedder.embed_passages(TEXTS)
        backwards = embedder.embed_passages(TEXTS[::-1])[::-1]
        alone = np.stack([embedder.embed_passages([text])[0] for text in TEXTS])
        assert np.array_equal(together, alone)
        assert np.array_equal(together, backwards)
        assert np.array_equal(together[0], together[-1])

    def test_a_query_has_the_shape_of_one_vector(self, embedder: Embedder) -> None:
        vector = embedder.embed_query("How much leave do I get?")
        assert vector.shape == (embedder.fingerprint.dimension,)
        assert np.isclose(np.linalg.norm(vector), 1, atol=1e-5)

    def test_concurrent_calls_each_get_their_own_result(self, embedder: Embedder) -> None:
        queries = [f"tenant {number} asks for token-{number * 7919}" for number in range(CALLS)]
        expected = embedder.embed_passages(queries)
        with ThreadPoolExecutor(max_workers=20) as pool:
            found = np.stack(list(pool.map(embedder.embed_query, queries)))
        assert np.array_equal(found, expected)

    def test_concurrent_tokenizing_gives_each_caller_its_own_spans(self, embedder: Embedder) -> None:
        texts = ["word " * number + "end" for number in range(CALLS)]
        expected = [list(embedder.tokenizer.offsets(text)) for text in texts]
        with ThreadPoolExecutor(max_workers=20) as pool:
            assert [list(spans) for spans in pool.map(embedder.tokenizer.offsets, texts)] == expected

    @pytest.mark.parametrize("text", [*TEXTS[:5], "", " \n", "e\u0301\u0301 \u200b"])
    def test_token_spans_lie_in_the_text_in_order(self, embedder: Embedder, text: str) -> None:
        spans: Sequence[tuple[int, int]] = embedder.tokenizer.offsets(text)
        assert all(0 <= start <= end <= len(text) for start, end in spans)
        assert [start for start, _ in spans] == sorted(start for start, _ in spans)


def test_an_unusable_passage_is_marked_and_leaves_its_neighbours_alone() -> None:
    texts = [f"text {number}" for number in range(100)]
    texts[42] = " "
    vectors = FakeEmbedder().embed_passages(texts)
    assert np.isnan(vectors[42]).all()
    assert np.isfinite(np.delete(vectors, 42, axis=0)).all()


def test_an_unusable_query_is_an_error() -> None:
    with pytest.raises(UnusableVectorError, match="model fake"):
        FakeEmbedder().embed_query(" ")
