"""`runtime.pod`: what users add to the pods, merged without judging it.

Members are open objects and the API server judges them: a value of the wrong shape is passed on as it
is, so that the refusal in the condition is Kubernetes' own. Labels of ours win, because Services and
policies select by them.
"""

from collections.abc import Mapping

from tidegate_operator.core.kinds import Manifest

_ADDED_TO_CONTAINER = ("env", "volumeMounts")
_ADDED_TO_METADATA = ("labels", "annotations")
_JOINED = ("imagePullSecrets", "volumes")


def customised(template: Manifest, asked: Mapping[str, object], *, container: str) -> Manifest:
    """Return the pod template with what the user adds; env and mounts go to the named container."""
    metadata, spec = dict(template["metadata"]), dict(template["spec"])
    for member, value in sorted(asked.items()):
        if member in _ADDED_TO_METADATA:
            metadata[member] = _merged(value, metadata.get(member))
        elif member in _ADDED_TO_CONTAINER:
            spec["initContainers"] = [
                {**each, member: _joined(each.get(member), value)} if each["name"] == container else each
                for each in spec["initContainers"]
            ]
        elif member in _JOINED:
            spec[member] = _joined(spec.get(member), value)
        else:
            spec[member] = value
    return {"metadata": metadata, "spec": spec}


def _merged(asked: object, ours: object) -> object:
    if isinstance(asked, Mapping):
        return {**asked, **(ours if isinstance(ours, Mapping) else {})}
    return asked


def _joined(ours: object, asked: object) -> object:
    if isinstance(asked, list):
        return [*(ours if isinstance(ours, list) else []), *asked]
    return asked
