"""Settings of nodes: what is executed and hashed has every default filled in."""

import pytest
from pydantic import ValidationError

from tidegate_api.config import NodeConfig
from tidegate_api.nodes import HYBRID_NODES, HYBRID_OUTPUT, REQUIRES, SETTINGS, complete_settings


def test_defaults_are_filled_in() -> None:
    assert complete_settings(NodeConfig(name="lexical", type="bm25")) == {"topK": 50}
    assert complete_settings(NodeConfig(name="fused", type="fuse", inputs=["a", "b"])) == {
        "method": "weighted",
        "weights": {"a": 1.0, "b": 1.0},
        "completion": True,
        "lexicalGuard": True,
        "k": 60,
    }


def test_a_weight_that_is_left_out_counts_one() -> None:
    node = NodeConfig(name="fused", type="fuse", inputs=["a", "b"], settings={"weights": {"a": 0.5}})
    assert complete_settings(node)["weights"] == {"a": 0.5, "b": 1.0}


def test_ranks_need_no_weights() -> None:
    node = NodeConfig(name="fused", type="fuse", inputs=["a", "b"], settings={"method": "rrf"})
    assert complete_settings(node)["weights"] == {}


@pytest.mark.parametrize("settings", [{"topk": 5}, {"top_k": 5}, {"topK": 0}, {"topK": 1001}])
def test_unknown_keys_and_values_out_of_bounds_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        complete_settings(NodeConfig(name="lexical", type="bm25", settings=settings))


def test_the_preset_is_made_of_known_nodes() -> None:
    assert {node.type for node in HYBRID_NODES} <= SETTINGS.keys()
    assert HYBRID_OUTPUT in {node.name for node in HYBRID_NODES}
    assert REQUIRES.keys() <= SETTINGS.keys()
