"""Node types of a pipeline graph: their settings, what they need from an index, and the preset.

One table serves the admission check, the pipeline revision (settings are hashed with defaults
filled in, so that writing a default out is no change) and the runtime that executes the graph.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from tidegate_api.config import NodeConfig


class Settings(BaseModel):
    """Base of every node's `with`: camelCase outside, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class LegSettings(Settings):
    """A leg reads candidates from an index."""

    top_k: Annotated[int, Field(alias="topK", ge=1, le=1000)] = 50


class FuseSettings(Settings):
    """How candidate lists become one. `weights` are by input name; missing ones count 1 for all.

    `completion` scores every member of the union in every leg before normalising; `lexicalGuard`
    lowers the weight of bm25 to .05 when its best hits cover little of the query.
    """

    method: Literal["weighted", "rrf"] = "weighted"
    weights: Annotated[dict[str, Annotated[float, Field(ge=0, le=1)]], Field(max_length=16)] = Field(
        default_factory=dict
    )
    completion: bool = True
    lexical_guard: Annotated[bool, Field(alias="lexicalGuard")] = True
    k: Annotated[int, Field(ge=1, le=1000)] = 60


SETTINGS: dict[str, type[Settings]] = {"bm25": LegSettings, "dense": LegSettings, "fuse": FuseSettings}
# What a node needs a revision to provide (RevisionState.provides).
REQUIRES: dict[str, str] = {"bm25": "bm25", "dense": "dense"}

# The preset `hybrid`: what a pipeline without nodes means.
HYBRID_NODES = (
    NodeConfig(name="lexical", type="bm25", settings={"topK": 50}),
    NodeConfig(name="dense", type="dense", settings={"topK": 50}),
    NodeConfig(
        name="fused",
        type="fuse",
        inputs=["lexical", "dense"],
        settings={"method": "weighted", "weights": {"lexical": 0.4, "dense": 0.6}, "completion": True},
    ),
)
HYBRID_OUTPUT = "fused"


def complete_settings(node: NodeConfig) -> dict[str, object]:
    """Return the settings of `node` with every default filled in, as they are hashed and executed.

    Raises:
        KeyError: the type is unknown.
        ValidationError: a setting is unknown or out of bounds.
    """
    settings = SETTINGS[node.type].model_validate(node.settings, by_alias=True, by_name=False)
    complete = settings.model_dump(by_alias=True, mode="json")
    if isinstance(settings, FuseSettings) and settings.method == "weighted":
        complete["weights"] = {name: settings.weights.get(name, 1.0) for name in node.inputs}
    return complete
