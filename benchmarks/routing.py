"""What a policy costs: a decision over 10,000 pinned tenants and 256 rules, and answers per second with it and without.

Decisions are timed in this process, as CPU time, for callers whom a rule, a pin, or nothing but the share
decides. Answers come from two sidecars before the same played runtime: one obeys the whole policy with
the candidate at 100 %, the other the same table with no pins, rules and candidate. Rounds alternate between
the two and ratios of neighbouring rounds are reported, so other work on the machine hits both alike.

    python benchmarks/routing.py [--rounds 40] [--requests 800]
"""

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sidecar import Target, free_port, request_bytes, routing_table, started, wait_until_ready, write_inputs

from tidegate_api.config import RoutingTable
from tidegate_sidecar.caller import Caller
from tidegate_sidecar.policy import Facts, compile_table, decide

DECISION_BAR_US = 20
RATIO_BAR = 0.95
DECISIONS = 20_000
BATCHES = 10
SIDECAR_SOURCE = Path(__file__).resolve().parent / "sidecar.py"
CALLERS = {
    "share": Caller(tenant="tenant-0", user="user-17"),
    "rule": Caller(tenant="t-127-7", user="user-17"),
    "pin": Caller(tenant="pinned-9999", user="user-17"),
}


def decision_microseconds(table: RoutingTable, caller: Caller) -> float:
    """Return the CPU time of one decision: the median of some batches."""
    index = compile_table(table)
    facts = Facts(request_id="q", query="how many days of leave do I have?", headers={"x-beta": "none"})
    batches = []
    for _ in range(BATCHES):
        before = time.process_time()
        for _ in range(DECISIONS):
            decide(index, caller, facts)
        batches.append((time.process_time() - before) / DECISIONS * 1e6)
    return statistics.median(batches)


def without_policy(table: RoutingTable) -> RoutingTable:
    """Return the table that a pipeline has which no policy rules."""
    return table.model_copy(update={"pins": [], "rules": [], "candidate": None, "share": 0})


@contextlib.contextmanager
def sidecars() -> Iterator[tuple[Target, Target]]:
    """Run two sidecars before one played runtime: with the policy at 100 %, and without one."""
    whole = routing_table().model_copy(update={"share": 100})
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        write_inputs(folder)
        upstream = f"{folder}/upstream.sock"
        stack.enter_context(
            started(sys.executable, str(SIDECAR_SOURCE), "--serve-upstream", upstream, "--answer-bytes", "10000")
        )
        targets = []
        for title, table in (("policy", whole), ("no_policy", without_policy(whole))):
            document, port = folder / f"{title}.json", free_port()
            document.write_text(table.model_dump_json(by_alias=True))
            options = ("--config", f"{folder}/config.json", "--table", str(document), "--runtime-socket", upstream)
            listen = ("--listen", f"127.0.0.1:{port}", "--state-listen", f"127.0.0.1:{free_port()}")
            process = stack.enter_context(started(sys.executable, "-m", "tidegate_sidecar", *options, *listen))
            targets.append(Target(title, process, port))
        for target in targets:
            wait_until_ready(target.port)
            target.connect()
        yield targets[0], targets[1]


def answers_per_second(*, rounds: int, requests: int) -> tuple[list[float], list[float], list[float]]:
    """Return the rates of each round with the policy and without, and the ratios of the CPU spent."""
    rates: dict[str, list[float]] = {"policy": [], "no_policy": []}
    request = request_bytes()
    with sidecars() as targets:
        for _ in range(rounds + 1):
            for target in targets:
                began = time.perf_counter()
                target.round(request, requests)
                rates[target.name].append(requests / (time.perf_counter() - began))
        cpu = [without / policy for policy, without in zip(targets[0].cpu_us, targets[1].cpu_us, strict=True)]
    return rates["policy"][1:], rates["no_policy"][1:], cpu[1:]  # the first round warmed up


def main() -> int:
    """Measure, print, and return 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40, help="alternations between the two sidecars")
    parser.add_argument("--requests", type=int, default=800, help="requests of one round")
    arguments = parser.parse_args()
    table = routing_table()
    decisions = {name: decision_microseconds(table, caller) for name, caller in CALLERS.items()}
    bare = decision_microseconds(without_policy(table), CALLERS["share"])
    policy, none, cpu = answers_per_second(rounds=arguments.rounds, requests=arguments.requests)
    ratio = statistics.median(with_it / without for with_it, without in zip(policy, none, strict=True))

    print(f"bars: a decision takes at most {DECISION_BAR_US} us of CPU; at least {RATIO_BAR} of the answers per second")
    for name, spent in decisions.items():
        print(f"RESULT decision_by_{name}_us={spent:.2f}")
    print(f"RESULT decision_without_policy_us={bare:.2f}")
    print(f"RESULT answers_per_second_with_policy={statistics.median(policy):.0f}")
    print(f"RESULT answers_per_second_without={statistics.median(none):.0f}")
    print(f"RESULT answers_ratio={ratio:.3f}")
    print(f"RESULT cpu_ratio={statistics.median(cpu):.3f}")
    missed = [name for name, spent in decisions.items() if spent > DECISION_BAR_US]
    missed += ["answers_ratio"] if ratio < RATIO_BAR else []
    print(f"RESULT missed={','.join(missed) or 'none'}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
