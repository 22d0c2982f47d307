"""The indexes of one request side by side: one snapshot each, one numbering of their rows.

A member is a row of one of the snapshots, `ordinal << 40 | row`, so that lists of several knowledge
bases are unions and sorts of plain integers. The panel also decides how scores of different indexes
meet (docs/adr/0004-fusion-default.md): BM25 scores as they are; cosines as they are where all indexes
share an encoder, otherwise min-max per encoder first. Everything here belongs to one request.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate_runtime.pipeline.fuse import (
    DECIMALS,
    Ids,
    Mask,
    Members,
    aligned,
    best_first,
    min_max,
    only_finite,
    pooled,
)
from tidegate_runtime.pipeline.graph import LegKind
from tidegate_runtime.ports import (
    Candidates,
    FloatVector,
    IndexSnapshot,
    LexicalQuery,
    Rows,
    Scores,
    Selection,
    StoredChunk,
)

ROW_BITS = 40
ROW_MASK = (1 << ROW_BITS) - 1


@dataclass(frozen=True, slots=True)
class View:
    """What one index shows to this caller, and the query in its terms. `embedder` names what its vectors were made by."""

    knowledge_base: str
    snapshot: IndexSnapshot
    selection: Selection
    query: LexicalQuery
    embedder: str


@dataclass(frozen=True, slots=True)
class Hits:
    """A ranked list: members, best first, ties by chunk id; each member once."""

    members: Members
    scores: Scores


class Panel:
    """Reads legs over all views. `vectors` holds the query by embedder; a view without one is out of dense's reach."""

    def __init__(self, views: Sequence[View], vectors: Mapping[str, FloatVector] | None = None) -> None:
        self._views = tuple(views)
        self._vectors = dict(vectors or {})

    def with_vectors(self, vectors: Mapping[str, FloatVector]) -> "Panel":
        """Return the same views with the query's vectors."""
        return Panel(self._views, vectors)

    def provided(self, kind: LegKind) -> bool:
        """Tell whether every view has this leg."""
        return all(kind in view.snapshot.provides for view in self._views)

    def lacks_vectors(self) -> bool:
        """Tell whether a view has a dense leg that the query has no vector for."""
        return any("dense" in view.snapshot.provides and view.embedder not in self._vectors for view in self._views)

    def reaches(self, kind: LegKind) -> bool:
        """Tell whether any view can answer this leg."""
        return any(self._in_reach(view, kind) for view in self._views)

    def reach(self, kind: LegKind, members: Members) -> Mask | None:
        """Mark the members that this leg can score; None = all of them."""
        able = np.array([self._in_reach(view, kind) for view in self._views])
        return None if able.all() else able[members >> ROW_BITS]

    def best(self, kind: LegKind, top_k: int) -> Hits:
        """Return the best `top_k` members of all views by one leg."""
        found = [
            (ordinal, self._ask(view, kind, top_k))
            for ordinal, view in enumerate(self._views)
            if self._in_reach(view, kind)
        ]
        if len(found) == 1 and np.isfinite(found[0][1].scores).all():
            ordinal, candidates = found[0]
            return Hits(candidates.rows | ordinal << ROW_BITS, candidates.scores)
        members = np.concatenate([candidates.rows | ordinal << ROW_BITS for ordinal, candidates in found])
        scores = np.concatenate([candidates.scores for _, candidates in found])
        present = np.isfinite(scores)
        pool = pooled([members[present]])
        best = aligned(pool, members[present], scores[present])
        return self.ranked(pool, self._comparable(kind, pool, best), top_k)

    def scores(self, kind: LegKind, members: Members) -> Scores:
        """Return every member's score in one leg on a scale that all views share; NaN out of reach."""
        return self._comparable(kind, members, self.raw_scores(kind, members))

    def raw_scores(self, kind: LegKind, members: Members) -> Scores:
        """Return every member's score as its own index gives it; NaN out of reach."""

        def score(view: View, rows: Rows) -> Scores:
            if kind == "bm25":
                return view.snapshot.lexical_scores(view.query, rows)
            return view.snapshot.dense_scores(self._vectors[view.embedder], rows)

        return only_finite(self._per_view(members, score, lambda view: self._in_reach(view, kind)))

    def leg_scores(self, kinds: Sequence[LegKind], members: Members) -> list[dict[str, float]]:
        """Return the raw scores of each member by leg; legs that cannot score it are left out."""
        by_kind = {kind: np.round(self.raw_scores(kind, members), DECIMALS).tolist() for kind in kinds}
        return [
            {kind: scores[position] for kind, scores in by_kind.items() if np.isfinite(scores[position])}
            for position in range(len(members))
        ]

    def coverage(self, members: Members) -> Scores:
        """Return the share of the query's idf mass that each member covers."""
        return self._per_view(
            members,
            lambda view, rows: view.snapshot.idf_coverage(view.query, rows),
            lambda view: self._in_reach(view, "bm25"),
        )

    def ranked(self, pool: Members, scores: Scores, top_k: int | None = None) -> Hits:
        """Sort a pool by score, then chunk id, then knowledge base."""
        order = best_first(scores, lambda positions: self._tie_ids(pool[positions]))[:top_k]
        return Hits(pool[order], scores[order])

    def chunks(self, members: Members) -> list[tuple[View, StoredChunk]]:
        """Return the stored chunks, in the order of `members`."""
        chunks: dict[int, tuple[View, StoredChunk]] = {}
        for view, where, rows in self._parts(members):
            for position, chunk in zip(where.tolist(), view.snapshot.chunks(rows), strict=True):
                chunks[position] = (view, chunk)
        return [chunks[position] for position in range(len(members))]

    def _tie_ids(self, members: Members) -> Ids:
        """Return what decides between equal scores. Two knowledge bases may hold chunks of one id."""
        ids = np.empty(len(members), dtype=object)
        for view, where, rows in self._parts(members):
            ids[where] = [f"{chunk_id}\0{view.knowledge_base}" for chunk_id in view.snapshot.chunk_ids(rows)]
        return ids.astype(np.str_)

    def _in_reach(self, view: View, kind: LegKind) -> bool:
        return kind in view.snapshot.provides and (kind == "bm25" or view.embedder in self._vectors)

    def _ask(self, view: View, kind: LegKind, top_k: int) -> Candidates:
        if kind == "bm25":
            return view.snapshot.lexical(view.query, view.selection, top_k=top_k)
        return view.snapshot.dense(self._vectors[view.embedder], view.selection, top_k=top_k)

    def _comparable(self, kind: LegKind, members: Members, scores: Scores) -> Scores:
        """Bring cosines of different encoders to one scale; each encoder's best member becomes 1, its worst 0."""
        embedders = [view.embedder for view in self._views]
        if kind == "bm25" or len(set(embedders)) == 1:
            return scores
        scaled = np.full(len(scores), np.nan)
        owner = np.array([embedders.index(embedder) for embedder in embedders])[members >> ROW_BITS]
        for first in np.unique(owner):
            group = (owner == first) & np.isfinite(scores)
            scaled[group] = min_max(scores[group])
        return scaled

    def _per_view(
        self, members: Members, score: Callable[[View, Rows], Scores], able: Callable[[View], bool]
    ) -> Scores:
        placed = np.full(len(members), np.nan)
        for view, where, rows in self._parts(members):
            if able(view):
                placed[where] = score(view, rows)
        return placed

    def _parts(self, members: Members) -> Iterator[tuple[View, Rows, Rows]]:
        """Yield each view that has members, with their positions and their rows."""
        if len(self._views) == 1:
            yield self._views[0], np.arange(len(members)), members
            return
        ordinals, rows = members >> ROW_BITS, members & ROW_MASK
        for ordinal, view in enumerate(self._views):
            where = np.flatnonzero(ordinals == ordinal)
            if len(where):
                yield view, where, rows[where]
