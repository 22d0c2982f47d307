"""`kubectl rag`: what serves, what waits, what to do next; and the orders that change it.

Exit codes: 0 ok, 1 refused or failed, 2 usage, 3 timed out. Orders are annotations on the
RoutingPolicy, or on the pipeline where it has none; spec is never written, it belongs to Git.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from tidegate_api.v1alpha1.knowledgebase import KnowledgeBase
from tidegate_api.v1alpha1.retrievalpipeline import ReleaseStatus, RetrievalPipeline
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicy
from tidegate_cli.kubectl import Document, Kubectl, KubectlError
from tidegate_cli.query import QueryError, Question, ask, render
from tidegate_cli.rag_requests import Order, RequestTimeoutError, await_everywhere, await_outcome, write_request
from tidegate_cli.rag_status import pipeline_status
from tidegate_cli.rag_views import release_difference, releases_table, revisions_table

if TYPE_CHECKING:
    from tidegate_cli import decision

OK, FAILED, USAGE, TIMED_OUT = 0, 1, 2, 3
WATCH_SECONDS = 2.0
SIDECAR_PORT = 8080
ORDERS = {
    "promote": "go on to the next step of the rollout",
    "rollback": "serve the previous release again, and reject the present one",
    "abort": "take the candidate back; the stable release serves everybody",
    "retry": "let a rejected change try again",
}


class RefusedError(Exception):
    """What was asked for cannot be done; the text says why and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = parser().parse_args(arguments)
    chosen = [f"--context={options.context}"] if options.context else []
    chosen += [f"--namespace={options.namespace}"] if options.namespace else []
    try:
        return int(options.run(Kubectl(tuple(chosen)), options))
    except RequestTimeoutError as error:
        print(error, file=sys.stderr)
        return TIMED_OUT
    except (KubectlError, QueryError, RefusedError) as error:
        print(error, file=sys.stderr)
        return FAILED
    except ValidationError as error:
        print(
            f"the object is not what this version expects: {error.errors()[0]['msg']}; upgrade kubectl-rag",
            file=sys.stderr,
        )
        return FAILED


def parser() -> argparse.ArgumentParser:
    """Return the grammar of the command line; docs/kubectl.md is made from it."""
    top = argparse.ArgumentParser(prog="kubectl rag", description="Releases of retrieval pipelines, from the outside.")
    top.add_argument("--context", default="", help="kubeconfig context")
    top.add_argument("-n", "--namespace", default="", help="namespace; the context's when absent")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    status = commands.add_parser("status", help="what serves, what waits, what to do next")
    status.add_argument("name", nargs="?", default="", help="pipeline; all when absent")
    status.add_argument("--watch", action="store_true", help="again every two seconds until interrupted")
    status.add_argument("-o", "--output", choices=("text", "json"), default="text")
    status.set_defaults(run=_status)

    releases = commands.add_parser("releases", help="the releases of a pipeline, newest first")
    releases.add_argument("name", help="pipeline")
    releases.set_defaults(run=_releases)

    revisions = commands.add_parser("revisions", help="the index revisions of a knowledge base, newest first")
    revisions.add_argument("name", help="knowledge base")
    revisions.set_defaults(run=_revisions)

    difference = commands.add_parser("diff", help="what differs between two releases")
    difference.add_argument("first", help="release, such as rel-0f3a9c1d2e")
    difference.add_argument("second")
    difference.add_argument("--pipeline", default="", help="needed when the namespace has several")
    difference.set_defaults(run=_diff)

    for verb, what in ORDERS.items():
        order = commands.add_parser(verb, help=what)
        order.add_argument("name", nargs="?", default="", help="pipeline; the only one of the namespace when absent")
        order.add_argument("--reason", default="", help="why, for the history")
        order.add_argument("--timeout", type=float, default=30.0, help="seconds to wait for the operator's answer")
        if verb == "rollback":
            order.add_argument("--to", default="", help="release; the previous one when absent")
            order.add_argument("--wait", action="store_true", help="until every ready pod obeys it")
        order.set_defaults(run=_order)

    query = commands.add_parser("query", help="ask a pipeline")
    query.add_argument("name", help="pipeline")
    query.add_argument("query", help="the question")
    _add_question_options(query, top_k=3)
    query.set_defaults(run=_query)

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
    explain.set_defaults(run=_explain)
    return top


def _add_question_options(question: argparse.ArgumentParser, *, top_k: int) -> None:
    question.add_argument("--key", default="", help="API key; TIDEGATE_KEY when absent")
    for option in ("tenant", "user", "session"):
        question.add_argument(f"--{option}", default="")
    question.add_argument("--release", default="", help="force one, or `stable` or `candidate`; needs scope `force`")
    question.add_argument("--top-k", type=int, default=top_k)
    question.add_argument("-o", "--output", choices=("text", "json"), default="text")


def _header(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE, for example x-beta=1")
    return name, value


def _status(kubectl: Kubectl, options: argparse.Namespace) -> int:
    while True:
        names = [options.name] if options.name else [_name(item) for item in kubectl.find("retrievalpipelines")]
        if options.output == "json":
            print(json.dumps([kubectl.get("retrievalpipelines", name).get("status") for name in names], indent=2))
        else:
            print(
                "\n\n".join(_pipeline_status(kubectl, name) for name in names)
                or "no RetrievalPipeline in this namespace"
            )
        if not options.watch:
            return OK
        time.sleep(WATCH_SECONDS)
        print()


def _pipeline_status(kubectl: Kubectl, name: str) -> str:
    pipeline = RetrievalPipeline.model_validate(kubectl.get("retrievalpipelines", name))
    wanted = {reference.name for reference in pipeline.spec.knowledge_bases}
    bases = [KnowledgeBase.model_validate(item) for item in kubectl.find("knowledgebases") if _name(item) in wanted]
    return pipeline_status(pipeline, _policy(kubectl, name), bases)


def _releases(kubectl: Kubectl, options: argparse.Namespace) -> int:
    print(releases_table(RetrievalPipeline.model_validate(kubectl.get("retrievalpipelines", options.name))))
    return OK


def _revisions(kubectl: Kubectl, options: argparse.Namespace) -> int:
    print(revisions_table(KnowledgeBase.model_validate(kubectl.get("knowledgebases", options.name))))
    return OK


def _diff(kubectl: Kubectl, options: argparse.Namespace) -> int:
    pipeline = RetrievalPipeline.model_validate(
        kubectl.get("retrievalpipelines", _only_pipeline(kubectl, options.pipeline))
    )
    print(release_difference(_release(pipeline, options.first), _release(pipeline, options.second)))
    return OK


def _order(kubectl: Kubectl, options: argparse.Namespace) -> int:
    name = _only_pipeline(kubectl, options.name)

    def target() -> RoutingPolicy | RetrievalPipeline:
        return _policy(kubectl, name) or pipeline()

    def pipeline() -> RetrievalPipeline:
        return RetrievalPipeline.model_validate(kubectl.get("retrievalpipelines", name))

    order = Order(options.command, to=getattr(options, "to", ""), reason=options.reason)
    table = pipeline().status.routing.version
    identity = write_request(kubectl, target(), order)
    outcome = await_outcome(target, identity, seconds=options.timeout)
    print(f"{outcome.verb}: {outcome.result}; {outcome.message}")
    if outcome.result != "done":
        return FAILED
    if getattr(options, "wait", False):
        print(await_everywhere(pipeline, beyond=table, seconds=options.timeout))
    return OK


def _query(kubectl: Kubectl, options: argparse.Namespace) -> int:
    with kubectl.forwarded(options.name, SIDECAR_PORT) as port:
        answer = ask(_question(options, port))
    print(json.dumps(answer, indent=2, ensure_ascii=False) if options.output == "json" else render(answer))
    return OK


def _explain(kubectl: Kubectl, options: argparse.Namespace) -> int:
    from tidegate_cli import decision, explain

    answer = None
    if options.query and options.table is None:
        with kubectl.forwarded(options.name, SIDECAR_PORT) as port:
            answer = _ask_for_scores(_question(options, port))
    try:
        table = decision.read_table(_table_text(kubectl, options))
        if table.pipeline != options.name:
            raise RefusedError(f"the table is of pipeline {table.pipeline}, not of {options.name}")
        replayed = decision.replay(table, _request(options, answer))
    except decision.TableError as error:
        raise RefusedError(str(error)) from error
    if options.output == "json":
        print(json.dumps(explain.document(replayed, answer), indent=2, ensure_ascii=False))
    else:
        print(explain.decision_text(replayed, answer))
        if answer is not None:
            print(f"\n{explain.legs_text(answer)}")
    return FAILED if replayed.refusal else OK


def _question(options: argparse.Namespace, port: int) -> Question:
    return Question(
        options.query,
        url=f"http://127.0.0.1:{port}",
        top_k=options.top_k,
        key=options.key or os.environ.get("TIDEGATE_KEY", ""),
        tenant=options.tenant,
        user=options.user,
        session=options.session,
        release=options.release,
        headers=tuple(getattr(options, "header", ())),
    )


def _ask_for_scores(question: Question) -> Document:
    """Ask with `explain`; a key that lacks the scope still gets an answer, without the legs' scores."""
    try:
        return ask(replace(question, explain=True))
    except QueryError as error:
        if error.code != "forbidden":
            raise
        return ask(question)


def _table_text(kubectl: Kubectl, options: argparse.Namespace) -> str:
    if options.table is None:
        return json.dumps(kubectl.get("configmaps", f"{options.name}-routing", group=""))
    try:
        return str(options.table.read_text())
    except OSError as error:
        raise RefusedError(f"--table {options.table}: {error.strerror}") from error


def _request(options: argparse.Namespace, answer: Document | None) -> "decision.Request":
    from tidegate_cli import decision

    return decision.Request(
        query=options.query,
        tenant=options.tenant,
        user=options.user,
        session=options.session,
        release=options.release,
        request_id=options.request_id or (str(answer["query_id"]) if answer is not None else ""),
        headers=dict(options.header),
    )


def _policy(kubectl: Kubectl, pipeline: str) -> RoutingPolicy | None:
    """Return the policy that rules the pipeline: the oldest, ties by name."""
    policies = [RoutingPolicy.model_validate(item) for item in kubectl.find("routingpolicies")]
    ruling = [policy for policy in policies if policy.spec.pipeline.name == pipeline]
    return min(
        ruling, key=lambda policy: (policy.metadata.creation_timestamp or "", policy.metadata.name), default=None
    )


def _only_pipeline(kubectl: Kubectl, name: str) -> str:
    if name:
        return name
    names = [_name(item) for item in kubectl.find("retrievalpipelines")]
    if len(names) != 1:
        raise RefusedError(f"name a pipeline: this namespace has {', '.join(names) or 'none'}")
    return names[0]


def _release(pipeline: RetrievalPipeline, name: str) -> ReleaseStatus:
    found = next((release for release in pipeline.status.releases if release.name == name), None)
    if found is None:
        known = ", ".join(release.name for release in pipeline.status.releases) or "none"
        raise RefusedError(f"{pipeline.metadata.name} has no release {name!r}; it has {known}")
    return found


def _name(item: Document) -> str:
    metadata = item.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


if __name__ == "__main__":
    sys.exit(main())
