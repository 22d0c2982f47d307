"""Turns ConfigMaps, Secrets and claims of the manifests into folders that processes can read.

The folders look as a kubelet would lay them: a file for each entry. Only what has changed is
written, so a watching process sees exactly the edits; Secrets are readable by their owner alone.
Whether the objects are there and well formed has been judged before (`local_check`).
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tidegate_api.violation import Violation, shown
from tidegate_cli.manifests import Manifest, Manifests

# No entry can have this name, what reads a mount passes it over, and it fits where the longest name of an entry does.
_REPLACEMENT = "..new"
_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
# Members that hold text as it stands, and members that hold base64.
_TEXT_MEMBER = {"ConfigMap": "data", "Secret": "stringData"}
_BASE64_MEMBER = {"ConfigMap": "binaryData", "Secret": "data"}


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """Where the objects of `manifests` lie below `root`, and which folder stands for each claim."""

    root: Path
    manifests: Manifests
    claims: Mapping[str, Path]

    def config_map(self, name: str) -> Path:
        """Return the folder that holds the entries of a ConfigMap."""
        return self._materialised("ConfigMap", name, private=False)

    def secret(self, name: str) -> Path:
        """Return the folder that holds the entries of a Secret."""
        return self._materialised("Secret", name, private=True)

    def claim(self, name: str) -> Path:
        """Return the folder that stands for a PersistentVolumeClaim."""
        return self.claims[name].resolve()

    def _materialised(self, kind: str, name: str, *, private: bool) -> Path:
        folder = self.root / f"{kind.lower()}s" / name
        folder.mkdir(parents=True, exist_ok=True, mode=0o700 if private else 0o755)
        written = entries(self.manifests.objects[kind, name])
        for key, value in written.items():
            _write_when_changed(folder / key, value, mode=0o600 if private else 0o644)
        for stale in set(folder.iterdir()) - {folder / key for key in written}:
            stale.unlink()
        return folder


def entries(manifest: Manifest) -> dict[str, bytes]:
    """Return the entries of a ConfigMap or Secret in which `entry_violations` finds nothing wrong."""
    encoded = _section(manifest, _BASE64_MEMBER[manifest.kind])
    texts = _section(manifest, _TEXT_MEMBER[manifest.kind])
    return {
        **{key: _decoded(str(value)) for key, value in encoded.items()},
        **{key: str(value).encode() for key, value in texts.items()},
    }


def entry_names(manifest: Manifest) -> set[str]:
    """Return the names of the entries of a ConfigMap or Secret, whatever they hold."""
    members = (_TEXT_MEMBER[manifest.kind], _BASE64_MEMBER[manifest.kind])
    return {key for member in members for key in _section(manifest, member)}


def entry_violations(manifest: Manifest) -> Iterator[Violation]:
    """Yield everything for which the API server would refuse the entries of a ConfigMap or Secret."""
    for member in (_TEXT_MEMBER[manifest.kind], _BASE64_MEMBER[manifest.kind]):
        section = manifest.body.get(member)
        if section is not None and not isinstance(section, dict):
            yield Violation(member, f"is a {type(section).__name__}: write a mapping of names to texts")
        for key, value in _section(manifest, member).items():
            yield from _entry_violations(member, key, value, text_member=_TEXT_MEMBER[manifest.kind])


def _entry_violations(member: str, key: object, value: object, *, text_member: str) -> Iterator[Violation]:
    path = f"{member}.{key}"
    if not isinstance(key, str) or not _KEY.fullmatch(key) or key == "." or key.startswith(".."):
        yield Violation(path, f"{shown(key)} cannot be the name of an entry: use letters, digits, '-', '_' and '.'")
    elif not isinstance(value, str):  # not shown: it may be a secret
        yield Violation(path, f"is a {type(value).__name__}: quote it to make it text")
    elif member != text_member and not _is_base64(value):
        yield Violation(path, f"is not base64: encode it, or put plain text under {text_member} instead")


def _section(manifest: Manifest, member: str) -> Mapping[str, object]:
    section = manifest.body.get(member)
    return section if isinstance(section, dict) else {}


def _decoded(text: str) -> bytes:
    return base64.b64decode("".join(text.split()), validate=True)


def _is_base64(text: str) -> bool:
    try:
        _decoded(text)
    except (binascii.Error, ValueError):
        return False
    return True


def _write_when_changed(path: Path, content: bytes, *, mode: int) -> None:
    if path.is_file() and path.read_bytes() == content:
        return
    replacement = path.with_name(_REPLACEMENT)
    replacement.touch(mode=mode)
    replacement.chmod(mode)
    replacement.write_bytes(content)
    replacement.replace(path)
