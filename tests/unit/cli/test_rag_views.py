"""What somebody on call reads: what serves, what waits and why, what to type next."""

from tidegate_api.v1alpha1.knowledgebase import KnowledgeBase
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipeline
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicy
from tidegate_cli.rag_status import pipeline_status
from tidegate_cli.rag_views import releases_table, revisions_table, table

AT = "2026-11-29T10:00:00Z"


def condition(kind: str, status: str, reason: str = "Reason", message: str = "") -> dict:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": AT}


def pipeline(**status: object) -> RetrievalPipeline:
    return RetrievalPipeline.model_validate(
        {
            "metadata": {"name": "docs"},
            "spec": {"knowledgeBases": [{"name": "docs"}], "auth": {"anonymous": {}}},
            "status": {"observedGeneration": 1, **status},
        }
    )


def policy(**status: object) -> RoutingPolicy:
    return RoutingPolicy.model_validate(
        {
            "metadata": {"name": "docs"},
            "spec": {"pipeline": {"name": "docs"}},
            "status": {"observedGeneration": 1, **status},
        }
    )


def release(name: str, revision: str, pipeline_revision: str = "p1", version: str = "1") -> dict:
    return {
        "name": name,
        "pipelineRevision": pipeline_revision,
        "phase": "Warm",
        "indexRevisions": [{"knowledgeBase": "docs", "revision": revision}],
        "versions": {"runtime": version, "sidecar": version},
    }


def test_a_healthy_pipeline_is_five_words_and_offers_the_way_back() -> None:
    text = pipeline_status(
        pipeline(
            conditions=[condition("Ready", "True"), condition("Available", "True")],
            servingRelease="rel-2",
            pods="2/2",
            endpoint="http://docs.acme.svc:8080",
            rollback={"target": "rel-1", "readiness": "Warm"},
        ),
        None,
        [],
    )
    assert "pipeline docs: Ready; pods 2/2; http://docs.acme.svc:8080" in text
    assert "serves      rel-2" in text
    assert "rollback    would go to rel-1 (warm: under a second)" in text
    assert "kubectl rag rollback docs   serves rel-1 again" in text


def test_a_paused_rollout_says_where_it_stands_and_what_to_type() -> None:
    rollout = {"candidate": "rel-3", "phase": "Paused", "step": {"name": "look", "since": AT, "share": 5}}
    text = pipeline_status(pipeline(rollout=rollout, conditions=[condition("Ready", "True")]), policy(), [])
    assert "candidate   rel-3 (Paused, step look, 5 % by user)" in text
    assert "kubectl rag promote docs" in text
    assert "kubectl rag abort docs" in text


def test_trouble_is_shown_once_with_its_next_step() -> None:
    trouble = "Secret keys is missing; create it"
    text = pipeline_status(
        pipeline(
            conditions=[
                condition("Ready", "False", "SecretMissing", trouble),
                condition("Stalled", "True", "SecretMissing", trouble),
            ]
        ),
        None,
        [],
    )
    assert "not ready (SecretMissing)" in text
    assert text.count(trouble) == 1


def test_a_rejected_change_offers_retry() -> None:
    rejected = {"phase": "Failed", "rejected": [{"release": "rel-3", "reason": "rolled back by ann", "at": AT}]}
    text = pipeline_status(pipeline(rollout=rejected), None, [])
    assert "rejected    rel-3: rolled back by ann" in text
    assert "kubectl rag retry docs" in text


def test_knowledge_bases_show_progress_and_failures() -> None:
    base = KnowledgeBase.model_validate(
        {
            "metadata": {"name": "docs"},
            "spec": {"sources": [{"name": "a", "from": {"configMap": {"name": "a"}}}]},
            "status": {
                "conditions": [condition("Ready", "Unknown", "Building")],
                "desiredRevision": "docs-2",
                "latestRevision": "docs-1",
                "documents": 4,
                "chunks": 9,
                "building": "64%",
                "sync": {"failed": 2},
                "revisions": [
                    {
                        "name": "docs-2",
                        "phase": "Building",
                        "provides": ["bm25", "dense"],
                        "embedder": "minilm@8199be6f/384",
                    },
                    {
                        "name": "docs-1",
                        "phase": "Ready",
                        "documents": 4,
                        "chunks": 9,
                        "referencedBy": ["RetrievalPipeline/docs"],
                    },
                ],
            },
        }
    )
    text = pipeline_status(pipeline(), None, [base])
    assert "docs-1, 4 documents, 9 chunks, builds docs-2 64%, 2 documents failed" in text
    listing = revisions_table(base).splitlines()
    assert listing[1].split() == [
        "docs-2",
        "Building",
        "desired",
        "0",
        "0",
        "minilm@8199be6f/384",
        "bm25+dense",
        "0",
        "-",
    ]
    assert "RetrievalPipeline/docs" in listing[2]


def test_an_object_that_no_operator_has_seen_asks_for_the_operator() -> None:
    text = pipeline_status(pipeline(), None, [])
    assert "is the operator running?" in text
    assert "serves      nothing yet" in text


def test_tables_line_up_and_show_a_dash_for_nothing() -> None:
    assert table(("NAME", "X"), [("long-name", ""), ("a", "b")]) == "NAME        X\nlong-name   -\na           b"


def test_wide_releases_tell_both_versions_and_when_they_were_made_and_served() -> None:
    made = {
        **release("rel-1", "docs-1"),
        "versions": {"runtime": "1.2", "sidecar": "1.3"},
        "createdAt": "2026-11-28T10:00:00Z",
        "servedFrom": AT,
    }
    ordinary, wide = (releases_table(pipeline(releases=[made]), wide=wide).splitlines() for wide in (False, True))
    assert ordinary[1].split() == ["rel-1", "Warm", "p1", "docs-1", AT, "1.2"]
    assert wide[1].split() == ["rel-1", "Warm", "p1", "docs-1", AT, "-", "2026-11-28T10:00:00Z", "1.2", "1.3"]
    assert wide[0].split("   ")[-1].strip() == "SIDECAR"


def test_wide_revisions_add_what_else_the_status_knows() -> None:
    revision = {
        "name": "docs-1",
        "phase": "Retiring",
        "sizeBytes": 100,
        "loadBytes": 40,
        "language": "en",
        "truncatedChunks": 3,
        "references": 12,
        "createdAt": "2026-11-28T10:00:00Z",
        "readyAt": AT,
        "retiringSince": "2026-11-30T10:00:00Z",
    }
    base = KnowledgeBase.model_validate(
        {
            "metadata": {"name": "docs"},
            "spec": {"sources": [{"name": "a", "from": {"configMap": {"name": "a"}}}]},
            "status": {"revisions": [revision]},
        }
    )
    ordinary, wide = (revisions_table(base, wide=wide).splitlines()[1].split() for wide in (False, True))
    assert wide[: len(ordinary)] == ordinary
    assert wide[len(ordinary) :] == [
        *("12", "en", "100", "40", "3"),
        *("2026-11-28T10:00:00Z", AT, "2026-11-30T10:00:00Z"),
    ]
