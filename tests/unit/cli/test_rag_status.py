"""Status in every phase: who serves, what waits, and a next line that fits."""

from typing import Any

import pytest
from tests.unit.cli.test_rag_views import AT, condition, pipeline

from tidegate_api.v1alpha1.knowledgebase import KnowledgeBase
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicy
from tidegate_cli.rag_status import pipeline_status

READY = [condition("Ready", "True"), condition("Available", "True", "Serving")]
NEXT = "  next        "


def policy(**status: object) -> RoutingPolicy:
    steps: list[dict[str, Any]] = [
        {"name": "thirty", "percent": 30},
        {"name": "look", "pause": {}},
        {"name": "all", "percent": 100},
    ]
    spec = {"pipeline": {"name": "docs"}, "unit": "session", "rollout": {"steps": steps}}
    return RoutingPolicy.model_validate({"metadata": {"name": "docs"}, "spec": spec, "status": status})


def nexts(text: str) -> list[str]:
    return [line.removeprefix(NEXT) for line in text.splitlines() if line.startswith(NEXT)]


def rollout(phase: str, **more: object) -> dict[str, object]:
    return {"stable": "rel-1", "phase": phase, "history": [{"release": "rel-1", "from": AT}], **more}


def test_idle_says_since_when_it_serves_and_that_there_is_nothing_to_do() -> None:
    text = pipeline_status(pipeline(conditions=READY, servingRelease="rel-1", rollout=rollout("Idle")), policy(), [])
    assert f"  serves      rel-1 since {AT}" in text
    assert nexts(text) == ["nothing to do"]
    assert "steps" not in text


def test_a_first_build_waits_by_itself() -> None:
    waits = "KnowledgeBase docs has not built its index yet; its status shows how far it is"
    conditions = [condition("Ready", "Unknown", "WaitsForBuild", waits), condition("Available", "False")]
    text = pipeline_status(pipeline(conditions=conditions), None, [])
    assert text.startswith("pipeline docs: not ready yet (WaitsForBuild)")
    assert "  serves      nothing yet" in text
    assert f"  waits       WaitsForBuild: {waits}" in text
    assert nexts(text) == ["nothing to do: it goes on by itself; kubectl rag status --watch shows how"]


def test_preparing_and_progressing_offer_the_abort_and_show_the_steps() -> None:
    conditions = [condition("Ready", "Unknown", "PreparingRelease", "rel-2 is being loaded by its pods"), READY[1]]
    preparing = pipeline(conditions=conditions, servingRelease="rel-1", rollout=rollout("Preparing", candidate="rel-2"))
    text = pipeline_status(preparing, policy(), [])
    assert "  candidate   rel-2 (Preparing)" in text
    assert "  steps       thirty 30 % > look (waits) > all 100 %" in text
    assert nexts(text) == ["kubectl rag abort docs   takes the candidate back; else it goes on by itself"]

    step = {"name": "thirty", "since": AT, "share": 30}
    moving = pipeline(
        conditions=READY,
        servingRelease="rel-1",
        rollout=rollout("Progressing", candidate="rel-2", step=step, queued="rel-3"),
        routing={"version": 4, "summary": "1/2", "pending": ["docs-a"], "hash": "", "appliedPods": 1, "totalPods": 2},
    )
    text = pipeline_status(moving, policy(), [])
    assert "  candidate   rel-2 (Progressing, step thirty, 30 % by session)" in text
    assert "  steps       [thirty 30 %] > look (waits) > all 100 %" in text
    assert "  queued      rel-3, starts when the present rollout has ended" in text
    assert "  routing     1/2 pods obey table 4; waiting for docs-a" in text


def test_paused_names_both_ways_on_and_a_step_that_was_taken_away() -> None:
    step = {"name": "gone", "since": AT, "share": 30}
    paused = pipeline(conditions=READY, servingRelease="rel-1", rollout=rollout("Paused", candidate="rel-2", step=step))
    assert nexts(pipeline_status(paused, policy(), [])) == [
        "step gone is no longer in the policy, so the rollout waits",
        "kubectl rag promote docs   goes on; kubectl rag abort docs takes the candidate back",
    ]


def test_a_cold_rollback_says_who_serves_until_it_is_warm() -> None:
    back = pipeline(
        conditions=READY,
        servingRelease="rel-2",
        rollout={"stable": "rel-2", "candidate": "rel-1", "phase": "RollingBack"},
    )
    text = pipeline_status(back, policy(), [])
    assert "  going back  to rel-1 as soon as its pods are warm; rel-2 serves until then" in text
    assert "candidate" not in text
    assert nexts(text) == ["nothing to do"]


def test_what_was_rejected_offers_a_retry_only_while_the_spec_asks_for_it() -> None:
    rejected = [{"release": "rel-2", "reason": "rolled back by ann", "at": AT}]
    held = [
        condition("Ready", "False", "RolledBack", "rel-2 was rejected"),
        condition("Stalled", "True", "RolledBack", "rel-2 was rejected"),
    ]
    text = pipeline_status(
        pipeline(conditions=held, servingRelease="rel-1", rollout=rollout("Failed", rejected=rejected)), policy(), []
    )
    assert "  trouble     RolledBack: rel-2 was rejected" in text
    assert nexts(text) == [
        "kubectl rag retry docs   lets the rejected change try again; another change tries by itself"
    ]
    later = pipeline(conditions=READY, servingRelease="rel-1", rollout=rollout("Idle", rejected=rejected))
    assert nexts(pipeline_status(later, policy(), [])) == ["nothing to do"]


def test_a_spec_that_is_not_accepted_says_what_stays_in_force() -> None:
    wrong = "spec.nodes[0].type: 'bm26' is unknown; use bm25"
    conditions = [
        condition("Ready", "False", "InvalidGraph", wrong),
        condition("Accepted", "False", "InvalidGraph", wrong),
        condition("Available", "True", "Serving"),
        condition("Stalled", "True", "InvalidGraph", wrong),
    ]
    text = pipeline_status(pipeline(conditions=conditions, servingRelease="rel-1"), None, [])
    assert text.count(wrong) == 1
    assert nexts(text) == ["correct the spec as the trouble above says; the last accepted one stays in force"]
    first = pipeline_status(pipeline(conditions=conditions), None, [])
    assert nexts(first) == ["correct the spec as the trouble above says; nothing serves yet"]


@pytest.mark.parametrize("reason", ["InsufficientGPU", "Unschedulable", "ImagePullFailed", "ContainerFailed"])
def test_pods_that_do_not_start_come_with_a_remedy(reason: str) -> None:
    message = f"pods of rel-2 do not run: {reason}"
    conditions = [condition("Ready", "False", reason, message), condition("Stalled", "True", reason, message)]
    text = pipeline_status(pipeline(conditions=conditions, servingRelease="rel-1"), None, [])
    assert f"  trouble     {reason}: {message}" in text
    assert len(nexts(text)) == 1
    assert nexts(text) != ["nothing to do"]


def test_nobody_serving_is_said_loudly() -> None:
    message = "no pod of the serving release is ready"
    conditions = [condition("Ready", "Unknown", "Starting"), condition("Available", "False", "NoReadyPod", message)]
    text = pipeline_status(pipeline(conditions=conditions, servingRelease="rel-1", pods="0/1"), None, [])
    assert f"  serves      NOBODY: {message} (it would be rel-1)" in text


def test_a_suspended_pipeline_says_how_to_go_on() -> None:
    asleep = pipeline(conditions=[condition("Ready", "True", "Suspended"), READY[1]], servingRelease="rel-1")
    suspended = asleep.model_copy(update={"spec": asleep.spec.model_copy(update={"suspend": True})})
    assert nexts(pipeline_status(suspended, None, [])) == ["set spec.suspend: false   changes are held back until then"]


def test_without_an_operator_the_next_thing_is_to_look_for_it() -> None:
    text = pipeline_status(pipeline(), None, [])
    assert nexts(text) == ["kubectl get pods -A -l app.kubernetes.io/name=tidegate   shows the operator"]


def test_a_knowledge_base_in_trouble_shows_its_own_reason() -> None:
    missing = "ConfigMap docs does not exist; create it"
    base = KnowledgeBase.model_validate(
        {
            "metadata": {"name": "docs"},
            "spec": {"sources": [{"name": "a", "from": {"configMap": {"name": "docs"}}}]},
            "status": {"conditions": [condition("Ready", "False", "ConfigMapMissing", missing)]},
        }
    )
    text = pipeline_status(pipeline(conditions=[condition("Ready", "Unknown", "WaitsForBuild")]), None, [base])
    assert f"              ConfigMapMissing: {missing}" in text
    assert nexts(text) == ["kubectl describe kb docs   its index is not as the spec asks"]


def test_the_last_order_is_told_with_its_outcome() -> None:
    order = {"id": "1", "verb": "promote", "by": "ann", "result": "refused", "message": "nothing waits", "at": AT}
    text = pipeline_status(pipeline(conditions=READY), policy(lastRequest=order), [])
    assert f"  last order  promote by ann at {AT}: refused; nothing waits" in text
