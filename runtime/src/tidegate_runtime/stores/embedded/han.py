"""Words of Han text: the most probable split under jieba's dictionary, in search mode.

Long words also give the shorter dictionary words inside them, so that a part is found in a whole.
Characters that no dictionary word binds (names, new words) give overlapping pairs; one that stands
alone gives itself. The dictionary is loaded when the first Han text shows up: it takes a second and
about 80 MB, which English-only processes never pay. jieba's own loader is not used, because it
keeps a cache in the shared temporary folder and logs to stderr.
"""

import threading
import warnings
from functools import cache
from typing import Any, Protocol, cast


class _Dictionary(Protocol):
    FREQ: dict[str, int]

    def cut(self, sentence: str, *, HMM: bool) -> list[str]: ...  # noqa: N803 - jieba's name


_LOADING = threading.Lock()


@cache
def _load() -> _Dictionary:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba
    dictionary: Any = jieba.Tokenizer()
    dictionary.FREQ, dictionary.total = dictionary.gen_pfdict(dictionary.get_dict_file())
    dictionary.initialized = True
    return cast("_Dictionary", dictionary)


def han_terms(run: str) -> list[str]:
    """Return the terms of a run of Han characters."""
    with _LOADING:
        dictionary = _load()
    terms: list[str] = []
    unbound = ""
    for word in dictionary.cut(run, HMM=False):
        if len(word) == 1:
            unbound += word
            continue
        terms += _unbound_terms(unbound)
        unbound = ""
        terms += [part for part in _parts(word) if dictionary.FREQ.get(part)]
        terms.append(word)
    return terms + _unbound_terms(unbound)


def _parts(word: str) -> list[str]:
    """Return the two- and three-character parts of a longer word."""
    return [word[start : start + size] for size in (2, 3) if len(word) > size for start in range(len(word) - size + 1)]


def _unbound_terms(run: str) -> list[str]:
    return [run[start : start + 2] for start in range(len(run) - 1)] or ([run] if run else [])
