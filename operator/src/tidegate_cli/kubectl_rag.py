"""`kubectl rag`: what serves, what waits, what to do next; and the orders that change it.

Exit codes: 0 ok, 1 refused or failed, 2 usage (argparse's own), 3 timed out, 130 interrupted. Orders are annotations on
the RoutingPolicy, or on the pipeline where it has none; spec is never written, it belongs to Git.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pydantic import ValidationError

from tidegate_api.v1alpha1.common import RequestOutcome
from tidegate_api.v1alpha1.knowledgebase import KnowledgeBase
from tidegate_api.v1alpha1.retrievalpipeline import ReleaseStatus, RetrievalPipeline
from tidegate_api.v1alpha1.routingpolicy import RoutingPolicy
from tidegate_cli.kubectl import Document, Kubectl, KubectlError
from tidegate_cli.query import QueryError, Question, ask, render
from tidegate_cli.rag_documents import releases_document, revisions_document, status_document
from tidegate_cli.rag_grammar import ORDERS, parser
from tidegate_cli.rag_output import Output, document_text, rendered
from tidegate_cli.rag_requests import Order, RequestTimeoutError, await_everywhere, await_outcome, write_request
from tidegate_cli.rag_status import pipeline_status
from tidegate_cli.rag_views import releases_table, revisions_table

if TYPE_CHECKING:
    from tidegate_cli import decision

OK, FAILED, TIMED_OUT, INTERRUPTED = 0, 1, 3, 130
WATCH_SECONDS = 2.0
SIDECAR_PORT = 8080
PIPELINES = RetrievalPipeline.definition.plural
DONE = "done"


class RefusedError(Exception):
    """What was asked for cannot be done; the text says why and what to do."""


def main(arguments: Sequence[str] | None = None, *, connect: Callable[[tuple[str, ...]], Kubectl] = Kubectl) -> int:
    """Run one command and return its exit code. `connect` makes the way to the cluster from kubectl's options."""
    options = parser().parse_args(arguments)
    chosen = [f"--context={options.context}"] if options.context else []
    chosen += [f"--namespace={options.namespace}"] if options.namespace else []
    try:
        return COMMANDS[options.command](connect(tuple(chosen)), options)
    except KeyboardInterrupt:
        return INTERRUPTED
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


def _status(kubectl: Kubectl, options: argparse.Namespace) -> int:
    output = Output(options.output)
    while True:
        items = [kubectl.get(PIPELINES, options.name)] if options.name else kubectl.find(PIPELINES)
        print(_status_text(kubectl, [RetrievalPipeline.model_validate(item) for item in items], output))
        if not options.watch:
            return OK
        time.sleep(WATCH_SECONDS)
        print(output.separator)


def _status_text(kubectl: Kubectl, pipelines: Sequence[RetrievalPipeline], output: Output) -> str:
    ruled = [(pipeline, _policy(kubectl, pipeline.metadata.name)) for pipeline in pipelines]

    def text(pipeline: RetrievalPipeline, policy: RoutingPolicy | None) -> str:
        told = pipeline_status(pipeline, policy, _knowledge_bases(kubectl, pipeline))
        has_table = output is Output.WIDE and pipeline.status.releases
        return f"{told}\n\n{releases_table(pipeline, wide=True)}" if has_table else told

    return rendered(
        output,
        [status_document(*each) for each in ruled],
        lambda: "\n\n".join(text(*each) for each in ruled) or "no RetrievalPipeline in this namespace",
    )


def _knowledge_bases(kubectl: Kubectl, pipeline: RetrievalPipeline) -> list[KnowledgeBase]:
    wanted = {reference.name for reference in pipeline.spec.knowledge_bases}
    return [KnowledgeBase.model_validate(item) for item in kubectl.find("knowledgebases") if _name(item) in wanted]


def _releases(kubectl: Kubectl, options: argparse.Namespace) -> int:
    pipeline, output = _pipeline(kubectl, options.name), Output(options.output)
    print(rendered(output, releases_document(pipeline), lambda: releases_table(pipeline, wide=output is Output.WIDE)))
    return OK


def _revisions(kubectl: Kubectl, options: argparse.Namespace) -> int:
    base, output = KnowledgeBase.model_validate(kubectl.get("knowledgebases", options.name)), Output(options.output)
    print(rendered(output, revisions_document(base), lambda: revisions_table(base, wide=output is Output.WIDE)))
    return OK


def _diff(kubectl: Kubectl, options: argparse.Namespace) -> int:
    from tidegate_cli.rag_diff import difference, difference_document, difference_text
    from tidegate_cli.rag_frozen import read_frozen

    pipeline = _pipeline(kubectl, _only_pipeline(kubectl, options.pipeline))
    first, second = _release(pipeline, options.first), _release(pipeline, options.second)
    read = partial(read_frozen, kubectl, pipeline=pipeline.metadata.name)
    found = difference(first, second, frozen=(read(release=first.name), read(release=second.name)))
    print(rendered(Output(options.output), difference_document(found), lambda: difference_text(found)))
    return OK


def _order(kubectl: Kubectl, options: argparse.Namespace) -> int:
    name = _only_pipeline(kubectl, options.name)

    def target() -> RoutingPolicy | RetrievalPipeline:
        return _policy(kubectl, name) or pipeline()

    def pipeline() -> RetrievalPipeline:
        return _pipeline(kubectl, name)

    order = Order(options.command, to=getattr(options, "to", ""), reason=options.reason)
    table = pipeline().status.routing.version
    identity = write_request(kubectl, target(), order)
    outcome = await_outcome(target, identity, seconds=options.timeout)
    waits = outcome.result == DONE and getattr(options, "wait", False)
    everywhere = partial(await_everywhere, pipeline, beyond=table, seconds=options.timeout) if waits else None
    _tell_outcome(outcome, everywhere, Output(options.output))
    return OK if outcome.result == DONE else FAILED


def _tell_outcome(outcome: RequestOutcome, everywhere: Callable[[], str] | None, output: Output) -> None:
    """Print what became of an order and, once `everywhere` returns, that every pod obeys it."""
    if output is Output.TEXT:
        print(f"{outcome.verb}: {outcome.result}; {outcome.message}")
        if everywhere is not None:
            print(everywhere())
        return
    document = outcome.to_document()
    try:
        if everywhere is not None:
            document["everywhere"] = everywhere()
    finally:  # also when time is up: the order itself has been carried out
        print(document_text(document, output))


def _query(kubectl: Kubectl, options: argparse.Namespace) -> int:
    with kubectl.forwarded(options.name, SIDECAR_PORT) as port:
        answer = ask(_question(options, port))
    print(rendered(Output(options.output), answer, lambda: render(answer)))
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

    def text() -> str:
        told = explain.decision_text(replayed, answer)
        return told if answer is None else f"{told}\n\n{explain.legs_text(answer)}"

    print(rendered(Output(options.output), explain.document(replayed, answer), text))
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
        return str(options.table.read_text(encoding="utf-8"))
    except OSError as error:
        raise RefusedError(f"--table {options.table}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise RefusedError(
            f"--table {options.table}: the table is not UTF-8 at byte {error.start}; convert it, for example with iconv"
        ) from error


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


def _pipeline(kubectl: Kubectl, name: str) -> RetrievalPipeline:
    return RetrievalPipeline.model_validate(kubectl.get(PIPELINES, name))


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
    names = [_name(item) for item in kubectl.find(PIPELINES)]
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


COMMANDS: Mapping[str, Callable[[Kubectl, argparse.Namespace], int]] = {
    "status": _status,
    "releases": _releases,
    "revisions": _revisions,
    "diff": _diff,
    **dict.fromkeys(ORDERS, _order),
    "query": _query,
    "explain": _explain,
}

if __name__ == "__main__":
    sys.exit(main())
