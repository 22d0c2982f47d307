"""Token spans of a SentencePiece unigram model, read from its own file.

Only sizes and cuts depend on this tokenizer; the ids that an encoder reads come from its own
package. The two agree on ordinary text; a run of unknown characters counts as one token here, and
a combining mark after a character that NFKC changes may be left out. The file is a protobuf of which
three things are needed: pieces, their scores and the precompiled normalisation table.
"""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer
from tokenizers.models import Unigram
from tokenizers.normalizers import Precompiled, Replace, Strip
from tokenizers.normalizers import Sequence as Steps
from tokenizers.pre_tokenizers import Metaspace

_UNKNOWN_ID = 0
_PIECES_FIELD, _NORMALIZER_FIELD = 1, 3
_PIECE_FIELD, _SCORE_FIELD = 1, 2
_TABLE_FIELD = 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class UnigramTokenizer:
    """Thread-safe: never changed after it is built."""

    def __init__(self, model: Path) -> None:
        pieces: list[tuple[str, float]] = []
        table = b""
        for number, value in _fields(model.read_bytes()):
            if number == _PIECES_FIELD:
                piece = dict(_fields(value))
                score = struct.unpack("<f", piece[_SCORE_FIELD])[0] if _SCORE_FIELD in piece else 0.0
                pieces.append((piece[_PIECE_FIELD].decode(), score))
            elif number == _NORMALIZER_FIELD:
                table = dict(_fields(value))[_TABLE_FIELD]
        self._tokenizer = Tokenizer(Unigram(pieces, unk_id=_UNKNOWN_ID))
        self._tokenizer.normalizer = Steps([Precompiled(table), Strip(), Replace(Regex(" {2,}"), " ")])
        self._tokenizer.pre_tokenizer = Metaspace(replacement="▁", prepend_scheme="always")

    def offsets(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the character span of every token of `text`, special tokens and truncation left out."""
        return self._tokenizer.encode(text, add_special_tokens=False).offsets


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each field of a protobuf message; numbers encoded as varints are passed over."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        kind = key & 7
        if kind == _VARINT:
            _, position = _varint(message, position)
            continue
        if kind == _BYTES:
            length, position = _varint(message, position)
        elif kind in (_FIXED32, _FIXED64):
            length = 4 if kind == _FIXED32 else 8
        else:
            raise ValueError(f"wire type {kind} at byte {position} is not one of protobuf's")
        yield key >> 3, message[position : position + length]
        position += length


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
