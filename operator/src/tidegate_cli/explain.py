"""What `kubectl rag explain` shows: the decision with its reasons, then each chunk's place in each leg.

Pure: an answer and a replay in, text out. A leg's rank is its place among the chunks that are shown,
which is all that an answer tells.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tidegate_cli.decision import Replay
from tidegate_cli.rag_views import NONE, table
from tidegate_sidecar.policy import RULE_FORCED, RULE_PERCENTAGE, RULE_PIN, RULE_STABLE

Answer = Mapping[str, Any]
EVERYBODY = {
    RULE_FORCED: "the header asks for it, with a key of scope `force`",
    RULE_PIN: "the tenant is pinned to it",
    RULE_STABLE: "nothing else decided, and stable serves everybody else",
}


def decision_text(replay: Replay, answer: Answer | None = None) -> str:
    """Return the decision: who answers, why, and why nothing that comes before it decided."""
    if replay.refusal:
        lines = [f"refused     {replay.refusal}", f"table       {replay.table}"]
    else:
        lines = [
            f"release     {replay.release} ({replay.arm})",
            f"because     {_because(replay)}",
            f"table       {replay.table}",
        ]
    lines.extend(f"passed over {entry.what}: {entry.why}" for entry in replay.passed_over)
    if answer is not None:
        lines.extend(_disagreement(replay, answer))
    return "\n".join(lines)


def document(replay: Replay, answer: Answer | None) -> dict[str, Any]:
    """Return everything that is known, for programs."""
    return {"decision": asdict(replay), "answer": answer}


def legs_text(answer: Answer) -> str:
    """Return a line for each chunk with its score and rank in each leg, and what was skipped."""
    results: Sequence[Mapping[str, Any]] = answer.get("results") or []
    if not results:
        lines = ["nothing found"]
    else:
        kind = str(results[0]["score_kind"])
        legs = sorted({leg for result in results for leg in result.get("scores") or {}} - {kind})
        ranks = {leg: _ranks(results, leg) for leg in legs}
        rows = [
            (
                *(str(place), _where(result), f"{result['score']:.4f}"),
                *(_leg_cell(result, leg, ranks[leg]) for leg in legs),
            )
            for place, result in enumerate(results, start=1)
        ]
        lines = [table(("#", "CHUNK", kind.upper(), *map(str.upper, legs)), rows)]
        lines.append("(n) = place in that leg among the chunks shown" if legs else _no_legs())
    lines.extend(_skipped(answer))
    timings = answer.get("timings_ms") or {}
    lines.append("took        " + ", ".join(f"{name} {spent:.1f} ms" for name, spent in timings.items()))
    return "\n".join(lines)


def _because(replay: Replay) -> str:
    who = f"{replay.unit} {replay.unit_value}".strip()
    if replay.rule == RULE_PERCENTAGE:
        return f"percentage: {who} is in bucket {replay.bucket}; the candidate takes {replay.takes}"
    if replay.rule in EVERYBODY:
        return f"{replay.rule}: {EVERYBODY[replay.rule]}"
    chance = f"; {who} is in bucket {replay.bucket}, the rule takes {replay.takes}" if replay.bucket is not None else ""
    return f"rule {replay.rule} matches{chance}"


def _disagreement(replay: Replay, answer: Answer) -> Iterator[str]:
    """Say when the pod that answered has decided otherwise: then it knew something that the replay was not told."""
    route = answer.get("route") or {}
    told = (answer.get("release"), route.get("rule"), route.get("bucket"))
    if told != (replay.release, replay.rule, replay.bucket):
        yield (
            f"answered by {told[0]} by rule {told[1]}, {route.get('unit')} in bucket {told[2]}, table {route.get('table')}: the pod saw "
            "another tenant, user or session (a key brings its own; name them), or obeyed another table"
        )


def _ranks(results: Sequence[Mapping[str, Any]], leg: str) -> dict[str, int]:
    held = [(result["scores"][leg], result["chunk_id"]) for result in results if leg in (result.get("scores") or {})]
    return {chunk: place for place, (_, chunk) in enumerate(sorted(held, key=lambda each: -each[0]), start=1)}


def _leg_cell(result: Mapping[str, Any], leg: str, ranks: Mapping[str, int]) -> str:
    score = (result.get("scores") or {}).get(leg)
    return NONE if score is None else f"{score:.4f} ({ranks[result['chunk_id']]})"


def _where(result: Mapping[str, Any]) -> str:
    location = result.get("location") or {}
    return f"{result['document_id']}:{location.get('start')}-{location.get('end')}"


def _no_legs() -> str:
    return "scores by leg are shown to keys with scope `explain` only: --key, or TIDEGATE_KEY"


def _skipped(answer: Answer) -> Iterator[str]:
    degraded = answer.get("degraded") or []
    for entry in degraded:
        yield f"skipped     node {entry['node']}: {entry['reason']} after {entry['after_ms']:.0f} ms"
    if not degraded:
        yield "skipped     nothing"
