"""RoutingPolicies over a pipeline: steps, pins and rules, requests, who rules, on a cluster in memory."""

import pytest

from tidegate_operator.core.keys import Key
from tidegate_operator.core.kinds import Kind, Manifest, Ref

from .desk import RULES, ask, settle, table
from .rig import DESK, Rig, knowledge_base, pipeline, policy, source_map

STEPS = [{"name": "five", "percent": 5}, {"name": "look", "pause": {}}, {"name": "all", "percent": 100}]


@pytest.fixture
async def rig() -> Rig:
    """Return a rig whose first release serves under a policy with steps."""
    rig = Rig()
    rig.cluster.put(source_map())
    rig.cluster.put(knowledge_base())
    rig.cluster.put(policy(steps=STEPS))
    rig.cluster.put(pipeline())
    await settle(rig)
    return rig


def rollout(rig: Rig) -> Manifest:
    found: Manifest = rig.status(DESK)["rollout"]
    return found


async def test_steps_expose_a_candidate_little_by_little_and_a_pause_waits_for_a_person(rig: Rig) -> None:
    stable = rig.status(DESK)["servingRelease"]
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)

    candidate = rig.status(DESK)["candidate"]
    assert (table(rig).stable, table(rig).candidate, table(rig).share) == (stable, candidate, 5)
    assert rollout(rig)["phase"] == "Paused"
    assert rig.conditions(DESK)["Ready"] == ("True", "Paused")
    assert rig.conditions(DESK)["RolloutCompleted"][0] == "False"
    mirrored = rig.status(RULES)
    assert (mirrored["phase"], mirrored["share"], mirrored["stepName"]) == ("Paused", "5%", "look")
    assert (mirrored["stable"], mirrored["candidate"]) == (stable, candidate)

    assert (await ask(rig, "promote"))["result"] == "done"
    assert rig.status(DESK)["servingRelease"] == candidate
    assert rig.conditions(DESK)["Ready"] == ("True", "InForce")
    assert rig.status(RULES)["lastRequest"]["result"] == "done"


async def test_a_step_waits_until_all_pods_obey_its_table(rig: Rig) -> None:
    rig.planes.stale = {each["metadata"]["name"] for each in rig.cluster.of_kind(Kind.POD)}
    rig.planes.warm = None
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    # Pods that have not seen the table do not hold the candidate either.
    assert rollout(rig)["phase"] == "Preparing"

    rig.planes.stale = set()
    await settle(rig)
    assert rollout(rig)["phase"] == "Paused"


async def test_pins_and_rules_reach_the_table_when_their_step_has_begun(rig: Rig) -> None:
    rules = [
        {"name": "staff", "match": {"users": ["u1"]}, "serve": "candidate"},
        {"name": "late", "match": {"users": ["u2"]}, "serve": "candidate", "from": "all"},
    ]
    pins = [{"tenants": ["bank"], "release": "stable"}]
    rig.cluster.put(policy(steps=STEPS, rules=rules, pins=pins))
    await settle(rig)
    assert [rule.name for rule in table(rig).rules] == []
    assert [pin.tenants for pin in table(rig).pins] == [["bank"]]

    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    assert [(rule.name, rule.release) for rule in table(rig).rules] == [("staff", rig.status(DESK)["candidate"])]


async def test_a_rollback_on_request_is_kept_against_a_spec_that_is_applied_again_and_again(rig: Rig) -> None:
    good = rig.status(DESK)["servingRelease"]
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    await ask(rig, "promote")
    bad = rig.status(DESK)["servingRelease"]

    outcome = await ask(rig, "rollback")
    assert (outcome["result"], outcome["by"]) == ("done", "ann")
    for _ in range(10):
        rig.cluster.put(pipeline(top_k=10))
        rig.clock.advance(30)
        await settle(rig)
        assert rig.status(DESK)["servingRelease"] == good
    assert rig.conditions(DESK)["Ready"] == ("False", "RolledBack")
    assert rig.conditions(DESK)["Stalled"] == ("True", "RolledBack")
    assert rollout(rig)["rejected"][0]["release"] == bad

    rig.cluster.put(pipeline(top_k=11))
    await settle(rig)
    assert rig.status(DESK)["candidate"] not in ("", bad)


async def test_the_earlier_yaml_applied_again_serves_at_once_and_builds_nothing(rig: Rig) -> None:
    good = rig.status(DESK)["servingRelease"]
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    await ask(rig, "promote")
    created = sum(rig.cluster.created.values())

    rig.cluster.put(pipeline())
    await settle(rig)
    assert rig.status(DESK)["servingRelease"] == good
    assert sum(rig.cluster.created.values()) == created


async def test_a_request_is_carried_out_once_even_by_an_operator_that_starts_anew(rig: Rig) -> None:
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    await ask(rig, "abort", id="once")
    count = len(rig.status(DESK)["requests"])

    rig.restart()
    await settle(rig)
    assert len(rig.status(DESK)["requests"]) == count
    assert [note.reason for _, note in rig.cluster.events.values()].count("RolloutAborted") == 1


@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        ({"uid": "another"}, "uid is not that of this object"),
        ({"issuedAt": "2026-01-01T11:00:00+00:00"}, "issuedAt"),
        ({"issuedAt": None}, "issuedAt"),
        ({"issuedAt": "2026-01-01T12:00:00"}, "issuedAt"),
        ({"verb": "destroy"}, "unknown"),
        ({"reason": 7}, "must be strings"),
    ],
)
async def test_a_request_that_is_stale_foreign_or_garbled_is_refused_with_the_reason(
    rig: Rig, spoilt: dict[str, object], why: str
) -> None:
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)

    outcome = await ask(rig, str(spoilt.pop("verb", "abort")), **spoilt)
    assert outcome["result"] == "refused"
    assert why in outcome["message"]
    assert rig.status(DESK)["candidate"] != ""


async def test_garbage_instead_of_a_request_is_answered_once(rig: Rig) -> None:
    rig.cluster.objects[RULES.ref]["metadata"]["annotations"] = {"tidegate.dev/request": "rollback please"}
    await settle(rig)
    rig.restart()
    await settle(rig)

    (outcome,) = rig.status(DESK)["requests"]
    assert outcome["result"] == "refused"
    assert "JSON object" in outcome["message"]


async def test_where_a_policy_rules_a_request_on_the_pipeline_is_refused(rig: Rig) -> None:
    outcome = await ask(rig, "rollback", key=DESK)

    assert outcome["result"] == "refused"
    assert "RoutingPolicy desk rules" in outcome["message"]


async def test_without_a_policy_requests_go_to_the_pipeline() -> None:
    rig = Rig()
    rig.cluster.put(source_map())
    rig.cluster.put(knowledge_base())
    rig.cluster.put(pipeline())
    await settle(rig)
    good = rig.status(DESK)["servingRelease"]
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)

    assert (await ask(rig, "rollback", key=DESK))["result"] == "done"
    assert rig.status(DESK)["servingRelease"] == good


async def test_the_oldest_policy_rules_and_the_other_says_so(rig: Rig) -> None:
    rig.cluster.put(policy("newer", steps=[{"name": "half", "percent": 50}]))
    rig.cluster.objects[Ref(Kind.ROUTING_POLICY, "acme", "newer")]["metadata"]["creationTimestamp"] = (
        "2027-01-01T00:00:00Z"
    )
    await settle(rig)
    newer = Key(Kind.ROUTING_POLICY, "acme", "newer")

    assert rig.conditions(newer)["Conflicted"] == ("True", "OlderPolicyRules")
    assert "Conflicted" not in rig.conditions(RULES)
    assert rig.conditions(RULES)["Ready"] == ("True", "InForce")


@pytest.mark.parametrize("younger", ["aaa", "zzz"])
async def test_the_same_policy_rules_after_every_restart_and_the_other_one_once_it_is_gone(
    rig: Rig, younger: str
) -> None:
    other = Key(Kind.ROUTING_POLICY, "acme", younger)
    rig.cluster.put(policy(younger, steps=STEPS, pins=[{"tenants": ["bank"], "release": "stable"}]))
    rig.cluster.objects[other.ref]["metadata"]["creationTimestamp"] = "2027-01-01T00:00:00Z"
    for _ in range(5):
        rig.restart()
        await settle(rig)
        assert rig.conditions(other)["Conflicted"] == ("True", "OlderPolicyRules")
        assert table(rig).pins == []

    rig.cluster.remove(RULES.ref)
    await settle(rig)
    assert "Conflicted" not in rig.conditions(other)
    assert [pin.tenants for pin in table(rig).pins] == [["bank"]]


async def test_a_policy_deleted_in_mid_rollout_aborts_to_stable(rig: Rig) -> None:
    stable = rig.status(DESK)["servingRelease"]
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    rig.cluster.remove(RULES.ref)
    await settle(rig)

    assert (rig.status(DESK)["servingRelease"], rig.status(DESK)["candidate"]) == (stable, "")
    assert table(rig).share == 0


async def test_an_unusable_policy_leaves_the_accepted_one_in_force(rig: Rig) -> None:
    rig.cluster.put(
        policy(steps=[{"name": "half", "percent": 50}], pins=[{"tenants": ["a"], "release": "rel-0000000000"}])
    )
    rig.restart()
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)

    assert rig.conditions(RULES)["Accepted"] == ("False", "InvalidSpec")
    assert table(rig).share == 5


async def test_a_policy_that_was_never_usable_lets_nothing_new_begin() -> None:
    rig = Rig()
    rig.cluster.put(source_map())
    rig.cluster.put(knowledge_base())
    rig.cluster.put(pipeline())
    await settle(rig)
    stable = rig.status(DESK)["servingRelease"]
    rig.cluster.put(policy(pins=[{"tenants": ["a"], "release": "rel-0000000000"}]))
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)

    assert (rig.status(DESK)["servingRelease"], rig.status(DESK)["candidate"]) == (stable, "")


async def test_a_pinned_release_is_held_and_never_expires(rig: Rig) -> None:
    pinned = rig.status(DESK)["servingRelease"]
    rig.cluster.put(policy(pins=[{"tenants": ["bank"], "release": pinned}]))
    for top_k in range(10, 20):
        rig.cluster.put(pipeline(top_k=top_k))
        await settle(rig)
        rig.clock.advance(10_000)

    assert [pin.release for pin in table(rig).pins] == [pinned]
    assert pinned in {release.name for release in table(rig).releases}


async def test_a_rollback_to_a_cold_release_says_so_first_and_switches_when_it_is_warm(rig: Rig) -> None:
    good = rig.status(DESK)["servingRelease"]
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    await ask(rig, "promote")
    rig.clock.advance(3 * 3600)
    await settle(rig)
    assert rig.status(DESK)["rollback"] == {"target": good, "readiness": "Cold"}

    bad = rig.status(DESK)["servingRelease"]
    rig.planes.warm = {bad}
    outcome = await ask(rig, "rollback")
    assert "cold" in outcome["message"]
    assert (rig.status(DESK)["servingRelease"], rollout(rig)["phase"]) == (bad, "RollingBack")

    rig.planes.warm = None
    await settle(rig)
    assert rig.status(DESK)["servingRelease"] == good


async def test_at_rest_nothing_is_written(rig: Rig) -> None:
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    before = len(rig.cluster.writes)
    for _ in range(5):
        rig.clock.advance(60)
        await rig.reconciler(DESK)

    assert rig.cluster.writes[before:] == []


async def test_a_lost_status_is_made_again_from_the_marks_on_the_releases(rig: Rig) -> None:
    good = rig.status(DESK)["servingRelease"]
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    await ask(rig, "promote")
    bad = rig.status(DESK)["servingRelease"]
    await ask(rig, "rollback")

    rig.cluster.objects[DESK.ref]["status"] = {"observedGeneration": -1}
    rig.cluster.objects[RULES.ref]["metadata"]["annotations"] = {}
    rig.restart()
    await settle(rig)

    assert rig.status(DESK)["servingRelease"] == good
    assert [entry["release"] for entry in rollout(rig)["rejected"]] == [bad]
    assert rig.conditions(DESK)["Stalled"] == ("True", "RolledBack")
    assert table(rig).stable == good


async def test_a_step_that_is_taken_away_under_a_candidate_is_a_reason_and_moves_nobody(rig: Rig) -> None:
    rig.cluster.put(pipeline(top_k=10))
    await settle(rig)
    rig.cluster.put(policy(steps=[STEPS[0], STEPS[2]]))
    await settle(rig)
    assert rig.conditions(DESK)["Ready"] == ("True", "StepRemoved")
    assert (rollout(rig)["phase"], table(rig).share) == ("Paused", 5)
    assert (await ask(rig, "promote"))["result"] == "done"
    assert rig.conditions(DESK)["Ready"] == ("True", "InForce")
