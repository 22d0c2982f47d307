"""The command line of `kubectl rag`: which commands there are and what they take.

Nothing is carried out here: `kubectl_rag` looks the chosen command up by its name. docs/kubectl.md is
made from this grammar.
"""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tidegate_api.v1alpha1.common import HEADER_NAME_PATTERN
from tidegate_cli.rag_output import TABLE_OUTPUTS, TEXT_OUTPUTS, Output

if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]

ORDERS = {
    "promote": "go on to the next step of the rollout",
    "rollback": "serve the previous release again, and reject the present one",
    "abort": "take the candidate back; the stable release serves everybody",
    "retry": "let a rejected change try again",
}


def parser() -> argparse.ArgumentParser:
    """Return the grammar. `command` in its result is the name of the command that was chosen."""
    top = argparse.ArgumentParser(prog="kubectl rag", description="Releases of retrieval pipelines, from the outside.")
    top.add_argument("--context", default="", help="kubeconfig context")
    top.add_argument("-n", "--namespace", default="", help="namespace; the context's when absent")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_views(commands)
    _add_orders(commands)
    _add_questions(commands)
    return top


def _add_views(commands: "Commands") -> None:
    status = commands.add_parser("status", help="what serves, what waits, what to do next")
    status.add_argument("name", nargs="?", default="", help="pipeline; all when absent")
    status.add_argument("--watch", action="store_true", help="again every two seconds until interrupted")
    _add_output(status, TABLE_OUTPUTS)

    releases = commands.add_parser("releases", help="the releases of a pipeline, newest first")
    releases.add_argument("name", help="pipeline")
    _add_output(releases, TABLE_OUTPUTS)

    revisions = commands.add_parser("revisions", help="the index revisions of a knowledge base, newest first")
    revisions.add_argument("name", help="knowledge base")
    _add_output(revisions, TABLE_OUTPUTS)

    difference = commands.add_parser("diff", help="what differs between two releases")
    difference.add_argument("first", help="release, such as rel-0f3a9c1d2e")
    difference.add_argument("second")
    difference.add_argument("--pipeline", default="", help="needed when the namespace has several")
    _add_output(difference, TEXT_OUTPUTS)


def _add_orders(commands: "Commands") -> None:
    for verb, what in ORDERS.items():
        order = commands.add_parser(verb, help=what)
        order.add_argument("name", nargs="?", default="", help="pipeline; the only one of the namespace when absent")
        order.add_argument("--reason", default="", help="why, for the history")
        order.add_argument("--timeout", type=float, default=30.0, help="seconds to wait for the operator's answer")
        if verb == "rollback":
            order.add_argument("--to", default="", help="release; the previous one when absent")
            order.add_argument("--wait", action="store_true", help="until every ready pod obeys it")
        _add_output(order, TEXT_OUTPUTS)


def _add_questions(commands: "Commands") -> None:
    query = commands.add_parser("query", help="ask a pipeline")
    query.add_argument("name", help="pipeline")
    query.add_argument("query", help="the question")
    _add_question_options(query, top_k=3)

    explain = commands.add_parser("explain", help="why a release answers, and each leg's ranks and scores")
    explain.add_argument("name", help="pipeline")
    explain.add_argument("query", nargs="?", default="", help="the question; nothing is asked when absent")
    _add_question_options(explain, top_k=10)
    explain.add_argument("--request-id", default="", help="query_id of a past answer that had neither user nor session")
    explain.add_argument(
        "--header", action="append", default=[], type=_header, metavar="NAME=VALUE", help="a header that rules look at"
    )
    explain.add_argument(
        "--table", type=Path, help="decide by the table in this file, an earlier one say; no cluster is asked then"
    )


def _add_question_options(question: argparse.ArgumentParser, *, top_k: int) -> None:
    question.add_argument("--key", default="", help="API key; TIDEGATE_KEY when absent")
    for option in ("tenant", "user", "session"):
        question.add_argument(f"--{option}", default="")
    question.add_argument("--release", default="", help="force one, or `stable` or `candidate`; needs scope `force`")
    question.add_argument("--top-k", type=int, default=top_k)
    _add_output(question, TEXT_OUTPUTS)


def _add_output(command: argparse.ArgumentParser, outputs: tuple[str, ...]) -> None:
    command.add_argument("-o", "--output", choices=outputs, default=Output.TEXT.value, help="form of the answer")


def _header(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not re.fullmatch(HEADER_NAME_PATTERN, name):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, for example x-beta=1")
    return name, value
