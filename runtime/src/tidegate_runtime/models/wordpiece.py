"""The tokenizer of MiniLM: BERT's uncased WordPiece, built from a vocabulary that ships with us.

No truncation, padding or template is configured, because changing those on a shared
`tokenizers.Tokenizer` is what makes it fail between threads; ids are cut and framed here instead.
Control tokens such as `[SEP]` written in a document are read as ordinary text. One text is encoded
per call: a batch call would start a thread pool of its own beside the encoder's threads.
"""

import gzip
from collections.abc import Sequence
from importlib.resources import files

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

_VOCABULARY = "data/bert-base-uncased-vocab.txt.gz"
# A longer word is one unknown token; the figure belongs to the model.
_WORD_CHARACTERS_MAX = 100


class WordPieceTokenizer:
    """Thread-safe: never changed after it is built."""

    def __init__(self) -> None:
        compressed = files("tidegate_runtime.models").joinpath(_VOCABULARY).read_bytes()
        words = gzip.decompress(compressed).decode().split("\n")[:-1]
        vocabulary = {word: number for number, word in enumerate(words)}
        self._start, self._end = vocabulary["[CLS]"], vocabulary["[SEP]"]
        self._tokenizer = Tokenizer(
            WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=_WORD_CHARACTERS_MAX)  # noqa: S106
        )
        # The stubs of the library leave these two properties without a type.
        self._tokenizer.normalizer = BertNormalizer(lowercase=True)
        self._tokenizer.pre_tokenizer = BertPreTokenizer()

    def offsets(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the character span of every token of `text`, special tokens and truncation left out."""
        return self._tokenizer.encode(text, add_special_tokens=False).offsets

    def ids(self, text: str, *, max_tokens: int) -> list[int]:
        """Return what the encoder reads: at most `max_tokens` ids, the two that frame the text included."""
        found = self._tokenizer.encode(text, add_special_tokens=False).ids
        return [self._start, *found[: max_tokens - 2], self._end]
