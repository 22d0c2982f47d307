"""Terms of a text, the same for documents and queries.

Folding comes first and on a copy (stored text and offsets are never touched): NFKC, which also
brings full-width forms and squared units to plain letters, lower case, invisible characters out.
Then each run of text is treated by its script, not by a language chosen for the corpus: Han runs go
through a dictionary, runs of other scripts written without spaces become pairs, everything else is
words; English stop words leave and Latin words are stemmed. Whatever is no letter or digit
separates, so look-alike hyphens are all one. Changing any of this changes indexes: raise `analyzer`
in tidegate_api.shape.ALGORITHMS with it.
"""

import re
import unicodedata
from functools import cache
from threading import Lock

import Stemmer

from tidegate_runtime.stores.embedded.han import han_terms, pairs

# The list that Lucene's English analyzer and bm25s use.
_STOPWORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there "  # noqa: SIM905
    "these they this to was will with".split()
)
_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
# Thai, Lao, Burmese, Khmer, kana.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u31f0-\u31ff"
_APOSTROPHE_ENDING = re.compile(r"['’](?:s|t|d|m|re|ve|ll)\b")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
# Soft hyphen, zero-width characters, variation selectors: inside a word they are no part of it.
_INVISIBLE = dict.fromkeys([0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, *range(0xFE00, 0xFE10)])
_REMEMBERED_WORDS = 65_536
_LAST_CODE_WITH_MARKS = 0x1FFFF


class _Stems(dict[str, str]):
    """Remembers the stem of each word, empty for stop words. Its own cache is slower, and it is not thread-safe."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(_STOPWORDS, ""))
        self._lock = Lock()
        self._stemmer = Stemmer.Stemmer("english", 0)

    def __missing__(self, word: str) -> str:
        with self._lock:
            if len(self) >= _REMEMBERED_WORDS:
                self.clear()
                self.update(dict.fromkeys(_STOPWORDS, ""))
            stem: str = self._stemmer.stemWord(word)
            self[word] = stem
            return stem


_STEMS = _Stems()


def terms_of(text: str) -> list[str]:
    """Return the terms of `text`, repetitions included; their order means nothing. Thread-safe."""
    if text.isascii():
        return _stemmed(_ASCII_WORD.findall(_APOSTROPHE_ENDING.sub("", text.lower())))
    folded = unicodedata.normalize("NFKC", text).lower().translate(_INVISIBLE)
    terms: list[str] = []
    words: list[str] = []
    for run in _run_pattern().finditer(_APOSTROPHE_ENDING.sub("", folded)):
        match run.lastgroup:
            case "han":
                terms += han_terms(run.group())
            case "unspaced":
                terms += pairs(run.group())
            case _:
                words.append(run.group())
    return terms + _stemmed(words)


def _stemmed(words: list[str]) -> list[str]:
    return [stem for word in words if (stem := _STEMS[word])]


@cache
def _run_pattern() -> re.Pattern[str]:
    # `\w` leaves out combining marks, which would cut words of Indic scripts at every vowel sign.
    codes = range(_LAST_CODE_WITH_MARKS + 1)
    marks = "".join(chr(code) for code in codes if unicodedata.category(chr(code)) in ("Mn", "Mc"))
    letter = rf"[^\W_{_HAN}{_UNSPACED}]"
    return re.compile(rf"(?P<han>[{_HAN}]+)|(?P<unspaced>[{_UNSPACED}]+)|{letter}(?:{letter}|[{marks}])*")
