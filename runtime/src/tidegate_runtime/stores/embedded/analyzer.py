"""Terms of a text, the same for documents and queries.

Folding comes first and on a copy (stored text and offsets are never touched): NFKC, which also
brings full-width forms and squared units to plain letters, lower case, invisible characters out.
Then each run of text is treated by its script, not by a language chosen for the corpus: Han runs go
through a dictionary, kana runs become pairs, everything else is words; English stop words leave and
Latin words are stemmed. Whatever is no letter or digit separates, so look-alike hyphens are all one.
Changing any of this changes indexes: raise `analyzer` in tidegate_api.shape.ALGORITHMS with it.
"""

import re
import sys
import threading
import unicodedata
from functools import cache

import Stemmer

from tidegate_runtime.stores.embedded.han import han_terms

# The list that Lucene's English analyzer and bm25s use.
_STOPWORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there "  # noqa: SIM905
    "these they this to was will with".split()
)
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3005\u3007\U00020000-\U000323af"
_KANA = "\u3040-\u30ff\u31f0-\u31ff"
_APOSTROPHE_ENDING = re.compile(r"['’](?:s|t|d|m|re|ve|ll)\b")
_ASCII_WORDS = re.compile(r"[a-z0-9]+")
_INVISIBLE = dict.fromkeys([0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF])


class Analyzer:
    """Splits text into terms. Thread-safe: the stemmer, which is not, exists once per thread."""

    def __init__(self) -> None:
        self._local = threading.local()

    def terms(self, text: str) -> list[str]:
        """Return the terms of `text` in their order, repetitions included."""
        if text.isascii():
            return self._stemmed(_ASCII_WORDS.findall(_without_endings(text.lower())))
        folded = unicodedata.normalize("NFKC", text).lower().translate(_INVISIBLE)
        terms: list[str] = []
        words: list[str] = []
        for run in _word_pattern().finditer(_without_endings(folded)):
            if run.lastgroup is None:
                words.append(run.group())
                continue
            terms += self._stemmed(words)
            words.clear()
            terms += han_terms(run.group()) if run.lastgroup == "han" else _pairs(run.group())
        return terms + self._stemmed(words)

    def _stemmed(self, words: list[str]) -> list[str]:
        kept = [word for word in words if word not in _STOPWORDS]
        stemmed: list[str] = self._stemmer().stemWords(kept)
        return stemmed

    def _stemmer(self) -> Stemmer.Stemmer:
        try:
            return self._local.stemmer
        except AttributeError:
            self._local.stemmer = Stemmer.Stemmer("english")
            return self._local.stemmer


def _without_endings(text: str) -> str:
    return _APOSTROPHE_ENDING.sub("", text)


def _pairs(run: str) -> list[str]:
    return [run[start : start + 2] for start in range(len(run) - 1)] or [run]


@cache
def _word_pattern() -> re.Pattern[str]:
    marks = "".join(chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in ("Mn", "Mc"))
    return re.compile(rf"(?P<han>[{_HAN}]+)|(?P<kana>[{_KANA}]+)|(?:[^\W_{_HAN}{_KANA}]|[{marks}])+")
