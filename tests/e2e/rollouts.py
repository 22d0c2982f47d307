"""A rollout up to a point, as tests begin with it: served under a policy, with a candidate, taken back again."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.e2e.cluster import CommandError, Namespace, run
from tests.e2e.serving import EXAMPLES, KNOWLEDGE_BASE, apply_quickstart, change, documents, wait_until_serving
from tests.e2e.wait import wait_for

ROLLOUT_SECONDS = 240
BIN = Path(sys.executable).parent
POLICY = "routingpolicies/docs"
SMALLER_CHUNKS = {"chunking": {"sizeTokens": 64}}


def rag(namespace: Namespace, *arguments: str, key: str = "") -> str:
    """Run the plugin as kubectl does; `key` comes from the environment."""
    command = (str(BIN / "kubectl-rag"), "--namespace", namespace.name, *arguments)
    variables = (f"KUBECONFIG={namespace.cluster.kubeconfig}", *([f"TIDEGATE_KEY={key}"] if key else []))
    return run("env", *variables, *command, path=namespace.cluster.path, timeout_seconds=90)


def promote(namespace: Namespace) -> None:
    """Promote the candidate; again, as the refusal says, where a busy pod did not say in time that it is warm."""

    def done() -> bool:
        try:
            return "done" in rag(namespace, "promote", "docs")
        except CommandError as error:
            if "ask again when it is" not in str(error):
                raise
            return False

    wait_for(
        done,
        what="the candidate is promoted",
        timeout_seconds=60,
        describe=lambda: namespace.diagnosis(POLICY),
    )


def serve_with_policy(namespace: Namespace) -> str:
    """Serve a first release under a policy that asks a person at 30 %, and return its name."""
    paragraphs = "\n\n".join(f"Paragraph {n} about high water, tides and the harbour of the town." for n in range(60))
    namespace.apply(documents(tides_md=f"# Tides\n\n{paragraphs}"))
    apply_quickstart(namespace)
    namespace.kubectl("apply", "-f", str(EXAMPLES / "rollout"))
    wait_until_serving(namespace)
    return str(wait_for_policy(namespace, "is idle", phase="Idle")["status"]["stable"])


def with_a_candidate(namespace: Namespace, changed: Mapping[str, Any] = SMALLER_CHUNKS) -> str:
    """Change the knowledge base, wait until the policy asks a person, and return the candidate's name."""
    change(namespace, KNOWLEDGE_BASE, changed)
    paused = wait_for_policy(namespace, "waits for a person", phase="Paused", stepName="look")
    assert paused["status"]["share"] == "30%"
    return str(paused["status"]["candidate"])


def wait_for_policy(namespace: Namespace, what: str, **status: object) -> dict[str, Any]:
    """Wait until the policy's status has these members."""
    return namespace.wait_for(
        POLICY,
        lambda found: all(found.get("status", {}).get(name) == value for name, value in status.items()),
        what=what,
        timeout_seconds=ROLLOUT_SECONDS,
    )


def wait_until_back(namespace: Namespace, stable: str) -> dict[str, Any]:
    """Wait until every pod serves the earlier release."""
    return namespace.wait_for(
        POLICY,
        lambda found: found["status"]["stable"] == stable and not found["status"]["routing"].get("pending"),
        what="says that every pod serves the earlier release",
        timeout_seconds=ROLLOUT_SECONDS,
    )
