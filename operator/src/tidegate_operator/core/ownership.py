"""Who has written an object, as its managed fields say.

Kubernetes' own controllers write status subresources and a few annotations; they do not make an
object somebody else's.
"""

from tidegate_operator.core.kinds import FIELD_MANAGER, Manifest


def solely_ours(manifest: Manifest) -> bool:
    """Return whether nobody but us has written anything outside the object's subresources."""
    writers = {
        entry.get("manager")
        for entry in manifest["metadata"].get("managedFields") or []
        if not entry.get("subresource") and entry.get("manager") != "kube-controller-manager"
    }
    return writers <= {FIELD_MANAGER}
