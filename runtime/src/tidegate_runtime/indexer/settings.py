"""The command line of an indexer: what a process is told once. What may change stands in its config."""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tidegate_api.arguments import Address, address, namespaced_name, positive_number


@dataclass(frozen=True, slots=True)
class IndexerSettings:
    """Everything an indexer is started with."""

    config: Path
    root: Path
    listen: Address
    threads: int
    device: Literal["auto", "cpu", "cuda"]
    token_file: Path | None
    watch: bool
    config_map: tuple[str, str] | None


def parse_settings(arguments: Sequence[str]) -> IndexerSettings:
    """Parse a command line; exits with code 2 and a message when it is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tidegate_runtime.indexer",
        description="Builds the index revisions of one knowledge base and keeps them in step with its sources.",
    )
    parser.add_argument("--config", type=Path, required=True, help="JSON file that says what should exist; followed")
    parser.add_argument("--root", type=Path, required=True, help="folder of the revisions; one indexer per folder")
    parser.add_argument("--listen", type=address, required=True, metavar="HOST:PORT", help="where to serve the state")
    parser.add_argument(
        "--threads", type=positive_number, default=len(os.sched_getaffinity(0)), help="threads of the encoder"
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where the encoder runs")
    parser.add_argument("--token-file", type=Path, help="serve segments to bearers of the token in this file")
    parser.add_argument("--watch", action="store_true", help="look at the sources every second")
    parser.add_argument(
        "--configmap",
        type=namespaced_name,
        metavar="NAMESPACE/NAME",
        help="in a cluster: follow this ConfigMap and hold the Lease of its name; --config is its mounted copy",
    )
    parsed = parser.parse_args(arguments)
    return IndexerSettings(
        config=parsed.config,
        root=parsed.root,
        listen=parsed.listen,
        threads=parsed.threads,
        device=parsed.device,
        token_file=parsed.token_file,
        watch=parsed.watch,
        config_map=parsed.configmap,
    )
