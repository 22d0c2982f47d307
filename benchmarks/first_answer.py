"""From `kubectl apply` of the quickstart to its first answer, and from an edit of a document to the new answer.

Images are on the node. An application asks from inside the cluster all the time, so the first answer is
the first one that anybody could have had: index built, pods ready, Service known. The limit beside it is
a Deployment with one pod of the sidecar's image that only has to listen: two of those in a row, because the
index has to be built in one pod before another one can serve it.

    python benchmarks/first_answer.py [--rounds 5]
"""

import argparse
import statistics
import sys
import time
from typing import Any

import yaml
from bench_cluster import EXAMPLES, Bed, prepared
from tests.e2e.asking import ask, start_load
from tests.e2e.cluster import Namespace
from tests.e2e.wait import wait_for

NAMESPACE = "tidegate-bench"
WAIT_SECONDS = 180.0
EDIT = "The tide table of this harbour lists high water at 14:05 and low water at 20:17."
QUESTION = "When is high water in this harbour?"
LISTEN = "import http.server; http.server.HTTPServer(('', 8080), http.server.BaseHTTPRequestHandler).serve_forever()"


def bare_deployment(image: str) -> dict[str, Any]:
    """Return a Deployment of one pod that only listens."""
    labels = {"app": "bare"}
    container = {
        "name": "main",
        "image": image,
        "command": ["python", "-c", LISTEN],
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "bare"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
            },
        },
    }


def bare_seconds(namespace: Namespace, image: str) -> float:
    """Return how long a pod takes that has nothing to do."""
    began = time.time()
    namespace.apply(bare_deployment(image))
    namespace.wait_for_condition("deployments/bare", "Available", timeout_seconds=WAIT_SECONDS)
    taken = time.time() - began
    namespace.delete("deployments/bare")
    return taken


def first_answer_seconds(namespace: Namespace, image: str) -> float:
    """Apply the quickstart and return when the application in the cluster had its first answer."""
    load = start_load(namespace, image=image, pipeline="docs", seconds=int(WAIT_SECONDS), pause_seconds=0.02)
    began = time.time()
    namespace.kubectl("apply", "--server-side", "-f", str(EXAMPLES / "quickstart"))
    first = wait_for(
        lambda: next((each for each in load.answers() if "release" in each), None),
        what="an answer came",
        timeout_seconds=WAIT_SECONDS,
        describe=lambda: namespace.diagnosis("retrievalpipelines/docs"),
    )
    namespace.delete(f"pods/{load.pod}")
    return float(first["at"]) - began


def edit_seconds(namespace: Namespace) -> float:
    """Put a sentence into a document and return how long the answer took that holds it."""
    documents = yaml.safe_load((EXAMPLES / "quickstart" / "documents.yaml").read_text())
    name = next(name for name, text in documents["data"].items() if text.startswith("# Tidegate"))
    documents["data"][name] += f"\n\n{EDIT}\n"
    with namespace.port_forward("service/docs", 8080) as url:
        began = time.time()
        namespace.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=yaml.safe_dump(documents))
        wait_for(
            lambda: EDIT in ask(url, QUESTION).text,
            what="the edit is in the answers",
            timeout_seconds=WAIT_SECONDS,
            describe=lambda: namespace.diagnosis("knowledgebases/docs"),
        )
        return time.time() - began


def measure(bed: Bed, *, rounds: int) -> None:
    """Measure and print."""
    bare, first, edited = [], [], []
    for number in range(rounds):
        with bed.namespace(f"{NAMESPACE}-{number}") as namespace:
            bare.append(bare_seconds(namespace, bed.images["sidecar"]))
            first.append(first_answer_seconds(namespace, bed.images["sidecar"]))
            edited.append(edit_seconds(namespace))
        print(f"round {number + 1} of {rounds}: {bare[-1]:.1f} {first[-1]:.1f} {edited[-1]:.1f} s", flush=True)
    for title, values in (("bare_pod", bare), ("first_answer", first), ("edit_to_answer", edited)):
        print(f"RESULT {title}_s={statistics.median(values):.2f}")
    ratio = statistics.median(answer / (2 * pod) for answer, pod in zip(first, bare, strict=True))
    print(f"RESULT first_answer_to_two_bare_pods={ratio:.2f}")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="fresh namespaces")
    measure(prepared(), rounds=parser.parse_args().rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
