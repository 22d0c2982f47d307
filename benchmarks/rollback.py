"""How long a rollback takes on a cluster under load: from the write of the order to the last question routed the old way.

A pipeline with two releases goes forth and back: promoted to everybody, rolled back, tried again. An asker
in the cluster asks without a pause. For each order the clock starts before the annotation is sent and
stops at the beginning of the last question that the release answered which nobody was to be sent to any
more. Two watches say where the time goes: when the decision was stored and when the table was written.
Times are of one machine's clock, so the nodes must run on the machine that measures (the lab, or kind).

    python benchmarks/rollback.py [--rounds 12] [--askers 2]
"""

import argparse
import json
import statistics
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import kubernetes
from bench_cluster import EXAMPLES, prepared
from kubernetes.client import CoreV1Api, CustomObjectsApi
from tests.e2e.asking import start_load
from tests.e2e.cluster import Namespace
from tests.e2e.wait import wait_for

GROUP = ("tidegate.dev", "v1alpha1")
NAMESPACE = "tidegate-bench"
BAR_SECONDS = 1.0
WAIT_SECONDS = 120.0
SETTLE_SECONDS = 1.0
# What one round takes at most; the asker must outlive them all.
ROUND_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Order:
    """An order, when it was sent, and the release that nobody is to be sent to any more."""

    verb: str
    sent_at: float
    leaves: str


@dataclass
class Watched:
    """What two watches saw: (when, value) of the stable release in status, and of the table's stable release."""

    decided: list[tuple[float, str]] = field(default_factory=list)
    written: list[tuple[float, str]] = field(default_factory=list)

    def start(self, client: kubernetes.client.ApiClient) -> None:
        """Watch until the process ends."""
        custom, core = CustomObjectsApi(client), CoreV1Api(client)
        for stream in (
            lambda: self._watch(
                self.decided,
                _share_in_status,
                custom.list_namespaced_custom_object,
                *GROUP,
                NAMESPACE,
                "retrievalpipelines",
            ),
            lambda: self._watch(self.written, _share_in_table, core.list_namespaced_config_map, NAMESPACE),
        ):
            threading.Thread(target=stream, daemon=True).start()

    def _watch(
        self,
        seen: list[tuple[float, str]],
        read: Callable[[Mapping[str, Any]], str],
        listing: Callable[..., object],
        *arguments: str,
    ) -> None:
        for event in kubernetes.watch.Watch().stream(listing, *arguments):
            told = read(event["raw_object"])
            if told and (not seen or seen[-1][1] != told):
                seen.append((time.time(), told))


def _share_in_status(pipeline: Mapping[str, Any]) -> str:
    rollout = pipeline.get("status", {}).get("rollout", {})
    share = (rollout.get("step") or {}).get("share", 0)
    return f"{rollout.get('stable')}/{share:g}" if rollout else ""


def _share_in_table(config_map: Mapping[str, Any]) -> str:
    held = (config_map.get("data") or {}).get("routing.json")
    table = json.loads(held) if held else None
    return f"{table['stable']}/{table.get('share', 0):g}" if table else ""


class Bench:
    """One pipeline under a policy, and orders to it."""

    def __init__(self, namespace: Namespace, client: kubernetes.client.ApiClient) -> None:
        self._namespace = namespace
        self._objects = CustomObjectsApi(client)

    def policy(self) -> dict[str, Any]:
        """Return the policy."""
        found: dict[str, Any] = self._objects.get_namespaced_custom_object(*GROUP, NAMESPACE, "routingpolicies", "docs")
        return found

    def order(self, verb: str, *, leaves: str) -> Order:
        """Send an order and wait until it was carried out."""
        identity = f"{verb}-{uuid.uuid4().hex[:12]}"
        request = {
            "id": identity,
            "verb": verb,
            "uid": self.policy()["metadata"]["uid"],
            "issuedAt": datetime.now(UTC).isoformat(timespec="seconds"),
            "by": "bench",
        }
        patch = {"metadata": {"annotations": {"tidegate.dev/request": json.dumps(request)}}}
        order = Order(verb, time.time(), leaves)
        self._objects.patch_namespaced_custom_object(*GROUP, NAMESPACE, "routingpolicies", "docs", patch)
        outcome = self._until(
            lambda policy: next((each for each in policy["status"]["requests"] if each["id"] == identity), None),
            what=f"{verb} was answered",
        )
        assert outcome["result"] == "done", outcome
        return order

    def wait(self, *, what: str, **status: object) -> dict[str, Any]:
        """Wait until the policy says this and every pod obeys it."""
        return dict(
            self._until(
                lambda policy: (
                    policy["status"]
                    if all(policy.get("status", {}).get(name, "") == value for name, value in status.items())
                    and not policy["status"]["routing"].get("pending")
                    else None
                ),
                what=what,
            )
        )

    def _until(self, read: Callable[[dict[str, Any]], Any], *, what: str) -> Any:
        return wait_for(
            lambda: read(self.policy()),
            what=what,
            timeout_seconds=WAIT_SECONDS,
            describe=lambda: self._namespace.diagnosis("routingpolicies/docs"),
        )


def serve(namespace: Namespace) -> None:
    """Serve the quickstart under a policy."""
    namespace.kubectl("apply", "--server-side", "-f", str(EXAMPLES / "quickstart"))
    namespace.kubectl("apply", "-f", str(EXAMPLES / "rollout"))
    namespace.wait_for_condition("retrievalpipelines/docs", "Ready", timeout_seconds=WAIT_SECONDS)


def forth_and_back(bench: Bench, namespace: Namespace, *, rounds: int) -> list[Order]:
    """Return the orders that were given."""
    stable = bench.wait(what="is idle", phase="Idle")["stable"]
    patch = '{"spec": {"chunking": {"sizeTokens": 96}}}'
    namespace.kubectl("patch", "kb", "docs", "--type=merge", "-p", patch)
    orders = []
    for number in range(rounds):
        candidate = bench.wait(what="waits for a person", phase="Paused", stable=stable)["candidate"]
        time.sleep(SETTLE_SECONDS)
        orders.append(bench.order("promote", leaves=stable))
        bench.wait(what="has promoted", phase="Idle", stable=candidate)
        time.sleep(SETTLE_SECONDS)
        orders.append(bench.order("rollback", leaves=candidate))
        bench.wait(what="is back", stable=stable)
        time.sleep(SETTLE_SECONDS)
        orders.append(bench.order("retry", leaves=""))
        print(f"round {number + 1} of {rounds}", flush=True)
    return orders


def seconds_to_last(order: Order, answers: list[dict[str, Any]], *, until: float) -> float:
    """Return how long after an order the release that it leaves was still asked; 0 = not once."""
    asked = [
        each["at"] for each in answers if each.get("release") == order.leaves and order.sent_at < each["at"] < until
    ]
    return max(asked, default=order.sent_at) - order.sent_at


def delay(order: Order, seen: list[tuple[float, str]]) -> float:
    """Return how long after an order a watch told of a change."""
    return next((at - order.sent_at for at, _ in seen if at > order.sent_at), float("nan"))


def quantile(values: list[float], share: float) -> float:
    """Return a quantile, the worst value where there are too few for it."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def report(orders: list[Order], answers: list[dict[str, Any]], watched: Watched) -> int:
    """Print what was measured and return 1 when a bar was missed."""
    errors = [each for each in answers if "error" in each]
    mixed = [each for each in answers if len(each.get("revisions", ())) > 1]
    print(f"bars: p99 under {BAR_SECONDS:g} s, no failed and no mixed answer; p99 of so few orders is the slowest one")
    missed = [*(["failed"] if errors else []), *(["mixed"] if mixed else [])]
    for verb in ("rollback", "promote"):
        given = [order for order in orders if order.verb == verb]
        ends = {
            order: next((later.sent_at for later in orders if later.sent_at > order.sent_at), float("inf"))
            for order in given
        }
        last = [seconds_to_last(order, answers, until=ends[order]) for order in given]
        print(f"RESULT {verb}s={len(given)}")
        for title, values in (
            ("decided", [delay(order, watched.decided) for order in given]),
            ("table_written", [delay(order, watched.written) for order in given]),
            ("last_routed", last),
        ):
            print(f"RESULT {verb}_{title}_p50_s={statistics.median(values):.3f}")
            print(f"RESULT {verb}_{title}_p99_s={quantile(values, 0.99):.3f}")
        missed += [verb] if quantile(last, 0.99) >= BAR_SECONDS else []
    print(f"RESULT answers={len(answers)}")
    print(f"RESULT failed={len(errors)}")
    print(f"RESULT mixed={len(mixed)}")
    print(f"RESULT missed={','.join(missed) or 'none'}")
    for each in errors[:5]:
        print(each["error"], file=sys.stderr)
    return 1 if missed else 0


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12, help="promotions and rollbacks, each")
    parser.add_argument("--askers", type=int, default=2, help="questions at once")
    arguments = parser.parse_args()
    bed = prepared()
    client = kubernetes.config.new_client_from_config(str(bed.cluster.kubeconfig))
    with bed.namespace(NAMESPACE) as namespace:
        serve(namespace)
        watched = Watched()
        watched.start(client)
        load = start_load(
            namespace,
            image=bed.images["sidecar"],
            pipeline="docs",
            seconds=arguments.rounds * ROUND_SECONDS,
            workers=arguments.askers,
            pause_seconds=0.02,
        )
        orders = forth_and_back(Bench(namespace, client), namespace, rounds=arguments.rounds)
        return report(orders, load.answers(), watched)


if __name__ == "__main__":
    sys.exit(main())
