"""The ConfigMap that sidecars obey: the routing table, their settings, and what was last accepted.

One object, so that a sidecar follows one name and sees table and settings of one moment. A table's
version grows by one with every change of its content and never goes back, whatever was lost: not
below what status says was written, nor below what any pod says it obeys.
"""

import json
from collections.abc import Iterable

from tidegate_api.config import SIDECAR_CONFIG_KEY, TABLE_KEY, RoutingTable, SidecarConfig
from tidegate_api.model import Model
from tidegate_operator.core.kinds import Kind, Manifest
from tidegate_operator.core.names import Component, Label, routing_name
from tidegate_operator.core.observed import Owner
from tidegate_operator.core.render.meta import child, with_labels

ACCEPTED_KEY = "accepted.json"
POLICY_KEY = "policy.json"


def numbered(
    table: RoutingTable, live: RoutingTable | None, *, live_hash: str, known_versions: Iterable[int]
) -> RoutingTable:
    """Return `table` under the live version when it says the same, else under the next one."""
    if live is not None and live_hash == table.table_hash():
        return table.model_copy(update={"version": live.version})
    highest = max([*known_versions, live.version if live is not None else 0])
    return table.model_copy(update={"version": highest + 1})


def routing_config_map(
    owner: Owner,
    *,
    table: RoutingTable | None,
    sidecar: SidecarConfig,
    accepted: Model,
    policy: Model | None,
) -> Manifest:
    """Return the ConfigMap of a pipeline's sidecars; without a table they know that there is none yet."""
    data = {SIDECAR_CONFIG_KEY: _text(sidecar.to_document()), ACCEPTED_KEY: _as_written(accepted)}
    if table is not None:
        data[TABLE_KEY] = _text(table.to_document())
    if policy is not None:
        data[POLICY_KEY] = _as_written(policy)
    manifest = child(Kind.CONFIG_MAP, routing_name(owner.ref.name), owner, Component.ROUTING, data=data)
    return with_labels(manifest, {Label.WATCH.value: Component.ROUTING.value})


def _as_written(spec: Model) -> str:
    return _text(spec.model_dump(by_alias=True, exclude_unset=True, mode="json"))


def _text(content: object) -> str:
    return json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
