"""What to make of an object that is already there when we come to make one of its name.

Whose it is, its controller reference alone says. One of ours that nobody looked at is another operator's
doing, or has lost the labels by which it would have been found.
"""

from tidegate_operator.core.kinds import Manifest


def same_controller(live: Manifest, manifest: Manifest) -> bool:
    """Return whether `live` has the controller that `manifest` names."""
    return bool(_controllers(live) & _controllers(manifest))


def labels_kept(live: Manifest, manifest: Manifest) -> bool:
    """Return whether `live` carries every label of `manifest`."""
    return (manifest["metadata"].get("labels") or {}).items() <= (live["metadata"].get("labels") or {}).items()


def _controllers(manifest: Manifest) -> set[str]:
    references = manifest["metadata"].get("ownerReferences") or []
    return {reference["uid"] for reference in references if reference.get("controller")}
