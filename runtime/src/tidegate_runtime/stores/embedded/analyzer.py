"""Terms of a text, the same for documents and queries; of a query, those that say what it is about.

Folding comes first and on a copy (stored text and offsets are never touched): NFKC, which also
brings full-width forms and squared units to plain letters, lower case, invisible characters out.
Then each run of text is treated by its script, not by a language chosen for the corpus: Han runs go
through a dictionary, runs of other scripts written without spaces become pairs, everything else is
words; English stop words leave and Latin words are stemmed. Whatever is no letter or digit
separates, so look-alike hyphens are all one. Changing any of this changes indexes: raise `analyzer`
in tidegate_api.shape.ALGORITHMS with it. Indexes hold the words that only shape a question ("what",
"does"): in documents they are rare enough to weigh, so it is queries that leave them out.
"""

import re
import unicodedata
from functools import cache
from itertools import pairwise
from threading import Lock

import Stemmer

from tidegate_runtime.stores.embedded.han import han_terms, pairs

# The list that Lucene's English analyzer and bm25s use.
_STOPWORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there "  # noqa: SIM905
    "these they this to was will with".split()
)
# Pronouns, auxiliaries, question words and the like, beyond the stop words above.
_FUNCTION_WORDS = frozenset(
    "about above after again against all am any because been before being below between both can could did do "  # noqa: SIM905
    "does doing don down during each few from further had has have having he her here hers herself him himself "
    "his how i its itself just me more most my myself now off once only other ought our ours ourselves out over "
    "own same she should so some than theirs them themselves those through too under until up very we were what "
    "when where which while who whom why would you your yours yourself yourselves".split()
)
_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
# Thai, Lao, Burmese, Khmer, kana.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u31f0-\u31ff"
# Scripts beyond the basic plane, taken whole; what lies between their letters there is never typed.
_RARE_SCRIPTS = "\U00010000-\U0001cfff\U0001e000-\U0001efff"
_BASIC_PLANE = range(0x10000)
# Soft hyphen, zero-width characters, variation selectors: inside a word they are no part of it.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff\ufe00-\ufe0f]")
_APOSTROPHE_ENDING = re.compile(r"['’](?:s|t|d|m|re|ve|ll)\b")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_HAN_RUN = re.compile(f"[{_HAN}]+")
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_REMEMBERED_WORDS = 65_536


class _Stems(dict[str, str]):
    """Remembers the stem of each word, empty for stop words. Its own cache is slower, and it is not thread-safe."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()
        self._stemmer = Stemmer.Stemmer("english", 0)

    def __missing__(self, word: str) -> str:
        with self._lock:
            if len(self) >= _REMEMBERED_WORDS:
                self.clear()
            stem: str = "" if word in _STOPWORDS else self._stemmer.stemWord(word)
            self[word] = stem
            return stem


_STEMS = _Stems()


def terms_of(text: str) -> list[str]:
    """Return the terms of `text`, repetitions included; their order means nothing. Thread-safe."""
    words, folded = _words(text)
    return _terms(words, folded)


def query_terms_of(text: str) -> list[str]:
    """Return the terms of a query: without function words, unless it holds nothing else. Thread-safe."""
    words, folded = _words(text)
    return _terms([word for word in words if word not in _FUNCTION_WORDS], folded) or _terms(words, folded)


def _words(text: str) -> tuple[list[str], str]:
    """Return the words of `text`, and its folded form where scripts without spaces may be in it."""
    if text.isascii():
        return _ASCII_WORD.findall(_APOSTROPHE_ENDING.sub("", text.lower())), ""
    folded = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text).lower())
    return _word_pattern().findall(_APOSTROPHE_ENDING.sub("", folded)), folded


def _terms(words: list[str], folded: str) -> list[str]:
    terms = _stemmed(words)
    for run in _UNSPACED_RUN.findall(folded):
        terms += pairs(run)
    for run in _HAN_RUN.findall(folded):
        terms += han_terms(run)
    return terms


def _stemmed(words: list[str]) -> list[str]:
    return [stem for word in words if (stem := _STEMS[word])]


@cache
def _word_pattern() -> re.Pattern[str]:
    """Return what matches a word outside the scripts above: letters and digits, then combining marks as well.

    Python's own `\\w` leaves out marks, which would cut words of Indic scripts at every vowel sign.
    Written out as ranges, the pattern is also several times faster than one with `\\w` in it.
    """
    elsewhere = re.compile(f"[{_HAN}{_UNSPACED}]")
    letters = [code for code in _BASIC_PLANE if chr(code).isalnum() and not elsewhere.match(chr(code))]
    marks = [code for code in _BASIC_PLANE if unicodedata.category(chr(code)) in ("Mn", "Mc")]
    inside = sorted({*letters, *(mark for mark in marks if not elsewhere.match(chr(mark)))})
    return re.compile(f"[{_ranges(letters)}{_RARE_SCRIPTS}][{_ranges(inside)}{_RARE_SCRIPTS}]*")


def _ranges(codes: list[int]) -> str:
    """Return ascending codes as the inside of a character class."""
    ends = [code for code, following in pairwise([*codes, -1]) if code + 1 != following]
    starts = [code for previous, code in pairwise([-1, *codes]) if previous + 1 != code]
    return "".join(f"\\u{start:04x}-\\u{end:04x}" for start, end in zip(starts, ends, strict=True))
