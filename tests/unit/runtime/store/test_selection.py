"""Who sees what, and what filters accept."""

from pathlib import Path

import pytest
from tests.unit.runtime.store.samples import make_document, make_shape, vector_of, visible_documents

from tidegate_api.shape import MetadataType
from tidegate_api.wire import Comparison, Compound, Filter, Membership, Scalar
from tidegate_runtime.errors import InvalidFilterError
from tidegate_runtime.ports import DocumentRecord, IndexSnapshot, Permission, SourceRules
from tidegate_runtime.stores.embedded import EmbeddedReader, EmbeddedWriter

SCHEMA: dict[str, MetadataType] = {"kind": "keyword", "year": "number", "on": "date", "final": "bool"}


def snapshot_of(folder: Path, documents: list[DocumentRecord], rules: dict[str, SourceRules]) -> IndexSnapshot:
    writer = EmbeddedWriter.open(folder, revision="r", shape=make_shape(schema=SCHEMA))
    for document in documents:  # one segment each, then some of them merged
        writer.commit(upserts=[document], rules=rules)
    writer.mark_ready(dense=True)
    apart = EmbeddedReader.open(folder).snapshot()
    seen = visible_documents(apart)
    writer.compact()
    merged = EmbeddedReader.open(folder).snapshot()
    assert visible_documents(merged) == seen
    return merged


PUBLIC_SOURCE = SourceRules(tenants=("*",), metadata={})
ACME_SOURCE = SourceRules(tenants=("acme", "beta"), metadata={})


@pytest.mark.parametrize(
    ("permission", "expected"),
    [
        (Permission(), {"open"}),
        (Permission(tenant="acme"), {"open", "for-acme", "inherits", "acme-of-two"}),
        (Permission(tenant="beta"), {"open", "inherits", "public-in-private"}),
        (Permission(tenant="other"), {"open"}),
        (Permission(tenant="*"), {"open"}),
        (Permission(tenant=""), {"open"}),
        (Permission(groups=frozenset({"staff"})), {"open", "for-staff"}),
        (Permission(tenant="other", groups=frozenset({"staff", "hr"})), {"open", "for-staff"}),
    ],
)
def test_each_caller_sees_what_both_levels_allow(tmp_path: Path, permission: Permission, expected: set[str]) -> None:
    documents = [
        make_document("open", ["a"], source="public"),
        make_document("for-acme", ["b"], source="public", tenants=("acme",)),
        make_document("for-staff", ["c"], source="public", groups=("staff",)),
        make_document("for-nobody", ["d"], source="public", tenants=()),
        make_document("inherits", ["e"], source="private"),
        make_document("acme-of-two", ["f"], source="private", tenants=("acme", "other")),
        make_document("public-in-private", ["g"], source="private", tenants=("*",)),
        make_document("unruled", ["h"], source="unruled", tenants=("*",)),
        make_document("closed", ["i"], source="closed"),
    ]
    rules = {
        "public": PUBLIC_SOURCE,
        "private": ACME_SOURCE,
        "closed": SourceRules(tenants=(), metadata={}),
    }
    if permission.tenant == "acme":
        expected = expected | {"public-in-private"}
    assert visible_documents(snapshot_of(tmp_path, documents, rules), permission=permission) == expected


DOCUMENTS = [
    make_document("guide", ["a"], metadata={"kind": "guide", "year": 2024, "final": True, "on": "2024-05-01"}),
    make_document(
        "memo", ["b"], metadata={"kind": ["memo", "draft"], "year": "2025", "on": "2024-05-01T02:00:00+02:00"}
    ),
    make_document("bare", ["c"]),
    make_document("odd", ["d"], metadata={"year": [], "kind": 7}),
    make_document("other", ["e"], source="t", metadata={"kind": "guide"}),
    make_document("plain", ["f"], source="t"),
]
RULES = {
    "s": PUBLIC_SOURCE,
    "t": SourceRules(tenants=("*",), metadata={"kind": "letter", "year": 2020, "final": False, "unknown": "x"}),
}


def eq(key: str, value: Scalar) -> Filter:
    return Comparison(type="eq", key=key, value=value)


def both(*filters: Filter) -> Filter:
    return Compound(type="and", filters=list(filters))


def either(*filters: Filter) -> Filter:
    return Compound(type="or", filters=list(filters))


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (eq("kind", "guide"), {"guide", "other"}),
        (eq("kind", "draft"), {"memo"}),
        (eq("kind", "nothing"), set()),
        (eq("kind", "7"), {"odd"}),
        (eq("kind", "letter"), {"plain"}),  # of the source; `other` has a kind of its own
        (eq("year", 2024), {"guide"}),
        (eq("year", 2024.0), {"guide"}),
        (eq("year", 2025), {"memo"}),
        (eq("year", 2020), {"other", "plain"}),
        (eq("final", True), {"guide"}),
        (eq("final", False), {"other", "plain"}),
        (eq("on", "2024-05-01"), {"guide", "memo"}),  # the same moment in two notations
        (eq("on", "2024-05-01T00:00:00Z"), {"guide", "memo"}),
        (Membership(type="in", key="kind", value=["draft", "letter"]), {"memo", "plain"}),
        (Membership(type="in", key="year", value=[2024, 2020]), {"guide", "other", "plain"}),
        (both(eq("kind", "guide"), eq("year", 2024)), {"guide"}),
        (both(eq("kind", "guide"), eq("year", 2025)), set()),
        (either(eq("kind", "draft"), eq("year", 2024)), {"guide", "memo"}),
        (both(either(eq("kind", "guide"), eq("kind", "memo")), eq("year", 2025)), {"memo"}),
    ],
)
def test_a_filter_accepts_what_its_values_say(tmp_path: Path, filters: Filter, expected: set[str]) -> None:
    snapshot = snapshot_of(tmp_path, DOCUMENTS, RULES)
    assert visible_documents(snapshot, filters=filters) == expected


def test_a_constant_that_an_older_schema_does_not_fit_is_only_shown(tmp_path: Path) -> None:
    rules = {"s": SourceRules(tenants=("*",), metadata={"year": "FY26", "kind": "memo"})}
    snapshot = snapshot_of(tmp_path, [make_document("a", ["b"])], rules)
    assert visible_documents(snapshot, filters=eq("kind", "memo")) == {"a"}
    assert visible_documents(snapshot, filters=eq("year", 2026)) == set()


def test_metadata_is_shown_with_the_document_s_own_value_before_its_source_s(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, DOCUMENTS, RULES)
    selection = snapshot.select(Permission(), eq("year", 2020))
    rows = snapshot.lexical(snapshot.analyse("e f"), selection, top_k=5).rows
    shown = {chunk.document_id: chunk.metadata["kind"] for chunk in snapshot.chunks(rows)}
    assert shown == {"other": "guide", "plain": "letter"}


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        (eq("color", "red"), ["'color'", "'red'", "kind: keyword", "year: number"]),
        (eq("kind", 7), ["'kind'", "7", "keyword", "a string"]),
        (eq("kind", True), ["'kind'", "True", "keyword"]),
        (eq("year", "2024"), ["'year'", "'2024'", "number"]),
        (eq("year", True), ["'year'", "True", "number"]),
        (eq("on", "soon"), ["'on'", "'soon'", "ISO 8601"]),
        (eq("on", 20240501), ["'on'", "20240501", "date"]),
        (eq("final", "true"), ["'final'", "'true'", "true or false"]),
        (eq("final", 1), ["'final'", "1", "bool"]),
        (Membership(type="in", key="year", value=[2024, "x"]), ["'year'", "'x'", "number"]),
        (either(eq("kind", "guide"), eq("color", "red")), ["'color'"]),
    ],
)
def test_a_filter_that_asks_for_what_is_not_declared_is_told_so(
    tmp_path: Path, filters: Filter, told: list[str]
) -> None:
    snapshot = snapshot_of(tmp_path, DOCUMENTS[:1], RULES)
    with pytest.raises(InvalidFilterError) as caught:
        snapshot.select(Permission(), filters)
    for part in told:
        assert part in str(caught.value)


def test_filters_nest_eight_levels_and_no_deeper(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path, DOCUMENTS, RULES)
    filters: Filter = eq("year", 2024)
    for _ in range(7):
        filters = both(filters)
    assert visible_documents(snapshot, filters=filters) == {"guide"}
    with pytest.raises(InvalidFilterError, match="deeper than 8"):
        snapshot.select(Permission(), both(filters))


def test_a_filter_never_widens_what_a_caller_may_see(tmp_path: Path) -> None:
    documents = [make_document("secret", ["a"], metadata={"kind": "guide"}, tenants=("acme",))]
    snapshot = snapshot_of(tmp_path, documents, RULES)
    assert visible_documents(snapshot, filters=eq("kind", "guide")) == set()
    assert visible_documents(snapshot, permission=Permission(tenant="acme"), filters=eq("kind", "guide")) == {"secret"}


def test_few_selected_rows_rank_as_they_do_among_all(tmp_path: Path) -> None:
    writer = EmbeddedWriter.open(tmp_path, revision="r", shape=make_shape())
    documents = [
        make_document(f"{i}", [f"pump number {i}"], tenants=("rare",) if i % 50 == 0 else ("many",)) for i in range(200)
    ]
    writer.commit(upserts=documents, rules={"s": PUBLIC_SOURCE})
    writer.mark_ready(dense=True)
    snapshot = EmbeddedReader.open(tmp_path).snapshot()
    few = snapshot.select(Permission(tenant="rare"), None)
    query, vector = snapshot.analyse("pump number 50"), vector_of("pump")
    lexical, dense = snapshot.lexical(query, few, top_k=10), snapshot.dense(vector, few, top_k=10)
    for found, scores in (
        (lexical, snapshot.lexical_scores(query, lexical.rows)),
        (dense, snapshot.dense_scores(vector, dense.rows)),
    ):
        assert {chunk.document_id for chunk in snapshot.chunks(found.rows)} == {"0", "50", "100", "150"}
        assert found.scores.tolist() == sorted(scores.tolist(), reverse=True)
