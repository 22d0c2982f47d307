"""Which scripts the documents are written in, and what that decides.

Scripts are counted, languages are not guessed: what depends on the answer (analyzers, the encoder) goes
by script as well. Digits, punctuation and symbols belong to no script. One ideograph says about as
much as three letters, so shares are taken after weighing them; code, names and addresses in Latin
letters are part of ordinary Chinese text. A sample bounds the work per document.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from unicodedata import category

from tidegate_api.config import Census
from tidegate_api.shape import EmbedderFingerprint, Language

ENGLISH_SHARE_MIN = 0.95
HAN_SHARE_MIN = 0.5
OTHER_SHARE_MAX = 0.05
# Above this share of chunks that the encoder cannot read there is no dense leg.
MISMATCH_SHARE_MAX = 0.05

_SAMPLE_CHARACTERS = 6000
_IDEOGRAPH_WEIGHT = 3
_LATIN, _HAN, _KANA = "Latin", "Han", "Kana"

# First code point of a range and the script of its letters; a range ends where the next begins.
_RANGES: tuple[tuple[int, str], ...] = (
    (0x0000, _LATIN),
    (0x0370, "Greek"),
    (0x0400, "Cyrillic"),
    (0x0530, "Armenian"),
    (0x0590, "Hebrew"),
    (0x0600, "Arabic"),
    (0x0780, "Other"),
    (0x0900, "Devanagari"),
    (0x0980, "Other"),
    (0x0E00, "Thai"),
    (0x0E80, "Other"),
    (0x1100, "Hangul"),
    (0x1200, "Other"),
    (0x1E00, _LATIN),
    (0x1F00, "Greek"),
    (0x2000, _LATIN),
    (0x2DE0, "Other"),
    (0x2E80, _HAN),
    (0x3040, _KANA),
    (0x3100, _HAN),
    (0x3130, "Hangul"),
    (0x3190, _HAN),
    (0x31F0, _KANA),
    (0x3200, _HAN),
    (0xA000, "Other"),
    (0xA720, _LATIN),
    (0xA800, "Other"),
    (0xAC00, "Hangul"),
    (0xD800, "Other"),
    (0xF900, _HAN),
    (0xFB00, _LATIN),
    (0xFB13, "Other"),
    (0xFB1D, "Hebrew"),
    (0xFB50, "Arabic"),
    (0xFF00, _LATIN),
    (0xFF66, _KANA),
    (0xFFA0, "Hangul"),
    (0xFFE0, "Other"),
    (0x20000, _HAN),
    (0x32400, "Other"),
)
_FIRSTS = [first for first, _ in _RANGES]
_ASCII_WITHOUT_SCRIPT = bytes(code for code in range(128) if not chr(code).isalpha())
# Languages that are not written in Latin letters, or not only.
_SCRIPTS_OF_LANGUAGE: dict[str, frozenset[str]] = {
    "zh": frozenset({_HAN}),
    "ja": frozenset({_HAN, _KANA}),
    "ko": frozenset({"Hangul"}),
    "ru": frozenset({"Cyrillic"}),
    "uk": frozenset({"Cyrillic"}),
    "bg": frozenset({"Cyrillic"}),
    "el": frozenset({"Greek"}),
    "he": frozenset({"Hebrew"}),
    "ar": frozenset({"Arabic"}),
    "fa": frozenset({"Arabic"}),
    "hi": frozenset({"Devanagari"}),
    "th": frozenset({"Thai"}),
}


def count_scripts(text: str) -> Counter[str]:
    """Return how many letters of each script a sample of `text` holds."""
    sample = _sample(text)
    if sample.isascii():
        letters = len(sample.encode().translate(None, _ASCII_WITHOUT_SCRIPT))
        return Counter({_LATIN: letters}) if letters else Counter()
    counts: Counter[str] = Counter()
    for character, times in Counter(sample).items():
        script = _script(character)
        if script:
            counts[script] += times
    return counts


def decide_language(scripts: Mapping[str, int]) -> Language:
    """Return the language that characters per script stand for; without any it is English."""
    weights = _weights(scripts)
    total = sum(weights.values())
    if not total or weights.get(_LATIN, 0) >= ENGLISH_SHARE_MIN * total:
        return "en"
    han = weights.get(_HAN, 0)
    other = total - han - weights.get(_LATIN, 0)
    return "zh" if han >= HAN_SHARE_MIN * total and other <= OTHER_SHARE_MAX * total else "multi"


def take_census(texts: Iterable[str]) -> Census:
    """Return the census of the documents with these texts."""
    scripts: Counter[str] = Counter()
    documents = 0
    for text in texts:
        documents += 1
        scripts.update(count_scripts(text))
    return Census(language=decide_language(scripts), scripts=dict(sorted(scripts.items())), documents=documents)


def language_mismatch_share(chunks: Iterable[str], fingerprint: EmbedderFingerprint) -> float:
    """Return the share of chunks that are written mostly in scripts which the encoder does not read."""
    if "*" in fingerprint.languages:
        return 0.0
    readable = frozenset({_LATIN}).union(*(_SCRIPTS_OF_LANGUAGE.get(name, ()) for name in fingerprint.languages))
    foreign = number = 0
    for chunk in chunks:
        number += 1
        weights = _weights(count_scripts(chunk))
        unread = sum(weight for script, weight in weights.items() if script not in readable)
        foreign += 2 * unread > sum(weights.values())
    return foreign / number if number else 0.0


def _weights(scripts: Mapping[str, int]) -> dict[str, int]:
    return {script: count * (_IDEOGRAPH_WEIGHT if script == _HAN else 1) for script, count in scripts.items()}


def _sample(text: str) -> str:
    """Return the text, or the same amount from its beginning, middle and end."""
    if len(text) <= _SAMPLE_CHARACTERS:
        return text
    part = _SAMPLE_CHARACTERS // 3
    middle = (len(text) - part) // 2
    return text[:part] + text[middle : middle + part] + text[-part:]


@lru_cache(maxsize=16384)
def _script(character: str) -> str:
    """Return the script of a letter, or an empty string for what belongs to none."""
    if not category(character).startswith("L"):
        return ""
    return _RANGES[bisect_right(_FIRSTS, ord(character)) - 1][1]
