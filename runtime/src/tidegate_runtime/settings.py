"""Settings of a runtime process: command-line flags, nothing else, so that a pod shows what it runs with."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tidegate_api.arguments import positive_number
from tidegate_runtime.pulling import Origin


@dataclass(frozen=True, slots=True)
class Settings:
    """Where to listen, where revisions are, and how many threads may be used."""

    socket: Path
    revisions_root: Path
    threads: int
    search_threads: int
    drain_seconds: float
    pull: dict[str, Origin]


def parse(arguments: Sequence[str] | None = None) -> Settings:
    """Read the flags; a wrong one ends the process with status 2 and a message."""
    parser = argparse.ArgumentParser(
        prog="python -m tidegate_runtime", description="Answers searches on a Unix socket."
    )
    parser.add_argument("--socket", type=Path, required=True, help="path of the socket to listen on")
    parser.add_argument(
        "--revisions-root", type=Path, required=True, help="folder that holds <knowledge base>/<revision>"
    )
    parser.add_argument(
        "--threads", type=positive_number, default=1, help="threads that one query may use inside the encoder"
    )
    parser.add_argument("--search-threads", type=positive_number, default=1, help="searches that may run at once")
    parser.add_argument(
        "--drain-seconds", type=float, default=20.0, help="how long running requests may take on SIGTERM"
    )
    parser.add_argument(
        "--pull",
        type=_origin,
        action="append",
        default=[],
        metavar="KNOWLEDGE_BASE=URL,TOKEN_FILE",
        help="copy this knowledge base's revisions from its indexer; absent = they are below --revisions-root already",
    )
    options = vars(parser.parse_args(arguments))
    return Settings(**{**options, "pull": dict(options["pull"])})


def _origin(text: str) -> tuple[str, Origin]:
    knowledge_base, _, rest = text.partition("=")
    url, _, token_file = rest.partition(",")
    if not knowledge_base or not url.startswith(("http://", "https://")) or not token_file:
        raise argparse.ArgumentTypeError(f"{text!r} is not KNOWLEDGE_BASE=URL,TOKEN_FILE")
    return knowledge_base, Origin(url.rstrip("/"), Path(token_file))
