"""From `kubectl apply` to answers on real pods; edits, deletions and another chunking while it serves."""

import time

import pytest
import yaml
from tests.e2e.asking import ask, text_of
from tests.e2e.cluster import Cluster, CommandError, Namespace
from tests.e2e.rollouts import SMALLER_CHUNKS, rag
from tests.e2e.serving import (
    EXAMPLES,
    KNOWLEDGE_BASE,
    PIPELINE,
    READY_SECONDS,
    apply_quickstart,
    change,
    documents,
    pods_of,
    serving_release,
    under_load,
    wait_until_serving,
)
from tests.e2e.wait import wait_for

EDIT_SECONDS = 120

# One after the other: an example asks for most of a small node.
example = pytest.mark.xdist_group("examples")
pytestmark = pytest.mark.usefixtures("operator")


@example
def test_the_quickstart_answers_and_reads_like_the_interface(namespace: Namespace) -> None:
    namespace.kubectl("apply", "--server-side", "-f", str(EXAMPLES / "quickstart"))
    wait_until_serving(namespace)

    with namespace.port_forward("service/docs", 8080) as url:
        answer = ask(url, "what survives a kill -9 between any two steps?")
    assert answer.status == 200
    assert answer.body["arm"] == "stable"
    assert any("architecture" in document for document in answer.documents)

    pipelines = namespace.kubectl("get", "rp").splitlines()
    assert pipelines[0].split() == ["NAME", "READY", "SERVING", "CANDIDATE", "PODS", "AGE"]
    assert pipelines[1].split()[:4] == ["docs", "True", answer.body["release"], "1/1"]
    bases = namespace.kubectl("get", "kb").splitlines()
    assert bases[0].split() == ["NAME", "READY", "REVISION", "DOCS", "CHUNKS", "BUILDING", "AGE"]
    assert bases[1].split()[:3] == ["docs", "True", answer.body["results"][0]["revision"]]

    (pod,) = pods_of(namespace, "retrieval")
    with namespace.port_forward(f"pods/{pod['metadata']['name']}", 8081) as url:
        metrics = text_of(f"{url}/metrics")
    assert "tidegate_requests_total{" in metrics


def test_edits_and_deletions_reach_the_answers_without_a_restart(namespace: Namespace) -> None:
    namespace.apply(
        documents(tides_md="# Tides\n\nHigh water is at 14:05.", ferry_md="# Ferry\n\nThe ferry leaves at nine.")
    )
    apply_quickstart(namespace)
    wait_until_serving(namespace)
    pods = {pod["metadata"]["uid"] for pod in namespace.items("pods")}

    with namespace.port_forward("service/docs", 8080) as url:
        assert "14:05" in ask(url, "when is high water").text
        namespace.apply(documents(tides_md="# Tides\n\nHigh water is at 15:40."))
        wait_for(
            lambda: (
                (answer := ask(url, "when is high water")) and "15:40" in answer.text and "ferry" not in answer.text
            ),
            what="the edit and the deletion are in the answers",
            timeout_seconds=EDIT_SECONDS,
            describe=lambda: namespace.diagnosis("knowledgebases/docs"),
        )
    assert {pod["metadata"]["uid"] for pod in namespace.items("pods")} == pods


def test_another_chunking_is_built_beside_and_serving_never_stops(namespace: Namespace, images: dict[str, str]) -> None:
    paragraphs = "\n\n".join(f"Paragraph {n} about high water, tides and the harbour of the town." for n in range(60))
    namespace.apply(documents(tides_md=f"# Tides\n\n{paragraphs}"))
    apply_quickstart(namespace)
    wait_until_serving(namespace)
    before = namespace.get("knowledgebases/docs")
    assert before is not None

    first = serving_release(namespace)
    with under_load(namespace, images) as load:
        change(namespace, KNOWLEDGE_BASE, SMALLER_CHUNKS)
        namespace.wait_for(
            PIPELINE,
            lambda found: found["status"]["servingRelease"] != first,
            what="another release serves",
            timeout_seconds=READY_SECONDS,
        )
        answers = load.answers_after(time.time())
    assert [each for each in answers if "error" in each] == []
    assert len({each["release"] for each in answers}) == 2
    assert all(len(each["revisions"]) == 1 for each in answers)
    after = namespace.get("knowledgebases/docs")
    assert after is not None
    assert after["status"]["latestRevision"] != before["status"]["latestRevision"]
    listed = rag(namespace, "revisions", "docs")
    assert all(found["status"]["latestRevision"] in listed for found in (before, after))


@example
def test_tenants_see_their_own_documents_and_nobody_elses(namespace: Namespace) -> None:
    namespace.kubectl("apply", "-f", str(EXAMPLES / "tenants"))
    wait_until_serving(namespace, "handbook")

    with namespace.port_forward("service/handbook", 8080) as url:
        acme, globex = (ask(url, "when is the yearly bonus paid?", key=key) for key in ("acme-key", "globex-key"))
        refused = ask(url, "when is the yearly bonus paid?", key="guessed")
    assert "March" in acme.text
    assert "June" not in acme.text
    assert "June" in globex.text
    assert "March" not in globex.text
    assert refused.status == 401

    question = ("query", "handbook", "when is the yearly bonus paid?")
    assert "March" in rag(namespace, *question, "--key", "acme-key")
    assert "June" in rag(namespace, *question, key="globex-key")
    with pytest.raises(CommandError, match="unauthenticated"):
        rag(namespace, *question)


def test_a_missing_source_is_a_reason_that_names_the_next_step(namespace: Namespace) -> None:
    apply_quickstart(namespace)
    found = namespace.wait_for_condition("knowledgebases/docs", "Accepted", "False", timeout_seconds=60)
    message = next(each["message"] for each in found["status"]["conditions"] if each["type"] == "Accepted")
    assert "docs" in message
    namespace.apply(documents(tides_md="# Tides\n\nHigh water is at 14:05."))
    wait_until_serving(namespace)


@example
def test_a_gpu_pipeline_lands_on_the_node_that_has_one(namespace: Namespace, cluster: Cluster) -> None:
    node = str(yaml.safe_load(cluster.kubectl("get", "nodes", "-o", "yaml"))["items"][0]["metadata"]["name"])
    capacity = '{"status": {"capacity": {"nvidia.com/gpu": "1"}, "allocatable": {"nvidia.com/gpu": "1"}}}'
    cluster.kubectl("patch", "node", node, "--subresource", "status", "--type", "merge", "-p", capacity)
    cluster.kubectl("label", "node", node, "accelerator=nvidia-l4", "--overwrite")
    namespace.kubectl("apply", "-f", str(EXAMPLES / "gpu"))
    wait_until_serving(namespace)

    pod = namespace.items("pods", labels="tidegate.dev/pipeline=docs")[0]
    runtime = next(each for each in pod["spec"]["initContainers"] if each["name"] == "runtime")
    assert runtime["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert pod["spec"]["nodeSelector"] == {"accelerator": "nvidia-l4"}

    # There is no second GPU: a release that needs pods of its own cannot come up beside the one that serves.
    change(namespace, KNOWLEDGE_BASE, {"embedding": {"model": "use-m3"}})
    found = namespace.wait_for(
        "retrievalpipelines/docs",
        lambda found: any(each["reason"] == "InsufficientGPU" for each in found["status"]["conditions"]),
        what="says that there is no GPU for the new pods",
        timeout_seconds=READY_SECONDS,
    )
    assert found["status"]["pods"] == "1/1"
    with namespace.port_forward("service/docs", 8080) as url:
        assert "14:05" in ask(url, "when is high water").text

    # Told to free the GPU first, it comes up at the price of a gap.
    before = serving_release(namespace)
    change(namespace, PIPELINE, {"runtime": {"update": "Replace"}})
    wait_until_serving(namespace)
    assert serving_release(namespace) != before
    with namespace.port_forward("service/docs", 8080) as url:
        assert "14:05" in ask(url, "when is high water").text
