"""`make demo`: a release on a cluster, from nothing to a rollback, with the time each step took.

It uses only what a user has: `make deploy`'s scripts, the manifests in examples/, kubectl and its
plugin. Its namespace is its own and is made anew, so it can be run again; the cluster is left running.
Where no cluster can be had it says why and tells the story of `make demo-local` instead.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tidegate_cli import demo
from tidegate_cli.demo_crowd import Crowd
from tidegate_cli.demo_rollout import NAMESPACE, Pipeline, change_and_move, roll_back
from tidegate_cli.demo_steps import DemoError, Steps, run_shown, say
from tidegate_cli.kubectl import Kubectl, KubectlError
from tidegate_cli.query import QueryError, Question, ask, render

E2E = demo.ROOT / "tests" / "e2e"
OPERATOR_NAMESPACE = "tidegate-system"
CROWD = 40


def main() -> int:
    """Tell the story once; 1 when a step failed, with the diagnosis."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--setup-seconds", type=float, default=0.0, help="how long making .venv took")
    options = parser.parse_args()
    refusal = _why_no_cluster()
    if refusal:
        say(f"no cluster can be had here: {refusal}")
        say("so this is the story without one, `make demo-local`: no operator, no rollout, no rollback\n")
        return demo.main()
    steps, environment = Steps(), dict(os.environ)
    if options.setup_seconds:
        steps.add("make .venv", options.setup_seconds)
    try:
        with steps.step(f"a cluster ({_said('provider')})"):
            run_shown("make cluster-up", [E2E / "cluster.sh", "up"], environment=environment)
            environment |= _cluster_environment()
        with steps.step("images built and loaded, the chart installed"):
            run_shown("make deploy", [E2E / "deploy.sh"], environment=environment)
        _story(steps, environment)
    except (DemoError, KubectlError, QueryError) as error:
        say(f"\nthe demo stopped here: {error}\n\n{_diagnosis(environment)}")
        return 1
    say(f"\n{steps.times()}\n\n{_what_now(environment)}")
    return 0


def _story(steps: Steps, environment: Mapping[str, str]) -> None:
    pipeline = Pipeline(Kubectl((f"--namespace={NAMESPACE}",), environment), environment)
    with steps.step(f"a fresh namespace, {NAMESPACE}"):
        pipeline.run("delete", "namespace", NAMESPACE, "--ignore-not-found")
        pipeline.run("create", "namespace", NAMESPACE)
    with steps.step("the quickstart: documents, a knowledge base, a pipeline"):
        pipeline.run("apply", "--server-side", "-f", "examples/quickstart", "-n", NAMESPACE)
        pipeline.wait_until_ready()
    with pipeline.kubectl.forwarded("docs", 8080) as port:
        url = f"http://127.0.0.1:{port}"
        with steps.step(f"{len(demo.QUESTIONS)} questions, answered with their sources"):
            for question in demo.QUESTIONS:
                say(f'$ kubectl rag query docs "{question}"\n{render(ask(Question(question, url=url, top_k=1)))}\n')
        with Crowd(Question(demo.QUESTIONS[0], url=url, top_k=1), users=CROWD) as crowd:
            moved = change_and_move(steps, pipeline, crowd)
            roll_back(steps, pipeline, crowd, moved)


def _why_no_cluster() -> str:
    """Return why no cluster can be had, empty when one can."""
    checked = subprocess.run([E2E / "cluster.sh", "check"], capture_output=True, text=True, check=False)
    told = (checked.stderr or checked.stdout).strip().splitlines()
    return (told[-1] if told else "tests/e2e/cluster.sh check failed") if checked.returncode else ""


def _said(*arguments: str) -> str:
    done = subprocess.run([E2E / "cluster.sh", *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _cluster_environment() -> dict[str, str]:
    """Return KUBECONFIG, and a PATH on which kubectl and its plugin are."""
    show = 'eval "$("$0" env)"; printf "%s\\n%s" "$KUBECONFIG" "$PATH"'
    done = subprocess.run(["bash", "-c", show, E2E / "cluster.sh"], capture_output=True, text=True, check=True)
    kubeconfig, path = done.stdout.split("\n")
    if shutil.which("kubectl", path=path) is None:
        raise DemoError("kubectl is not on PATH; install it")
    return {"KUBECONFIG": str(E2E / kubeconfig), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{path}"}


def _diagnosis(environment: Mapping[str, str]) -> str:
    """Return what somebody would look at next."""
    looks = (
        ("kubectl", "rag", "-n", NAMESPACE, "status"),
        ("kubectl", "-n", NAMESPACE, "get", "kb,rp,rpol,pods"),
        ("kubectl", "-n", NAMESPACE, "get", "events", "--sort-by=.lastTimestamp"),
        ("kubectl", "-n", OPERATOR_NAMESPACE, "logs", "deployment/tidegate-operator", "--tail=20"),
    )
    parts = []
    for command in looks:
        if shutil.which("kubectl", path=environment["PATH"]) is None:
            return "there is no kubectl yet to ask the cluster with"
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        parts.append(f"$ {' '.join(command)}\n{(done.stdout + done.stderr).strip()}")
    return "\n\n".join(parts)


def _what_now(environment: Mapping[str, str]) -> str:
    return (
        f"The cluster is left running with all of this in it:\n"
        f"  export KUBECONFIG={environment['KUBECONFIG']}\n"
        f'  export PATH="{Path(sys.executable).parent}:$PATH"\n'
        f"  kubectl -n {NAMESPACE} get kb,rp,rpol\n"
        f"  kubectl rag -n {NAMESPACE} status docs\n"
        f"`make cluster-down` ends it."
    )


if __name__ == "__main__":
    sys.exit(main())
