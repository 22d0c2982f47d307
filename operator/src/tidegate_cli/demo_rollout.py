"""The demo's second half: another index is built beside the one that serves, 30 % of the users move, and back."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate_api.conditions import ConditionType, find
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBase
from tidegate_api.v1alpha1.retrievalpipeline import RetrievalPipeline
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicy
from tidegate_cli.demo import ROOT
from tidegate_cli.demo_crowd import Asked, Crowd, failed, named
from tidegate_cli.demo_steps import DemoError, Steps, run_shown, say, wait_shown
from tidegate_cli.kubectl import Kubectl
from tidegate_cli.rag_requests import Order, await_outcome, write_request

NAMESPACE = "tidegate-demo"
NAME = "docs"
CHUNK_TOKENS = 96
READY_SECONDS = 240
MOVED_SECONDS = 60
ORDER_SECONDS = 30
AFTERWARDS_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The demo's pipeline in its namespace."""

    kubectl: Kubectl
    environment: Mapping[str, str]

    def run(self, *arguments: str) -> str:
        """Run kubectl and show it; paths are those of the tree."""
        given = [str(ROOT / each) if each.startswith("examples/") else each for each in arguments]
        return run_shown(f"kubectl {' '.join(arguments)}", ["kubectl", *given], environment=self.environment)

    def base(self) -> KnowledgeBase:
        """Return the knowledge base as it is now."""
        return KnowledgeBase.model_validate(self.kubectl.get("knowledgebases", NAME))

    def pipeline(self) -> RetrievalPipeline:
        """Return the pipeline as it is now."""
        return RetrievalPipeline.model_validate(self.kubectl.get("retrievalpipelines", NAME))

    def policy(self) -> RoutingPolicy:
        """Return the policy as it is now."""
        return RoutingPolicy.model_validate(self.kubectl.get("routingpolicies", NAME))

    def wait_until_ready(self) -> None:
        """Wait until the present generation is in force."""

        def ready() -> bool | None:
            pipeline = self.pipeline()
            found = find(pipeline.status.conditions, ConditionType.READY)
            current = pipeline.status.observed_generation == pipeline.metadata.generation
            return True if found is not None and found.status == "True" and current else None

        wait_shown(ready, progress=self.progress, what="the pipeline is ready", seconds=READY_SECONDS)

    def progress(self) -> str:
        """Return in a line how far things are."""
        base, pipeline = self.base().status, self.pipeline().status
        building = f", builds {base.desired_revision} {base.building}" if base.building else ""
        ready = find(pipeline.conditions, ConditionType.READY)
        said = f" ({ready.message or ready.reason})" if ready is not None else ""
        candidate = f", candidate {pipeline.candidate}" if pipeline.candidate else ""
        return (
            f"index {base.latest_revision or '-'}: {base.documents} documents, {base.chunks} chunks{building}; "
            f"serves {pipeline.serving_release or '-'}{candidate}{said}"
        )


def change_and_move(steps: Steps, pipeline: Pipeline, crowd: Crowd) -> str:
    """Change the chunking under a policy, wait until 30 % have moved, show who is where; return the candidate."""
    with steps.step(
        f"chunks of {CHUNK_TOKENS} tokens instead of 200, under a policy: built while the old index serves"
    ):
        pipeline.run("apply", "-n", NAMESPACE, "-f", "examples/rollout")
        began = time.time()
        patch = f'{{"spec":{{"chunking":{{"sizeTokens":{CHUNK_TOKENS}}}}}}}'
        pipeline.run("patch", "-n", NAMESPACE, "kb", NAME, "--type=merge", "-p", patch)
        policy = wait_shown(
            lambda: _paused(pipeline), progress=pipeline.progress, what="30 % have moved", seconds=READY_SECONDS
        )
        asked = crowd.since(began)
        say(f"   meanwhile {len(asked)} questions were asked: {_told(asked)}")
    with steps.step("30 % of the users have moved"):
        moment = time.time()
        where = wait_shown(
            lambda: crowd.where(moment),
            progress=lambda: "every user asks once more",
            what="every user was answered",
            seconds=MOVED_SECONDS,
        )
        for release, sessions in where.items():
            role = "candidate" if release == policy.status.candidate else "stable"
            say(f"   {release} ({role}) serves {len(sessions)} of {len(crowd.sessions)}: {named(sessions)}")
        moved = where.get(policy.status.candidate) or []
        if moved:
            pipeline.run("rag", "-n", NAMESPACE, "explain", NAME, "--session", moved[0])
        pipeline.run("rag", "-n", NAMESPACE, "status", NAME)
    return policy.status.candidate


def roll_back(steps: Steps, pipeline: Pipeline, crowd: Crowd, bad: str) -> None:
    """Take the candidate back and say how long it took until nobody was sent to it any more."""
    with steps.step("taken back"):
        say(f'$ kubectl rag rollback {NAME} --reason "the demo wants it so"')
        ordered = time.time()
        identity = write_request(pipeline.kubectl, pipeline.policy(), Order("rollback", reason="the demo wants it so"))
        outcome = await_outcome(pipeline.policy, identity, seconds=ORDER_SECONDS)
        say(f"   {outcome.verb}: {outcome.result}; {outcome.message}")
        time.sleep(AFTERWARDS_SECONDS)
        asked = crowd.since(ordered)
        last = max((each.at for each in asked if each.release == bad), default=ordered)
        say(f"   from typing to the last question that {bad} answered: {last - ordered:.2f} s")
        say(f"   {len(asked)} questions since then: {_told(asked)}")
        if outcome.result != "done" or failed(crowd.asked):
            raise DemoError(f"{outcome.message}; questions that failed: {failed(crowd.asked)[:3]}")


def _paused(pipeline: Pipeline) -> RoutingPolicy | None:
    policy = pipeline.policy()
    return policy if policy.status.phase == "Paused" and policy.status.candidate else None


def _told(asked: Sequence[Asked]) -> str:
    by_release = Counter(each.release for each in asked if each.release)
    answered = ", ".join(f"{release} answered {count}" for release, count in sorted(by_release.items()))
    return f"{answered or 'nobody answered'}; {len(failed(asked))} failed or mixed"
