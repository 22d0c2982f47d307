"""The routing table: who is served by what, with and without a policy, and from which step on."""

from typing import Any

import pytest

from tidegate_api.config import (
    HeaderMatch,
    NodeConfig,
    PinConfig,
    PipelineConfig,
    ReleaseConfig,
    RoutingTable,
    RuleConfig,
    Versions,
)
from tidegate_api.v1alpha1 import RoutingPolicySpec
from tidegate_operator.core.desired import PipelineIdentity, Split, UnservableReleaseError, routing_table


def release(name: str) -> ReleaseConfig:
    """Return a release of that name."""
    nodes = [NodeConfig(name="lexical", type="bm25")]
    pipeline = PipelineConfig(knowledge_bases=["docs"], nodes=nodes, output="lexical")
    return ReleaseConfig(name=name, pipeline=pipeline, indexes=[], versions=Versions(runtime="1", sidecar="1"))


OLD, NEW, PINNED = release("rel-0000000000"), release("rel-1111111111"), release("rel-2222222222")
IDENTITY = PipelineIdentity("handbook", "acme", uid="u-1", generation=3)
STEPS = {"steps": [{"name": "look", "pause": {}}, {"name": "five", "percent": 5}, {"name": "all", "percent": 100}]}
RELEASES = (NEW, PINNED, OLD)
SERVING = Split(OLD.name, NEW.name, share=5, begun=frozenset({"look", "five"}))


def table(split: Split, **policy: Any) -> RoutingTable:
    """Return the table under a policy for the pipeline."""
    spec = RoutingPolicySpec.model_validate({"pipeline": {"name": "handbook"}, "rollout": STEPS, **policy})
    return routing_table(IDENTITY, split, releases=RELEASES, version=9, policy=spec)


def test_without_a_policy_one_release_gets_everything() -> None:
    assert routing_table(IDENTITY, Split(OLD.name), releases=[OLD], version=1) == RoutingTable(
        version=1,
        pipeline="handbook",
        namespace="acme",
        pipeline_uid="u-1",
        generation=3,
        unit="user",
        salt="acme/handbook",
        stable=OLD.name,
        releases=[OLD],
    )


def test_a_policy_decides_unit_and_salt() -> None:
    made = table(SERVING, unit="session", salt="s1")
    assert (made.unit, made.salt) == ("session", "s1")
    assert (made.stable, made.candidate, made.share) == (OLD.name, NEW.name, 5)
    assert [each.name for each in made.releases] == [OLD.name, NEW.name, PINNED.name]


def test_an_empty_salt_is_the_pipelines_own_whatever_the_policy_is_called() -> None:
    assert table(SERVING, salt="").salt == table(SERVING).salt == "acme/handbook"


def test_without_a_candidate_there_is_no_share() -> None:
    assert table(Split(OLD.name, share=5)).share == 0


def test_pins_and_rules_name_releases() -> None:
    made = table(
        SERVING,
        pins=[
            {"tenants": ["bank-a"], "release": "stable"},
            {"tenants": ["bank-b"], "release": "candidate"},
            {"tenants": ["bank-c"], "release": PINNED.name},
        ],
        rules=[
            {"name": "internal", "match": {"tenants": ["acme"]}, "serve": "candidate", "percent": 50},
            {
                "name": "staff",
                "match": {"users": ["u1"], "headers": [{"name": "X-Beta", "exact": "On"}]},
                "serve": "stable",
            },
        ],
    )
    assert made.pins == [
        PinConfig(tenants=["bank-a"], release=OLD.name),
        PinConfig(tenants=["bank-b"], release=NEW.name),
        PinConfig(tenants=["bank-c"], release=PINNED.name),
    ]
    assert made.rules == [
        RuleConfig(name="internal", tenants=["acme"], release=NEW.name, percent=50),
        RuleConfig(name="staff", users=["u1"], headers=[HeaderMatch(name="x-beta", exact="On")], release=OLD.name),
    ]


@pytest.mark.parametrize(
    ("split", "bound"),
    [
        (Split(OLD.name), ["always"]),
        (Split(OLD.name, NEW.name), ["always"]),
        (Split(OLD.name, NEW.name, begun=frozenset({"look"})), ["early", "always"]),
        (SERVING, ["early", "plain", "always"]),
        (Split(OLD.name, NEW.name, 100, frozenset({"look", "five", "all"})), ["early", "plain", "late", "always"]),
        (Split(OLD.name, NEW.name, 5, frozenset({"removed"})), ["plain", "always"]),
    ],
    ids=["no candidate", "not begun", "paused", "serving", "at the end", "step removed"],
)
def test_rules_for_the_candidate_bind_from_their_step_or_from_the_first_that_serves(
    split: Split, bound: list[str]
) -> None:
    rules = [
        {"name": "early", "match": {"users": ["u1"]}, "serve": "candidate", "from": "look"},
        {"name": "plain", "match": {"users": ["u2"]}, "serve": "candidate"},
        {"name": "late", "match": {"users": ["u3"]}, "serve": "candidate", "from": "all"},
        {"name": "always", "match": {"users": ["u4"]}, "serve": "stable"},
    ]
    assert [rule.name for rule in table(split, rules=rules).rules] == bound


def test_a_pin_to_the_candidate_waits_for_the_first_step_that_serves() -> None:
    pins = [{"tenants": ["bank-b"], "release": "candidate"}]
    assert table(Split(OLD.name, NEW.name, begun=frozenset({"look"})), pins=pins).pins == []
    assert table(SERVING, pins=pins).pins == [PinConfig(tenants=["bank-b"], release=NEW.name)]


def test_a_release_that_the_table_does_not_hold_is_never_promised() -> None:
    with pytest.raises(UnservableReleaseError, match="rel-3333333333 is not among the releases"):
        table(SERVING, pins=[{"tenants": ["bank-a"], "release": "rel-3333333333"}])


def test_equal_content_has_an_equal_hash_whatever_the_order_of_releases() -> None:
    first = routing_table(IDENTITY, SERVING, releases=[OLD, NEW], version=1)
    second = routing_table(IDENTITY, SERVING, releases=[NEW, OLD], version=2)
    assert first.table_hash() == second.table_hash()
