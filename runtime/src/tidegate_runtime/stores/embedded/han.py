"""Words of Han text: the most probable split under jieba's dictionary, in its search mode.

Long words also give the shorter dictionary words inside them, so that a part is found in a whole.
Characters that no dictionary word binds (names, new words) give overlapping pairs; one that stands
alone gives itself. A function word ends such a run: a pair across it is a word that no document has,
and a question full of those looks like one that the index knows nothing of. Only the dictionary of
the `jieba` distribution is used: its loader keeps a cache in the shared temporary folder and logs to
stderr, its splitter is several times slower, and its guesses at new words differ between a question
and a document. Costs are integers, so that a split does not depend on a processor's last bit. The
dictionary is loaded when the first Han text shows up: that takes about a second and 90 MB, which
other processes never pay.
"""

import importlib.util
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock

from tidegate_runtime.errors import ModelUnavailableError

# Words that bind or ask and tell nothing of a subject: they would make every question match every text.
_FUNCTION_WORDS = frozenset(
    "的 了 着 过 吗 呢 吧 啊 是 有 在 和 与 及 或 也 都 就 而 之 其 被 把 对 从 到 由 给 为 以 于 等 中 这 那 哪 谁 个 几 "  # noqa: SIM905
    "我 你 他 她 它 们 我们 你们 他们 一个 什么 怎么 怎样 如何 为什么 哪个 哪些 哪里 多少".split()
)
_COST_UNITS = 1_000_000
_NO_WORD = 1 << 60  # the cost of what only begins a word: never part of a split
_LOADING = Lock()


@dataclass(frozen=True, slots=True)
class _Dictionary:
    """`costs` has the negative log probability of each word, and `_NO_WORD` for each beginning that is none itself."""

    costs: dict[str, int]
    unknown_cost: int


def han_terms(run: str) -> list[str]:
    """Return the terms of a run of Han characters."""
    dictionary = load_dictionary()
    terms: list[str] = []
    unbound = ""
    for word in _most_probable_split(run, dictionary):
        if len(word) == 1 and word not in _FUNCTION_WORDS:
            unbound += word
            continue
        terms += pairs(unbound)
        unbound = ""
        if len(word) > 2:
            terms += [part for part in _parts(word) if dictionary.costs.get(part, _NO_WORD) < _NO_WORD]
        terms.append(word)
    terms += pairs(unbound)
    return [term for term in terms if term not in _FUNCTION_WORDS]


def pairs(run: str) -> list[str]:
    """Return the overlapping pairs of a run of characters; one that stands alone gives itself."""
    return [run[start : start + 2] for start in range(len(run) - 1)] or ([run] if run else [])


def load_dictionary() -> _Dictionary:
    """Return the dictionary, loaded once in a process."""
    with _LOADING:
        return _load()


def _most_probable_split(run: str, dictionary: _Dictionary) -> list[str]:
    cost_of, unknown = dictionary.costs.get, dictionary.unknown_cost
    length = len(run)
    cost_from = [0] * (length + 1)
    end_of_word = [0] * length
    for start in range(length - 1, -1, -1):
        lowest = cost_of(run[start], unknown) + cost_from[start + 1]
        best_end = end = start + 1
        while end < length:
            end += 1
            cost = cost_of(run[start:end])
            if cost is None:
                break
            cost += cost_from[end]
            if cost <= lowest:
                lowest, best_end = cost, end
        cost_from[start] = lowest
        end_of_word[start] = best_end
    words: list[str] = []
    start = 0
    while start < length:
        words.append(run[start : end_of_word[start]])
        start = end_of_word[start]
    return words


def _parts(word: str) -> list[str]:
    """Return the two- and three-character parts of a longer word."""
    return [word[start : start + size] for size in (2, 3) if len(word) > size for start in range(len(word) - size + 1)]


@cache
def _load() -> _Dictionary:
    frequencies: dict[str, int] = {}
    for line in _dictionary_path().read_text(encoding="utf-8").splitlines():
        word, frequency, _ = line.split(" ", 2)
        frequencies[word] = int(frequency)
    log_total = math.log(sum(frequencies.values()))
    # Few distinct frequencies: words share the integers.
    cost_of = {count: round((log_total - math.log(count)) * _COST_UNITS) for count in set(frequencies.values())}
    costs = {word: cost_of[count] for word, count in frequencies.items()}
    for word in frequencies:
        for end in range(2, len(word)):
            costs.setdefault(word[:end], _NO_WORD)
    return _Dictionary(costs, unknown_cost=round(log_total * _COST_UNITS))


def _dictionary_path() -> Path:
    spec = importlib.util.find_spec("jieba")
    path = Path(spec.origin).with_name("dict.txt") if spec and spec.origin else None
    if path is None or not path.is_file():
        raise ModelUnavailableError("the dictionary of `jieba` is missing: install tidegate with the extra `runtime`")
    return path
