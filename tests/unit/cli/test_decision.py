"""A past decision made again from its table: what decided, and why nothing before it did."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_api.config import (
    HeaderMatch,
    IndexRef,
    NodeConfig,
    PinConfig,
    PipelineConfig,
    ReleaseConfig,
    RoutingTable,
    RuleConfig,
    Versions,
)
from tidegate_cli.decision import PassedOver, Request, TableError, read_table, replay


def release(name: str) -> ReleaseConfig:
    return ReleaseConfig(
        name=name,
        pipeline=PipelineConfig(knowledge_bases=["docs"], nodes=[NodeConfig(name="a", type="bm25")], output="a"),
        indexes=[IndexRef(knowledge_base="docs", revision=f"docs-{name}")],
        versions=Versions(runtime="1", sidecar="1"),
    )


def table(*, share: float = 30, rules: tuple[RuleConfig, ...] = (), candidate: str | None = "rel-new") -> RoutingTable:
    return RoutingTable(
        version=41,
        pipeline="docs",
        salt="acme/docs",
        stable="rel-old",
        candidate=candidate,
        share=share,
        pins=[PinConfig(tenants=["bank-a"], release="rel-old")],
        rules=list(rules),
        releases=[release("rel-old"), release("rel-new")],
    )


INTERNAL = RuleConfig(name="internal", tenants=["acme", "initech", "hooli", "umbrella"], release="rel-new")
STAFF = RuleConfig(name="staff", users=["ann"], headers=[HeaderMatch(name="X-Beta", exact="1")], release="rel-new")
HALF = RuleConfig(name="half", release="rel-new", percent=50)


def test_a_share_decides_by_the_bucket_of_the_user() -> None:
    moved = replay(table(), Request(user="u-11"))
    assert (moved.release, moved.arm, moved.rule) == ("rel-new", "candidate", "percentage")
    assert (moved.unit, moved.unit_value, moved.bucket, moved.takes) == ("user", "u-11", 2508, "0-2999 (30 %)")
    assert moved.passed_over == (
        PassedOver("forced release", "no x-tidegate-release was sent"),
        PassedOver("pins", "the caller has no tenant"),
    )
    stayed = replay(table(), Request(user="u-1"))
    assert (stayed.release, stayed.rule, stayed.bucket) == ("rel-old", "percentage", 9532)


def test_every_rule_before_the_one_that_decides_says_why_it_did_not() -> None:
    asked = Request(tenant="globex", user="bob", headers={"X-BETA": "0"})
    told = replay(table(rules=(INTERNAL, STAFF, HALF)), asked)
    assert (told.rule, told.release, told.bucket, told.takes) == ("half", "rel-new", 601, "0-4999 (50 %)")
    assert told.passed_over[1:] == (
        PassedOver("pins", "tenant globex is not pinned"),
        PassedOver("rule internal", "tenant globex is not among acme, initech, hooli and 1 more"),
        PassedOver("rule staff", "user bob is not among ann"),
    )


def test_a_rule_that_matches_but_for_the_header_or_for_chance_says_that() -> None:
    none = RuleConfig(name="none", release="rel-new", percent=0)
    told = replay(table(rules=(STAFF, none)), Request(user="ann"))
    assert told.passed_over[2:] == (
        PassedOver("rule staff", "no header is X-Beta: 1"),
        PassedOver("rule none", "bucket 4066 is not among those it takes: none (0 %)"),
    )
    assert replay(table(rules=(STAFF, none)), Request(user="ann", headers={"x-beta": "1"})).rule == "staff"


def test_pins_and_forced_releases_come_first() -> None:
    pinned = replay(table(rules=(HALF,)), Request(tenant="bank-a"))
    assert (pinned.release, pinned.arm, pinned.rule) == ("rel-old", "pinned", "pin")
    assert pinned.passed_over == (PassedOver("forced release", "no x-tidegate-release was sent"),)
    forced = replay(table(), Request(tenant="bank-a", release="candidate"))
    assert (forced.release, forced.rule, forced.passed_over) == ("rel-new", "forced", ())


def test_without_a_candidate_stable_serves_and_says_so() -> None:
    rules = (RuleConfig(name="new", release="candidate"),)
    told = replay(table(candidate=None, rules=rules), Request(user="ann"))
    assert (told.release, told.rule, told.bucket) == ("rel-old", "stable", None)
    assert told.passed_over[2:] == (
        PassedOver("rule new", "it names candidate, and nothing has that role now"),
        PassedOver("percentage", "there is no candidate"),
    )
    waiting = replay(table(share=0), Request(user="ann"))
    assert waiting.passed_over[-1] == PassedOver("percentage", "candidate rel-new has no share yet")


def test_what_the_pods_would_refuse_is_refused_with_their_words() -> None:
    told = replay(table(), Request(release="rel-gone"))
    assert told.release == ""
    assert "'rel-gone', which routing table 41 does not have" in told.refusal


@given(
    tenant=st.sampled_from(["", "acme", "bank-a", "globex"]),
    user=st.sampled_from(["", "ann", "bob", "u-1"]),
    beta=st.sampled_from(["", "0", "1"]),
    percents=st.lists(st.sampled_from([0.0, 12.5, 50.0, 100.0]), max_size=3),
)
def test_the_reasons_never_tell_another_story_than_the_decision(
    tenant: str, user: str, beta: str, percents: list[float]
) -> None:
    chances = [RuleConfig(name=f"p-{n}", release="rel-new", percent=percent) for n, percent in enumerate(percents)]
    rules = (INTERNAL, STAFF, *chances)
    told = replay(table(rules=rules), Request(tenant=tenant, user=user, headers={"x-beta": beta}, request_id="q-1"))
    over = [entry.what.removeprefix("rule ") for entry in told.passed_over if entry.what.startswith("rule ")]
    names = [rule.name for rule in rules]
    expected = {"pin": [], "percentage": names}.get(told.rule)
    assert over == (names[: names.index(told.rule)] if expected is None else expected)


def test_a_table_is_read_from_its_document_or_its_config_map() -> None:
    wanted = table()
    text = wanted.model_dump_json(by_alias=True)
    assert read_table(text) == wanted
    manifest = {"kind": "ConfigMap", "data": {"routing.json": text}}
    assert read_table(json.dumps(manifest)) == wanted
    assert read_table("kind: ConfigMap\ndata:\n  routing.json: '" + text + "'\n") == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "neither JSON nor YAML"),
        ("- a", "not an object"),
        ('{"kind": "ConfigMap", "data": {}}', "no release has been made yet"),
        ('{"version": 1}', "not a routing table: "),
    ],
)
def test_anything_else_is_refused_with_what_was_found(text: str, said: str) -> None:
    with pytest.raises(TableError, match=said):
        read_table(text)


def test_a_table_that_contradicts_itself_is_not_replayed() -> None:
    with pytest.raises(TableError, match="no pod obeys this table"):
        replay(table().model_copy(update={"stable": "rel-gone"}), Request())
