"""Equal sources give byte-equal answers, whatever happened on the way there.

Random upserts, deletions, compactions, re-openings and kills at any file operation end in the same
top-50 lists with the same score bits as one build from nothing, and as a reference that computes
them without an index.
"""

import random
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.runtime.store.faults import DyingFiles, Killed
from tests.unit.runtime.store.reference import Ranking, Reference
from tests.unit.runtime.store.samples import PUBLIC, make_document, make_shape, vector_of

from tidegate_runtime.ports import DocumentKey, DocumentRecord, IndexSnapshot, Permission
from tidegate_runtime.stores.embedded import EmbeddedReader, EmbeddedWriter

SHAPE = make_shape()
WORDS = ["leave", "holiday", "insurance", "the", "pump", "valve", "3.5", "kg", "年假", "报销", "制度", "zürich", "x"]
QUERIES = ["holiday leave", "pump pump valve", "年假制度", "insurance of the pump", "nothing known", "x 3.5 kg", ""]
TENANTS = [None, "a", "b"]


def random_document(dice: random.Random, document_id: str) -> DocumentRecord:
    contents = [" ".join(dice.choices(WORDS, k=dice.randint(1, 12))) for _ in range(dice.randint(0, 4))]
    tenants = dice.choice([None, ("a",), ("a", "b")])
    return make_document(document_id, contents, title=dice.choice(["", "Rules"]), tenants=tenants)


def answers(snapshot: IndexSnapshot) -> list[tuple[list[str], bytes]]:
    """Return the lists of both legs for all queries and callers, scores as bytes."""
    found = []
    for tenant in TENANTS:
        selection = snapshot.select(Permission(tenant=tenant), None)
        for query in QUERIES:
            analysed, vector = snapshot.analyse(query), vector_of(query)
            lexical = snapshot.lexical(analysed, selection, top_k=50)
            dense = snapshot.dense(vector, selection, top_k=50)
            found += [(snapshot.chunk_ids(leg.rows), leg.scores.tobytes()) for leg in (lexical, dense)]
            assert snapshot.lexical_scores(analysed, lexical.rows).tobytes() == lexical.scores.tobytes()
            assert snapshot.dense_scores(vector, dense.rows).tobytes() == dense.scores.tobytes()
    return found


def fresh_answers(folder: Path, documents: list[DocumentRecord]) -> list[tuple[list[str], bytes]]:
    writer = EmbeddedWriter.open(folder, revision="r", shape=SHAPE)
    writer.commit(upserts=documents, rules=PUBLIC)
    writer.mark_ready(dense=True)
    writer.close()
    return answers(EmbeddedReader.open(folder).snapshot())


def reference_answers(documents: list[DocumentRecord]) -> Iterator[Ranking]:
    reference = Reference(documents, shape=SHAPE)
    for tenant in TENANTS:
        for query in QUERIES:
            yield reference.bm25(query, tenant=tenant)
            yield reference.dense(vector_of(query), tenant=tenant)


class World:
    """A store under attack beside the documents that it should hold."""

    def __init__(self, folder: Path, dice: random.Random) -> None:
        self.folder, self.dice = folder, dice
        self.expected: dict[DocumentKey, DocumentRecord] = {}
        self.writer = EmbeddedWriter.open(folder, revision="r", shape=SHAPE)
        self.writer.commit(rules=PUBLIC)
        self.writer.mark_ready(dense=True)
        self.reader = EmbeddedReader.open(folder)

    def commit(self) -> None:
        upserts = [random_document(self.dice, f"d{self.dice.randint(0, 11)}") for _ in range(self.dice.randint(0, 4))]
        known = list(self.expected)
        deletes = self.dice.sample(known, k=min(len(known), self.dice.randint(0, 3)))
        following = {key: record for key, record in self.expected.items() if key not in deletes}
        following |= {record.key: record for record in upserts}
        before, self.expected = self.expected, following
        try:
            self.writer.commit(upserts=upserts, deletes=deletes)
        except Killed:
            self.reopen()
            # All of the commit or nothing of it.
            assert self.writer.documents() in (hashes(before), hashes(following))
            self.expected = following if self.writer.documents() == hashes(following) else before

    def compact(self) -> None:
        with suppress(Killed):
            self.writer.compact(purge=self.dice.random() < 0.3)
            return
        self.reopen()

    def reopen(self) -> None:
        self.writer.close()
        self.writer = EmbeddedWriter.open(self.folder, revision="r", shape=SHAPE)

    def fall_ill(self) -> None:
        """Let one of the next file operations be the last of the process."""
        self.writer.close()
        files = DyingFiles(self.folder, operations=self.dice.randint(1, 30))
        try:
            self.writer = EmbeddedWriter.open(self.folder, revision="r", shape=SHAPE, files=files)
        except Killed:
            self.writer = EmbeddedWriter.open(self.folder, revision="r", shape=SHAPE)

    def check(self) -> None:
        assert self.writer.documents() == hashes(self.expected)
        assert self.reader.snapshot().content_generation == self.writer.stats().content_generation


def hashes(documents: dict[DocumentKey, DocumentRecord]) -> dict[DocumentKey, str]:
    return {key: record.content_hash for key, record in documents.items()}


@given(seed=st.integers(0, 2**32), steps=st.integers(1, 25))
@settings(max_examples=40, deadline=None)
def test_any_history_ends_in_the_answers_of_a_fresh_build(
    tmp_path_factory: pytest.TempPathFactory, seed: int, steps: int
) -> None:
    folder = tmp_path_factory.mktemp("history")
    world = World(folder / "lived", random.Random(seed))
    for _ in range(steps):
        step = world.dice.choices([world.commit, world.compact, world.reopen, world.fall_ill], weights=[6, 2, 1, 2])[0]
        step()
        world.check()
    lived = answers(world.reader.snapshot())
    world.writer.close()
    documents = list(world.expected.values())
    world.dice.shuffle(documents)
    assert lived == fresh_answers(folder / "fresh", documents)
    for (ids, scores), expected in zip(lived, reference_answers(documents), strict=True):
        assert ids == [identity for identity, _ in expected]
        assert scores == b"".join(struct.pack("<d", score) for _, score in expected)
