"""The operator's process when the cluster is spoilt under it: a definition deleted, a second operator, a taken name."""

from pathlib import Path

from tests.e2e.cluster import Cluster, Namespace
from tests.e2e.wait import wait_for
from tests.integration.conftest import install_definitions
from tests.integration.operator_process import OperatorProcess, running_operator
from tests.integration.test_operator_process import documents, knowledge_base, reason, seen

DEFINITION = "routingpolicies.tidegate.dev"
NOTICE_SECONDS = 60


def said(operator: OperatorProcess, text: str) -> list[str]:
    """Return the lines of its log that hold a text, as they came."""
    return [str(line) for line in operator.messages() if text in str(line)]


def test_a_definition_that_is_deleted_ends_it_and_the_next_one_works_when_it_is_back(
    api_server: Cluster, namespace: Namespace, tmp_path: Path
) -> None:
    try:
        with running_operator(api_server.kubeconfig, tmp_path, namespace.name) as operator:
            namespace.apply(documents(), knowledge_base())
            namespace.wait_for("knowledgebase/docs", seen, what="is seen")
            api_server.kubectl("delete", "crd", DEFINITION)
            assert operator.process.wait(timeout=NOTICE_SECONDS) == 1
            (line,) = said(operator, "cannot work here")
            assert "has ended a watch" in line
            assert "tidegate crds | kubectl apply" in line
    finally:
        install_definitions(api_server)

    with running_operator(api_server.kubeconfig, tmp_path, namespace.name):
        namespace.apply(knowledge_base(size_tokens=100))
        namespace.wait_for("knowledgebase/docs", seen, what="is seen by the next one")


def test_two_operators_say_that_the_other_is_there(namespace: Namespace, tmp_path: Path) -> None:
    here = {"TIDEGATE_OPERATOR_NAMESPACE": namespace.name, "TIDEGATE_LEASE": "operators"}
    kubeconfig = namespace.cluster.kubeconfig
    with running_operator(kubeconfig, tmp_path, namespace.name, settings=here) as first:
        namespace.wait_for("lease/operators", lambda found: found["spec"]["holderIdentity"], what="names the first")
        assert said(first, "another operator") == []
        with running_operator(kubeconfig, tmp_path, namespace.name, settings=here) as second:
            for each in (first, second):
                wait_for(
                    lambda each=each: said(each, "another operator is at work here"),  # type: ignore[misc]
                    what="it says that the other is there",
                    timeout_seconds=NOTICE_SECONDS,
                    describe=each.log.read_text,
                )
        wait_for(
            lambda: said(first, "the other operator is gone"),
            what="it says that the other is gone",
            timeout_seconds=NOTICE_SECONDS,
            describe=first.log.read_text,
        )


def test_a_frozen_revision_of_somebody_else_is_said_and_left_alone(namespace: Namespace, tmp_path: Path) -> None:
    kubeconfig = namespace.cluster.kubeconfig
    with running_operator(kubeconfig, tmp_path, namespace.name):
        namespace.apply(documents(), knowledge_base())
        found = namespace.wait_for(
            "knowledgebase/docs", lambda each: seen(each) and each["status"]["desiredRevision"], what="is decided"
        )
    # Names of revisions are made from what they are, so in another namespace it is the same one.
    other = Namespace(namespace.cluster, f"{namespace.name}-taken")
    other.cluster.kubectl("create", "namespace", other.name)
    name = found["status"]["desiredRevision"]
    theirs = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": name}, "revision": 7}
    other.apply({**theirs, "data": {"mine": "yes"}})
    before = other.get(f"controllerrevision/{name}")

    with running_operator(kubeconfig, tmp_path, other.name):
        other.apply(documents(), knowledge_base())
        other.wait_for("knowledgebase/docs", lambda each: reason(each, "Stalled") == "NameConflict", what="says so")

    assert other.get(f"controllerrevision/{name}") == before
