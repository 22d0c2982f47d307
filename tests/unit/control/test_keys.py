"""Which keys an event wakes."""

from tidegate_operator.core.keys import Key, References, keys_to_wake
from tidegate_operator.core.kinds import Kind, Manifest

DOCS = Key(Kind.KNOWLEDGE_BASE, "acme", "docs")
PIPELINE = Key(Kind.RETRIEVAL_PIPELINE, "acme", "desk")


def named(name: str, *, labels: dict[str, str] | None = None, **members: object) -> Manifest:
    return {"metadata": {"name": name, "namespace": "acme", "labels": labels or {}}, **members}


def referring(*knowledge_bases: str) -> Manifest:
    return named("desk", spec={"knowledgeBases": [{"name": name} for name in knowledge_bases]})


def test_a_knowledge_base_wakes_the_pipelines_that_refer_to_it() -> None:
    references = References()
    references.learn(referring("docs", "faq"), deleted=False)

    assert keys_to_wake(Kind.KNOWLEDGE_BASE, named("docs"), references) == {DOCS, PIPELINE}
    assert keys_to_wake(Kind.KNOWLEDGE_BASE, named("else"), references) == {Key(Kind.KNOWLEDGE_BASE, "acme", "else")}


def test_a_pipeline_that_changed_or_went_is_no_longer_woken() -> None:
    references = References()
    references.learn(referring("docs"), deleted=False)
    references.learn(referring("faq"), deleted=False)
    assert keys_to_wake(Kind.KNOWLEDGE_BASE, named("docs"), references) == {DOCS}

    references.learn(referring("docs"), deleted=True)
    assert keys_to_wake(Kind.KNOWLEDGE_BASE, named("docs"), references) == {DOCS}


def test_a_policy_wakes_its_pipeline() -> None:
    policy = named("rules", spec={"pipeline": {"name": "desk"}})

    assert keys_to_wake(Kind.ROUTING_POLICY, policy, References()) == {PIPELINE}
    assert keys_to_wake(Kind.ROUTING_POLICY, named("broken"), References()) == frozenset()


def test_a_child_wakes_its_parent_and_a_release_the_indexes_it_refers_to() -> None:
    release = named("desk-rel-1", labels={"tidegate.dev/pipeline": "desk", "index.tidegate.dev/docs": "docs-1"})
    config = named("docs-indexer", labels={"tidegate.dev/knowledge-base": "docs"})

    assert keys_to_wake(Kind.CONTROLLER_REVISION, release, References()) == {PIPELINE, DOCS}
    assert keys_to_wake(Kind.CONFIG_MAP, config, References()) == {DOCS}
    assert keys_to_wake(Kind.CONFIG_MAP, named("stranger"), References()) == frozenset()
