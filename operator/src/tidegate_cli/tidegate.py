"""`tidegate`: serve YAML without a cluster, ask a pipeline, print the CRDs.

Exit codes: 0 ok, 1 refused or failed, 2 usage, 3 timed out, 130 interrupted. Planes are imported only by the
command that needs them, so that `tidegate --help` is quick and needs no extra.
"""

import argparse
import json
import sys
from pathlib import Path

from tidegate_api.arguments import Address, address

OK, FAILED, INTERRUPTED = 0, 1, 130


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except ModuleNotFoundError as error:
        print(f"tidegate {options.command} needs {error.name}: pip install 'tidegate[local]'", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tidegate", description="Releases for retrieval: declared, measured, taken back in one step."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    local = commands.add_parser(
        "local", help="serve KnowledgeBases and RetrievalPipelines from YAML files, without a cluster"
    )
    local.add_argument("-f", "--filename", dest="files", type=Path, action="append", required=True, metavar="FILE|DIR")
    local.add_argument(
        "--volume",
        action="append",
        default=[],
        type=_volume,
        metavar="CLAIM=PATH",
        help="folder that stands for a claim",
    )
    local.add_argument("--listen", default="127.0.0.1:8080", type=_shown_address, metavar="HOST:PORT")
    local.add_argument(
        "--state", type=Path, default=Path(".tidegate"), metavar="DIR", help="indexes and decisions, kept between runs"
    )
    local.set_defaults(run=_local)

    query = commands.add_parser("query", help="ask a running pipeline")
    query.add_argument("query", help="the question")
    query.add_argument("--url", default="http://127.0.0.1:8080")
    query.add_argument("--top-k", type=int, default=3)
    query.add_argument("--key", default="", help="API key")
    query.add_argument("--tenant", default="")
    query.add_argument("--user", default="")
    query.add_argument("--session", default="")
    query.add_argument("--release", default="", help="force a release; the key needs scope force")
    query.add_argument("--explain", action="store_true", help="show the legs' scores; the key needs scope explain")
    query.add_argument("-o", "--output", choices=("text", "json"), default="text")
    query.set_defaults(run=_query)

    crds = commands.add_parser("crds", help="print the CustomResourceDefinitions")
    crds.set_defaults(run=_crds)
    return parser


def _local(options: argparse.Namespace) -> int:
    import asyncio

    from tidegate_cli.local import LocalOptions, run_local

    listen: Address = options.listen
    return asyncio.run(
        run_local(
            LocalOptions(
                files=tuple(options.files),
                claims=dict(options.volume),
                host=listen.host,
                port=listen.port,
                state=options.state,
            )
        )
    )


def _query(options: argparse.Namespace) -> int:
    from tidegate_cli.query import QueryError, Question, ask, render

    names = ("query", "url", "top_k", "key", "tenant", "user", "session", "release", "explain")
    try:
        answer = ask(Question(**{name: getattr(options, name) for name in names}))
    except QueryError as error:
        print(error, file=sys.stderr)
        return FAILED
    print(json.dumps(answer, indent=2, ensure_ascii=False) if options.output == "json" else render(answer))
    return OK


def _crds(_: argparse.Namespace) -> int:
    from tidegate_api.crdgen import crd_files

    print("---\n".join(crd_files().values()), end="")
    return OK


def _volume(text: str) -> tuple[str, Path]:
    claim, separator, path = text.partition("=")
    if not claim or not separator or not path:
        raise argparse.ArgumentTypeError(f"{text!r} is not CLAIM=PATH, for example docs=./documents")
    return claim, Path(path)


def _shown_address(text: str) -> Address:
    """Parse an address that is shown as a URL and counted up from: both halves must be said."""
    found = address(text)
    if not found.host or not found.port:
        raise argparse.ArgumentTypeError(f"{text!r} leaves out the host or the port, say both, such as 127.0.0.1:8080")
    return found


if __name__ == "__main__":
    sys.exit(main())
