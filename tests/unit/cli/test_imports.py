"""What a command loads: an installation with the extra `local` or `cli` alone has no more than that."""

import subprocess
import sys

import pytest

OPERATOR = ("kopf", "kubernetes", "pydantic_settings")
PLANES = ("aiohttp", "httptools", "numpy", "onnxruntime", "orjson", "prometheus_client", "uvloop")


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        # Its children too: all of them are of one installation.
        ("tidegate_cli.local, tidegate_runtime.main, tidegate_runtime.indexer.main, tidegate_sidecar.main", OPERATOR),
        ("tidegate_cli.kubectl_rag, tidegate_cli.explain, tidegate_cli.rag_diff", OPERATOR + PLANES),
        ("tidegate_cli.tidegate, tidegate_cli.query", (*OPERATOR, *PLANES, "cel", "rich", "yaml")),
    ],
    ids=["local", "kubectl rag", "query"],
)
def test_a_command_loads_nothing_that_its_extra_does_not_bring(modules: str, unwanted: tuple[str, ...]) -> None:
    script = f"import sys, {modules}; print([name for name in {unwanted} if name in sys.modules])"

    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)

    assert ended.stdout.strip() == "[]"
