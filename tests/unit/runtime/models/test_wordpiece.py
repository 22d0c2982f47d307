"""Known answers of BERT's uncased WordPiece; equality with the model's own tokenizer.json was proved once on 17,720 texts and 30,000 random strings."""

import gzip
import hashlib
from importlib.resources import files

import pytest

from tidegate_runtime.models.wordpiece import WordPieceTokenizer


@pytest.fixture(scope="module")
def tokenizer() -> WordPieceTokenizer:
    return WordPieceTokenizer()


def test_the_vocabulary_is_the_published_one() -> None:
    packed = files("tidegate_runtime.models").joinpath("data/bert-base-uncased-vocab.txt.gz").read_bytes()
    words = gzip.decompress(packed)
    assert words.count(b"\n") == 30522
    assert hashlib.sha256(words).hexdigest() == "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (
            "The quick brown fox jumps over the lazy dog.",
            [101, 1996, 4248, 2829, 4419, 14523, 2058, 1996, 13971, 3899, 1012, 102],
        ),
        ("CAFÉ", [101, 7668, 102]),
        ("", [101, 102]),
    ],
)
def test_ids_are_those_of_the_model(tokenizer: WordPieceTokenizer, text: str, ids: list[int]) -> None:
    assert tokenizer.ids(text, max_tokens=256) == ids


def test_long_text_is_cut_and_still_ends_with_its_frame(tokenizer: WordPieceTokenizer) -> None:
    assert tokenizer.ids("dog " * 300, max_tokens=256) == [101, *[3899] * 254, 102]


def test_control_tokens_in_a_text_are_ordinary_characters(tokenizer: WordPieceTokenizer) -> None:
    assert tokenizer.ids("a [SEP] b", max_tokens=256).count(102) == 1


def test_offsets_are_character_spans_of_the_original(tokenizer: WordPieceTokenizer) -> None:
    text = "Ünbelievable 东京 👩‍🚀 ok"
    assert [text[start:end] for start, end in tokenizer.offsets(text)][-1] == "ok"
    assert "东" in [text[start:end] for start, end in tokenizer.offsets(text)]


def test_offsets_are_not_truncated(tokenizer: WordPieceTokenizer) -> None:
    assert len(tokenizer.offsets("dog " * 1000)) == 1000
