"""Cuts a region of a text into chunks of a bounded number of tokens.

Chunks cover the region without a gap. The end of a chunk is the best break that can be reached: whole
units of the best kind, filled up with parts only where the next unit would not fit a chunk of its own
either. A chunk begins with some words of the one before, as many as fit beside its own text. Whether
a chunk keeps its size is proved by tokenising it alone wherever its borders are not white space,
because there the count inside the whole text may differ. Time is proportional to the text.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidegate_runtime.indexer.chunkers.breaks import begins_cluster, begins_word
from tidegate_runtime.indexer.chunkers.token_grid import TokenGrid
from tidegate_runtime.ports import Tokenizer

# How many tokens before the furthest place a cut between two words is looked for.
_WORD_TOKENS_MAX = 48


@dataclass(frozen=True, slots=True)
class Cut:
    """The span of one chunk, without white space around it, and its tokens when read alone."""

    start: int
    end: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Cutter:
    """What all regions of one text share. `levels` are nested breaks, the best first."""

    text: str
    grid: TokenGrid
    tokenizer: Tokenizer
    levels: Sequence[Sequence[int]]
    size: int
    overlap: int

    def cuts(self, region_start: int, region_end: int) -> Iterator[Cut]:
        """Yield the chunks of the region."""
        begin, floor = region_start, region_start
        while begin < region_end:
            end = self._end(begin, region_end, limit=self.size if begin == region_start else self.size - self.overlap)
            start = begin if begin == region_start else self._overlap_start(begin, end, floor=floor)
            cut = self._trimmed(start, end)
            if cut.tokens > self.size:
                end, cut = self._shrunk(begin, end)
            if cut.end > cut.start:
                yield cut
            begin, floor = end, begin + 1

    def _end(self, begin: int, region_end: int, *, limit: int) -> int:
        """Return where the chunk whose own text begins at `begin` should end."""
        if self.grid.count(begin, region_end) <= self.size:
            return region_end
        far = min(self.grid.reach(begin, limit), region_end)
        for breaks in self.levels:
            following = bisect_right(breaks, far)
            last = breaks[following - 1] if following and breaks[following - 1] > begin else begin
            unit_end = min(breaks[following], region_end) if following < len(breaks) else region_end
            if self.grid.count(last, unit_end) <= self.size:
                # The unit that `far` cuts fits a chunk of its own: leave it whole, here or in the next.
                return last if last > begin else unit_end
        return self._word_end(begin, far)

    def _word_end(self, begin: int, far: int) -> int:
        """Return the best place at or before `far` without regard to sentences; always beyond `begin`."""
        starts = self.grid.starts
        last = self.grid.index(far)
        first = max(bisect_right(starts, begin), last - _WORD_TOKENS_MAX)
        places = [far] if far < len(self.text) else []
        places += [starts[index] for index in range(last - 1, first - 1, -1)]
        for suits in (begins_word, begins_cluster):
            for place in places:
                if place > begin and suits(self.text, place):
                    return place
        return far if far > begin else self._next_start(begin)

    def _next_start(self, begin: int) -> int:
        index = bisect_right(self.grid.starts, begin)
        return self.grid.starts[index] if index < len(self.grid.starts) else len(self.text)

    def _overlap_start(self, begin: int, end: int, *, floor: int) -> int:
        """Return how far back the chunk may begin: at a sentence if that uses half of the room, else at a word."""
        room = min(self.overlap, self.size - self.grid.count(begin, end))
        if room <= 0:
            return begin
        starts = self.grid.starts
        first = max(self.grid.index(begin) - room, self.grid.index(floor))
        while 0 < first < len(starts) and starts[first] == starts[first - 1]:
            first += 1  # a character of several tokens is taken whole or not at all
        earliest = starts[first] if first < len(starts) else begin
        sentence = self._first_sentence(earliest)
        if sentence < begin and 2 * self.grid.count(sentence, begin) >= room:
            return sentence
        places = starts[first : self.grid.index(begin)]
        for suits in (begins_word, begins_cluster):
            for place in places:
                if suits(self.text, place):
                    return place
        return begin

    def _first_sentence(self, position: int) -> int:
        breaks = self.levels[-1] if self.levels else ()
        following = bisect_left(breaks, position)
        return breaks[following] if following < len(breaks) else len(self.text)

    def _shrunk(self, begin: int, end: int) -> tuple[int, Cut]:
        """Return an end at which the chunk, now without overlap, keeps its size; one character is kept whatever it holds."""
        limit = self.grid.count(begin, end)
        while True:
            cut = self._trimmed(begin, end)
            if cut.tokens <= self.size or end == begin + 1:
                return end, cut
            limit -= max(1, cut.tokens - self.size)
            shorter = self._word_end(begin, self.grid.reach(begin, max(0, limit)))
            end = shorter if shorter < end else begin + (end - begin) // 2

    def _trimmed(self, start: int, end: int) -> Cut:
        raw = self.text[start:end]
        content = raw.strip()
        start += len(raw) - len(raw.lstrip())
        end = start + len(content)
        if not content:
            return Cut(start, start, 0)
        if self._stands_free(start, end):
            return Cut(start, end, self.grid.count(start, end))
        return Cut(start, end, len(self.tokenizer.offsets(content)))

    def _stands_free(self, start: int, end: int) -> bool:
        before = start == 0 or self.text[start - 1].isspace()
        after = end == len(self.text) or self.text[end].isspace()
        return before and after and begins_cluster(self.text, start)
