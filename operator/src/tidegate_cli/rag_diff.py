"""What differs between two releases: everything that answers depend on, leaf by leaf, each by its path.

Pure. The status tells indexes and versions; nodes, their settings and the images are in what the
releases froze, and where that cannot be read the difference says so instead of looking complete.
Nodes are told apart by name. Their settings are frozen with every default filled in, so a default
that was written out is no difference.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from tidegate_api.config import NodeConfig
from tidegate_api.v1alpha1.retrievalpipeline import ReleaseStatus
from tidegate_cli.kubectl import Document
from tidegate_cli.rag_frozen import Unreadable
from tidegate_cli.rag_views import NONE
from tidegate_operator.core.releases import FrozenRelease

Leaves = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Change:
    """One leaf, or a whole node, that is not the same; None = it is not there."""

    path: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs; `unread` says why nodes, settings and images could not be compared, empty = they were."""

    first: str
    second: str
    changes: tuple[Change, ...]
    unread: tuple[str, ...] = ()


def difference(
    first: ReleaseStatus,
    second: ReleaseStatus,
    *,
    frozen: tuple[FrozenRelease | Unreadable, FrozenRelease | Unreadable],
) -> Difference:
    """Return what differs between two releases, by their status and by what they froze."""
    changes = list(_changes(_status_leaves(first), _status_leaves(second)))
    before, after = frozen
    if isinstance(before, FrozenRelease) and isinstance(after, FrozenRelease):
        changes += _node_changes(before.release.pipeline.nodes, after.release.pipeline.nodes)
        changes += _changes(_frozen_leaves(before), _frozen_leaves(after))
    unread = tuple(dict.fromkeys(each.why for each in frozen if isinstance(each, Unreadable)))
    return Difference(first.name, second.name, tuple(changes), unread)


def difference_document(found: Difference) -> Document:
    """Return the difference for programs."""
    return asdict(found)


def difference_text(found: Difference) -> str:
    """Return a line for each change; equal parts are left out."""
    lines = [_line(change) for change in found.changes]
    if not found.unread:
        return "\n".join(lines) or "no difference"
    lines = lines or ["no difference in indexes and versions"]
    return "\n".join([*lines, f"nodes, settings and images are not compared: {'; '.join(found.unread)}"])


def _status_leaves(release: ReleaseStatus) -> Leaves:
    return {
        "pipelineRevision": release.pipeline_revision,
        **{f"indexes[{index.knowledge_base}]": index.revision for index in release.index_revisions},
        "versions.runtime": release.versions.runtime,
        "versions.sidecar": release.versions.sidecar,
    }


def _frozen_leaves(frozen: FrozenRelease) -> Leaves:
    """Return what is frozen beside the nodes and beside what the status tells already."""
    return {
        "output": frozen.release.pipeline.output,
        "knowledgeBases": frozen.release.pipeline.knowledge_bases,
        "runtimeImage": frozen.runtime_image,
        "sidecarImage": frozen.sidecar_image,
        "deployment": frozen.release.deployment,
    }


def _node_changes(before: Sequence[NodeConfig], after: Sequence[NodeConfig]) -> Iterator[Change]:
    old, new = ({node.name: node for node in nodes} for nodes in (before, after))
    for name in sorted(old.keys() | new.keys()):
        path = f"nodes[{name}]"
        if name in old and name in new:
            yield from _changes(_node_leaves(old[name], f"{path}."), _node_leaves(new[name], f"{path}."))
        elif name in old:
            yield Change(path, old[name].to_document(), None)
        else:
            yield Change(path, None, new[name].to_document())


def _node_leaves(node: NodeConfig, prefix: str = "") -> Leaves:
    return {f"{prefix}type": node.type, f"{prefix}inputs": node.inputs, **dict(_leaves(node.settings, prefix))}


def _leaves(members: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for name, member in members.items():
        if isinstance(member, Mapping):
            yield from _leaves(member, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", member


def _changes(before: Leaves, after: Leaves) -> Iterator[Change]:
    for path in dict.fromkeys([*before, *after]):
        if before.get(path) != after.get(path):
            yield Change(path, before.get(path), after.get(path))


def _line(change: Change) -> str:
    if isinstance(change.after, Mapping):
        leaves = _node_leaves(NodeConfig.model_validate(change.after)).items()
        return f"{change.path}: added ({', '.join(f'{name}: {_shown(leaf)}' for name, leaf in leaves if leaf != [])})"
    if isinstance(change.before, Mapping):
        return f"{change.path}: removed"
    return f"{change.path}: {_shown(change.before)} -> {_shown(change.after)}"


def _shown(leaf: object) -> str:
    if isinstance(leaf, list):
        return f"[{', '.join(map(_shown, leaf))}]"
    if leaf is None or isinstance(leaf, str):
        return leaf or NONE
    return json.dumps(leaf)
