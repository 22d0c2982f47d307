"""Routing decisions: precedence, stickiness, replay and cost."""

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.sidecar.builders import table

from tidegate_api.config import HeaderMatch, PinConfig, RuleConfig
from tidegate_api.hashing import bucket
from tidegate_api.wire import ErrorCode
from tidegate_sidecar.caller import Caller
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.policy import BrokenTableError, Decision, Facts, compile_table, decide

USERS = st.text(min_size=1, max_size=20)
SALT = "acme/handbook"


def decided(tables, *, tenant=None, user=None, session=None, headers=None, forced=None, scopes=("query",), query="q"):
    caller = Caller(tenant=tenant, user=user, scopes=frozenset(scopes))
    facts = Facts("request-1", query, session, forced, headers or {})
    return decide(compile_table(tables), caller, facts)


def test_everybody_meets_stable_without_a_candidate():
    assert decided(table("rel-a"), user="u1") == Decision("rel-a", "stable", "stable", "user")


PRECEDENCE = {
    "forced header beats a pin": (
        {"tenant": "bank", "forced": "rel-c", "scopes": ("query", "force")},
        Decision("rel-c", "pinned", "forced", "user"),
    ),
    "pin beats a rule": ({"tenant": "bank"}, Decision("rel-c", "pinned", "pin", "user")),
    "rule beats the percentage": ({"tenant": "acme"}, Decision("rel-a", "stable", "internal", "user")),
    "percentage serves the rest": (
        {"tenant": "other"},
        Decision("rel-b", "candidate", "percentage", "user", bucket(SALT, "rel-b", "u1")),
    ),
}


@pytest.mark.parametrize(("caller", "expected"), PRECEDENCE.values(), ids=PRECEDENCE)
def test_precedence(caller, expected):
    tables = table(
        "rel-a",
        "rel-b",
        "rel-c",
        candidate="rel-b",
        share=100,
        pins=[PinConfig(tenants=["bank"], release="rel-c")],
        rules=[
            RuleConfig(name="bank-too", tenants=["bank"], release="rel-b"),
            RuleConfig(name="internal", tenants=["acme"], release="rel-a"),
        ],
    )
    assert decided(tables, user="u1", **caller) == expected


MATCHES = {
    "tenant": ({"tenant": "acme"}, RuleConfig(name="r", tenants=["other", "acme"], release="rel-b"), True),
    "other tenant": ({"tenant": "x"}, RuleConfig(name="r", tenants=["acme"], release="rel-b"), False),
    "no tenant": ({}, RuleConfig(name="r", tenants=["acme"], release="rel-b"), False),
    "user": ({"user": "u1"}, RuleConfig(name="r", users=["u1"], release="rel-b"), True),
    "user in another Unicode form": (
        {"user": "e\u0301"},
        RuleConfig(name="r", users=["\u00e9"], release="rel-b"),
        True,
    ),
    "header": (
        {"headers": {"x-beta": "1"}},
        RuleConfig(name="r", headers=[HeaderMatch(name="X-Beta", exact="1")], release="rel-b"),
        True,
    ),
    "one of two headers": (
        {"headers": {"x-beta": "1"}},
        RuleConfig(
            name="r",
            headers=[HeaderMatch(name="x-alpha", exact="1"), HeaderMatch(name="x-beta", exact="1")],
            release="rel-b",
        ),
        True,
    ),
    "header with another value": (
        {"headers": {"x-beta": "2"}},
        RuleConfig(name="r", headers=[HeaderMatch(name="x-beta", exact="1")], release="rel-b"),
        False,
    ),
    "tenant and user": (
        {"tenant": "acme", "user": "u1"},
        RuleConfig(name="r", tenants=["acme"], users=["u1"], release="rel-b"),
        True,
    ),
    "tenant without the user": (
        {"tenant": "acme", "user": "u2"},
        RuleConfig(name="r", tenants=["acme"], users=["u1"], release="rel-b"),
        False,
    ),
    "user without the header": (
        {"user": "u1"},
        RuleConfig(name="r", users=["u1"], headers=[HeaderMatch(name="x-beta", exact="1")], release="rel-b"),
        False,
    ),
    "no condition at all": ({}, RuleConfig(name="r", release="rel-b"), True),
    "no percentage of anybody": ({"user": "u1"}, RuleConfig(name="r", users=["u1"], release="rel-b", percent=0), False),
}


@pytest.mark.parametrize(("request_of", "rule", "matches"), MATCHES.values(), ids=MATCHES)
def test_rule_members_are_anded_and_their_values_ored(request_of, rule, matches):
    assert (decided(table("rel-a", "rel-b", rules=[rule]), **request_of).rule == "r") is matches


def test_first_of_two_matching_rules_wins_whatever_they_match_on():
    by_user = RuleConfig(name="by-user", users=["u1"], release="rel-b")
    by_tenant = RuleConfig(name="by-tenant", tenants=["acme"], release="rel-c")
    for rules in ([by_user, by_tenant], [by_tenant, by_user]):
        tables = table("rel-a", "rel-b", "rel-c", rules=rules)
        assert decided(tables, tenant="acme", user="u1").rule == rules[0].name


def test_first_of_two_pins_wins():
    pins = [PinConfig(tenants=["bank"], release="rel-b"), PinConfig(tenants=["bank"], release="rel-a")]
    assert decided(table("rel-a", "rel-b", pins=pins), tenant="bank").release == "rel-b"


def test_roles_are_resolved_and_a_vacant_one_decides_nothing():
    rules = [RuleConfig(name="r", tenants=["acme"], release="candidate")]
    pins = [PinConfig(tenants=["bank"], release="candidate")]
    vacant = table("rel-a", "rel-b", rules=rules, pins=pins)
    taken = table("rel-a", "rel-b", rules=rules, pins=pins, candidate="rel-b")
    assert decided(vacant, tenant="acme").rule == "stable"
    assert decided(vacant, tenant="bank").rule == "stable"
    assert decided(taken, tenant="acme") == Decision("rel-b", "candidate", "r", "request")
    assert decided(taken, tenant="bank") == Decision("rel-b", "pinned", "pin", "request")


UNITS = {
    "user first": ("user", {"user": "u", "session": "s", "tenant": "t"}, "user"),
    "then session": ("user", {"session": "s", "tenant": "t"}, "session"),
    "then request": ("user", {"tenant": "t"}, "request"),
    "session named": ("session", {"user": "u", "session": "s"}, "session"),
    "session named and absent": ("session", {"user": "u"}, "request"),
    "request named": ("request", {"user": "u", "session": "s"}, "request"),
    "tenant named": ("tenant", {"user": "u", "tenant": "t"}, "tenant"),
    "tenant named, anonymous": ("tenant", {"user": "u"}, "request"),
    "query named": ("query", {"user": "u"}, "query"),
}


@pytest.mark.parametrize(("named", "caller", "expected"), UNITS.values(), ids=UNITS)
def test_unit_order(named, caller, expected):
    assert decided(table(unit=named), **caller).unit == expected


def test_forcing_needs_the_scope():
    with pytest.raises(RequestError, match="scope `force`") as refused:
        decided(table("rel-a"), forced="rel-a")
    assert refused.value.code is ErrorCode.FORBIDDEN


@pytest.mark.parametrize(
    ("named", "release", "arm"), [("stable", "rel-a", "stable"), ("candidate", "rel-b", "candidate")]
)
def test_a_role_can_be_forced(named, release, arm):
    tables = table("rel-a", "rel-b", candidate="rel-b")
    assert decided(tables, forced=named, scopes=("force",)) == Decision(release, arm, "forced", "request")


MISSING = {
    "forced": ({"forced": "rel-gone", "scopes": ("force",)}, "header x-tidegate-release names release 'rel-gone'"),
    "pin": ({"tenant": "bank"}, "pin names release 'rel-gone'"),
    "rule": ({"tenant": "acme"}, "rule internal names release 'rel-gone', which routing table 7 does not have"),
}


@pytest.mark.parametrize(("caller", "message"), MISSING.values(), ids=MISSING)
def test_a_release_that_the_table_lacks_fails_the_request_and_names_the_rule(caller, message):
    tables = table(
        "rel-a",
        version=7,
        pins=[PinConfig(tenants=["bank"], release="rel-gone")],
        rules=[RuleConfig(name="internal", tenants=["acme"], release="rel-gone")],
    )
    with pytest.raises(RequestError, match=message) as refused:
        decided(tables, **caller)
    assert refused.value.code is ErrorCode.RELEASE_UNAVAILABLE


BROKEN = {
    "stable missing": ({"stable": "rel-x"}, "stable 'rel-x'"),
    "candidate missing": ({"candidate": "rel-x"}, "candidate 'rel-x'"),
    "share": ({"share": 101.0}, "share 101"),
    "rule percent": ({"rules": [RuleConfig(name="r", release="rel-a", percent=-1)]}, "percent -1"),
    "header in a rule's name": ({"rules": [RuleConfig(name="r\r\nx: y", release="rel-a")]}, "can't be the name"),
}


@pytest.mark.parametrize(("change", "message"), BROKEN.values(), ids=BROKEN)
def test_a_table_that_contradicts_itself_does_not_compile(change, message):
    with pytest.raises(BrokenTableError, match=message):
        compile_table(table("rel-a").model_copy(update=change))


@given(USERS, st.floats(0, 100), st.floats(0, 100))
def test_a_growing_share_moves_nobody_back(user, one, other):
    small, large = sorted((one, other))
    arms = [decided(table("rel-a", "rel-b", candidate="rel-b", share=share), user=user).arm for share in (small, large)]
    assert arms != ["candidate", "stable"]


def test_a_share_meets_its_size_and_another_set_of_users_for_each_release():
    met = {}
    for candidate in ("rel-b", "rel-c"):
        tables = compile_table(table("rel-a", candidate, candidate=candidate, share=10))
        met[candidate] = {
            user
            for user in map(str, range(10_000))
            if decide(tables, Caller(user=user), Facts("r", "q")).arm == "candidate"
        }
    assert all(900 < len(users) < 1_100 for users in met.values())
    assert 50 < len(met["rel-b"] & met["rel-c"]) < 160


def test_a_rule_percentage_is_another_draw_than_the_share():
    rule = RuleConfig(name="half", tenants=["acme"], release="rel-b", percent=50)
    tables = table("rel-a", "rel-b", candidate="rel-b", rules=[rule])
    decisions = [decided(tables, tenant="acme", user=str(user)) for user in range(1_000)]
    taken = [decision for decision in decisions if decision.rule == "half"]
    assert 430 < len(taken) < 570
    assert all(decision.bucket < 5_000 for decision in taken)


@given(USERS, st.one_of(st.none(), st.sampled_from(["acme", "bank"])))
def test_the_same_inputs_give_the_same_decision(user, tenant):
    tables = table("rel-a", "rel-b", candidate="rel-b", share=50)
    assert decided(tables, user=user, tenant=tenant) == decided(tables, user=user, tenant=tenant)


ASSIGNMENTS = """
from tests.unit.sidecar.builders import table
from tidegate_sidecar.caller import Caller
from tidegate_sidecar.policy import Facts, compile_table, decide
index = compile_table(table("rel-a", "rel-b", candidate="rel-b", share=37.5))
print("".join(decide(index, Caller(user=f"user-{n}"), Facts("r", "q")).arm[0] for n in range(10_000)))
"""


def test_assignments_do_not_depend_on_the_process():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", ASSIGNMENTS], env={"PYTHONHASHSEED": seed}, check=True, capture_output=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert 3_500 < outputs.pop().count(b"c") < 4_000


def best_decision_seconds(pinned: int, rule_count: int) -> float:
    pins = [PinConfig(tenants=[f"tenant-{n}" for n in range(pinned)], release="stable")]
    rules = [
        RuleConfig(name=f"rule-{n}", tenants=[f"acme-{n}"], users=["u"], release="rel-b", percent=50)
        if n % 5
        else RuleConfig(name=f"head-{n}", headers=[HeaderMatch(name="x-beta", exact=str(n))], release="rel-b")
        for n in range(rule_count)
    ]
    index = compile_table(table("rel-a", "rel-b", candidate="rel-b", share=5, pins=pins, rules=rules))
    facts = Facts("r", "q", headers={"x-beta": "no"})
    callers = [Caller(tenant=tenant, user="u") for tenant in (f"tenant-{pinned - 1}", "acme-1", "unknown")]
    best_seconds = 1.0
    for _ in range(50):
        started = time.perf_counter()
        for caller in callers:
            for _ in range(20):
                decide(index, caller, facts)
        best_seconds = min(best_seconds, (time.perf_counter() - started) / 60)
    return best_seconds


def test_a_large_table_costs_no_more_than_a_small_one():
    """A decision that walked over pins or rules would take a hundred times as long."""
    assert best_decision_seconds(10_000, 256) < 5 * best_decision_seconds(10, 4)
