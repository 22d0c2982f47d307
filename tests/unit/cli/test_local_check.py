"""Manifests are judged before anything starts: every mistake is a line with field, value and next step."""

from pathlib import Path

import pytest

from tidegate_cli.local_check import accept
from tidegate_cli.manifests import Manifest, ManifestError, Manifests

LONG_PATH = Path("p" * 300)
API = "tidegate.dev/v1alpha1"


def knowledge_base(name: str = "docs", **spec: object) -> dict:
    sources = [{"name": "docs", "from": {"configMap": {"name": "docs"}}}]
    return {
        "apiVersion": API,
        "kind": "KnowledgeBase",
        "metadata": {"name": name},
        "spec": {"sources": sources, **spec},
    }


def pipeline(**spec: object) -> dict:
    body = {"knowledgeBases": [{"name": "docs"}], "auth": {"anonymous": {}}, **spec}
    return {"apiVersion": API, "kind": "RetrievalPipeline", "metadata": {"name": "docs"}, "spec": body}


def policy(pipeline_name: str = "docs", **spec: object) -> dict:
    return {
        "apiVersion": API,
        "kind": "RoutingPolicy",
        "metadata": {"name": "docs"},
        "spec": {"pipeline": {"name": pipeline_name}, **spec},
    }


def volume(claim: str) -> dict:
    return {"name": "files", "from": {"volume": {"claimName": claim}}}


DOCUMENTS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "docs"}, "data": {"a.md": "# A"}}


def placed(body: dict, namespace: object) -> dict:
    return {**body, "metadata": {**body["metadata"], "namespace": namespace}}


def manifests(*bodies: dict) -> Manifests:
    return Manifests(
        {
            (body["kind"], body["metadata"]["name"]): Manifest(
                Path("m.yaml"), body["kind"], body["metadata"]["name"], body
            )
            for body in bodies
        }
    )


def test_a_complete_set_is_accepted_and_a_policy_is_remarked_on() -> None:
    accepted = accept(manifests(DOCUMENTS, knowledge_base(), pipeline(), policy()), {})
    assert list(accepted.knowledge_bases) == ["docs"]
    assert list(accepted.pipelines) == ["docs"]
    assert accepted.remarks() == [
        "m.yaml: RoutingPolicy docs: is checked but not obeyed here; one release serves everybody",
    ]


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        (
            [knowledge_base(), pipeline()],
            "spec.sources[docs].from.configMap.name: ConfigMap 'docs' is not among the given files",
        ),
        (
            [DOCUMENTS, knowledge_base(embedding={"model": "gpt"}), pipeline()],
            'spec.embedding.model: "gpt" is not a known model',
        ),
        ([DOCUMENTS, pipeline()], "spec.knowledgeBases: KnowledgeBase 'docs' is not among the given files"),
        ([DOCUMENTS, knowledge_base(colour="red"), pipeline()], "spec.colour: is an unknown field"),
        ([DOCUMENTS, knowledge_base("x" * 253), pipeline()], "metadata.name: "),
        (
            [DOCUMENTS, knowledge_base(), pipeline(auth={"apiKeys": {"secretRef": {"name": "keys"}}})],
            "spec.auth.apiKeys.secretRef.name: Secret 'keys' is not among the given files",
        ),
        (
            [
                *(DOCUMENTS, knowledge_base(), pipeline(auth={"trustedHeaders": {"secretRef": {"name": "proxy"}}})),
                {"kind": "Secret", "metadata": {"name": "proxy"}, "stringData": {"other": "x"}},
            ],
            "Secret 'proxy' has no entry 'secret': add it under stringData",
        ),
        (
            [
                *(DOCUMENTS, knowledge_base(), pipeline(auth={"apiKeys": {"secretRef": {"name": "keys"}}})),
                {"kind": "Secret", "metadata": {"name": "keys"}, "stringData": {}},
            ],
            "spec.auth.apiKeys.secretRef.name: Secret 'keys' has no entry: add one per key under stringData",
        ),
        (
            [placed(DOCUMENTS, "a"), placed(knowledge_base(), "a"), placed(pipeline(), "b")],
            "RetrievalPipeline docs: spec.knowledgeBases: KnowledgeBase 'docs' is in namespace 'a', not in 'b': "
            "references stay within a namespace, put both into one",
        ),
        (
            [placed(DOCUMENTS, "a"), placed(knowledge_base(), "b"), pipeline()],
            "KnowledgeBase docs: spec.sources[docs].from.configMap.name: ConfigMap 'docs' is in namespace 'a', not in 'b': ",
        ),
        (
            [DOCUMENTS, knowledge_base(), pipeline(), policy("other")],
            "spec.pipeline.name: RetrievalPipeline 'other' is not among",
        ),
        (
            [knowledge_base(sources=[volume("docs")]), pipeline()],
            "spec.sources[files].from.volume.claimName: claim 'docs' has no folder here: add --volume docs=PATH",
        ),
        (
            [knowledge_base(sources=[volume("gone")]), pipeline()],
            "spec.sources[files].from.volume.claimName: --volume gone=nowhere is not a folder: correct the path",
        ),
        (
            [knowledge_base(sources=[volume("long")]), pipeline()],
            f"--volume long={LONG_PATH} is not a folder: correct the path",
        ),
        (
            [DOCUMENTS, knowledge_base(), pipeline(), policy(pins=[{"tenants": ["a"], "release": "stable"}] * 2)],
            "spec.pins",
        ),
        ([DOCUMENTS, knowledge_base()], "no RetrievalPipeline is among the given files"),
        (
            [DOCUMENTS, knowledge_base(), pipeline(nodes=[{"name": "a", "type": "fuse", "inputs": ["a"]}], output="a")],
            "cycle a -> a",
        ),
    ],
)
def test_a_mistake_is_named_with_field_value_and_next_step(bodies: list[dict], message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        accept(manifests(*bodies), {"gone": Path("nowhere"), "long": LONG_PATH})
    assert any(message in problem for problem in caught.value.problems), caught.value.problems
    assert all(len(problem) < 500 for problem in caught.value.problems)


def test_every_mistake_is_named_in_one_run() -> None:
    with pytest.raises(ManifestError) as caught:
        accept(manifests(knowledge_base(embedding={"model": "gpt"}), pipeline(knowledgeBases=[{"name": "other"}])), {})
    assert len(caught.value.problems) == 3


def test_a_mistake_in_what_two_sources_share_is_named_once() -> None:
    sources = [{"name": name, "from": {"configMap": {"name": "docs"}}} for name in ("one", "two")]
    broken = {**DOCUMENTS, "data": {"a.md": 1}}
    with pytest.raises(ManifestError) as caught:
        accept(manifests(broken, knowledge_base(sources=sources), pipeline()), {})
    assert caught.value.problems == ["m.yaml: ConfigMap docs: data.a.md: is a int: quote it to make it text"]


def test_the_sync_annotation_is_the_token_that_asks_for_a_look(tmp_path: Path) -> None:
    asked = knowledge_base()
    asked["metadata"]["annotations"] = {"tidegate.dev/sync": 7}
    assert accept(manifests(DOCUMENTS, asked, pipeline()), {}).sync_token("docs") == "7"
    assert accept(manifests(DOCUMENTS, knowledge_base(), pipeline()), {}).sync_token("docs") == ""


def test_a_claim_is_accepted_with_a_folder_for_it(tmp_path: Path) -> None:
    files = knowledge_base(sources=[volume("docs")])
    assert list(accept(manifests(files, pipeline()), {"docs": tmp_path}).knowledge_bases) == ["docs"]


def test_what_the_schema_refuses_in_one_object_hides_no_mistake_in_another() -> None:
    lost = knowledge_base("lost", sources=[{"name": "docs", "from": {"configMap": {"name": "nowhere"}}}])
    with pytest.raises(ManifestError) as caught:
        accept(manifests(DOCUMENTS, knowledge_base(language="fr"), lost, pipeline(knowledgeBases=[{"name": "x"}])), {})
    assert [problem.partition(": ")[2].partition(": ")[0] for problem in caught.value.problems] == [
        "KnowledgeBase docs",
        "KnowledgeBase lost",
        "RetrievalPipeline docs",
    ]


def test_an_object_that_the_schema_refuses_is_there_for_those_that_name_it() -> None:
    with pytest.raises(ManifestError) as caught:
        accept(manifests(DOCUMENTS, knowledge_base(language="fr"), pipeline(auth={}), policy()), {})
    assert len(caught.value.problems) == 2
    assert not any("among the given files" in problem for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (policy(salt="b"), 'm.yaml: RoutingPolicy docs: spec.salt: "b": can\'t change once it is set'),
        (policy(), "m.yaml: RoutingPolicy docs: spec.salt: null: can't change once it is set"),
        (
            policy("other", salt="a"),
            'm.yaml: RoutingPolicy docs: spec.pipeline: {"name": "other"}: can\'t change: delete this RoutingPolicy',
        ),
    ],
)
def test_an_edit_may_not_change_what_may_not_change_on_a_cluster(edit: dict, message: str) -> None:
    others = (DOCUMENTS, knowledge_base(), pipeline())
    before = accept(manifests(*others, policy(salt="a")), {}).manifests
    with pytest.raises(ManifestError) as caught:
        accept(manifests(*others, edit), {}, before=before)
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].startswith(message)


def test_an_object_that_was_away_comes_back_as_another_one() -> None:
    others = (DOCUMENTS, knowledge_base(), pipeline())
    before = accept(manifests(*others, policy(salt="a")), {}).manifests
    without = accept(manifests(*others), {}, before=before).manifests
    assert list(accept(manifests(*others, policy(salt="b")), {}, before=without).policies) == ["docs"]
    assert list(accept(manifests(*others, policy(salt="a", unit="tenant")), {}, before=before).policies) == ["docs"]


def test_a_manifest_without_a_namespace_goes_with_any() -> None:
    some = (DOCUMENTS, placed(knowledge_base(), "a"), placed(pipeline(), None), placed(policy(), "a"))
    assert list(accept(manifests(*some), {}).pipelines) == ["docs"]
