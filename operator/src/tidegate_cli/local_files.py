"""Turns ConfigMaps, Secrets and claims of the manifests into folders that processes can read.

The folders look as a kubelet would lay them: a file for each entry. Only what has changed is
written, so a watching process sees exactly the edits; Secrets are readable by their owner alone.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tidegate_cli.manifests import Manifest, Manifests


class MissingReferenceError(Exception):
    """A manifest names an object that the given files do not hold; the text says what to do."""


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
        folder = self.claims.get(name)
        if folder is None:
            raise MissingReferenceError(f"claim {name!r} has no folder here; add --volume {name}=PATH")
        if not folder.is_dir():
            raise MissingReferenceError(f"--volume {name}={folder}: is not a folder; correct the path")
        return folder.resolve()

    def _materialised(self, kind: str, name: str, *, private: bool) -> Path:
        manifest = self.manifests.find(kind, name)
        if manifest is None:
            raise MissingReferenceError(
                f"{kind} {name!r} is not among the given files; add its manifest or correct the name"
            )
        folder = self.root / f"{kind.lower()}s" / name
        folder.mkdir(parents=True, exist_ok=True, mode=0o700 if private else 0o755)
        entries = _entries(manifest)
        for key, value in entries.items():
            _write_when_changed(folder / key, value, mode=0o600 if private else 0o644)
        for stale in set(folder.iterdir()) - {folder / key for key in entries}:
            stale.unlink()
        return folder


def _entries(manifest: Manifest) -> dict[str, bytes]:
    """Return the entries of a ConfigMap or Secret as bytes; text and base64 members as Kubernetes defines them."""
    texts = {"ConfigMap": "data", "Secret": "stringData"}[manifest.kind]
    encoded = {"ConfigMap": "binaryData", "Secret": "data"}[manifest.kind]
    entries = {key: _base64(manifest, encoded, key, value) for key, value in _section(manifest, encoded).items()}
    for key, value in _section(manifest, texts).items():
        if not isinstance(value, str):
            raise MissingReferenceError(
                f"{manifest}: {texts}.{key} is a {type(value).__name__}; quote it to make it text"
            )
        entries[key] = value.encode()
    for key in entries:
        if "/" in key or key in ("", ".", ".."):
            raise MissingReferenceError(
                f"{manifest}: {key!r} cannot be the name of an entry; use letters, digits, '-', '_' and '.'"
            )
    return entries


def _section(manifest: Manifest, member: str) -> Mapping[str, object]:
    section = manifest.body.get(member) or {}
    if not isinstance(section, dict):
        raise MissingReferenceError(f"{manifest}: {member} is a {type(section).__name__}, not a mapping of entries")
    return section


def _base64(manifest: Manifest, member: str, key: str, value: object) -> bytes:
    try:
        return base64.b64decode(str(value), validate=True)
    except binascii.Error as error:
        raise MissingReferenceError(
            f"{manifest}: {member}.{key} is not base64; put plain text under stringData instead"
        ) from error


def _write_when_changed(path: Path, content: bytes, *, mode: int) -> None:
    if path.is_file() and path.read_bytes() == content:
        return
    replacement = path.with_name(f".{path.name}.new")
    replacement.touch(mode=mode)
    replacement.chmod(mode)
    replacement.write_bytes(content)
    replacement.replace(path)
