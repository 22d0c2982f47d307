"""Reads the YAML files that a user keeps in Git, without a cluster.

Everything is read before anything is judged, so that one run names every mistake. A problem is
one line: the file, the object, the field, the value and the next step. Kinds of other groups are
passed over: a folder of manifests usually holds more than ours. A List is what it holds, as for kubectl.
"""

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tidegate_api.violation import listed, shown

GROUP = "tidegate.dev"
API_VERSION = f"{GROUP}/v1alpha1"
OUR_KINDS = ("KnowledgeBase", "RetrievalPipeline", "RoutingPolicy")
READ_KINDS = frozenset({*OUR_KINDS, "ConfigMap", "Secret"})
LIST_KINDS = frozenset({"List", *(f"{kind}List" for kind in READ_KINDS)})
SHOWN_CHARACTERS = 63
FILE_BYTES_MAX = 8 * 1024 * 1024


class ManifestError(Exception):
    """The given files cannot be used; `problems` has a line for each reason."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True)
class Manifest:
    """One YAML document and where it came from."""

    file: Path
    kind: str
    name: str
    body: Mapping[str, object]

    @property
    def namespace(self) -> str:
        """Return the namespace that the manifest names, empty when it names none."""
        metadata = self.body.get("metadata")
        namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
        return namespace if isinstance(namespace, str) else ""

    def __str__(self) -> str:
        name = self.name if len(self.name) <= SHOWN_CHARACTERS else f"{self.name[:SHOWN_CHARACTERS]}…"
        return f"{self.file}: {self.kind} {name}"


@dataclass(frozen=True, slots=True)
class Manifests:
    """What the files hold, by kind and name; one namespace."""

    objects: Mapping[tuple[str, str], Manifest] = field(default_factory=dict)

    def of_kind(self, kind: str) -> list[Manifest]:
        """Return the objects of `kind` in the order of their names."""
        return [self.objects[key] for key in sorted(self.objects) if key[0] == kind]

    def find(self, kind: str, name: str) -> Manifest | None:
        """Return one object, None when the files do not hold it."""
        return self.objects.get((kind, name))


def manifest_files(paths: Iterable[Path]) -> list[Path]:
    """Return the YAML files that `paths` name: files as they are, folders with everything below them."""
    files: list[Path] = []
    problems = []
    for path in paths:
        if os.path.isdir(path):  # unlike Path.is_dir, no path makes it raise
            found = sorted(file for pattern in ("*.yaml", "*.yml") for file in path.rglob(pattern) if not file.is_dir())
            if not found:
                problems.append(f"{path}: holds no .yaml file; name the folder with your manifests")
            files.extend(found)
        elif os.path.exists(path):
            files.append(path)
        else:
            problems.append(f"{path}: no such file or folder; check what follows -f")
    if problems:
        raise ManifestError(problems)
    return list(dict.fromkeys(files))


def read_manifests(paths: Iterable[Path]) -> Manifests:
    """Read every document below `paths`.

    Raises:
        ManifestError: a file is missing, unreadable, not YAML, or two documents name the same object.
    """
    objects: dict[tuple[str, str], Manifest] = {}
    problems: list[str] = []
    for file in manifest_files(paths):
        manifests, wrong = _read(file)
        problems.extend(wrong)
        for manifest in manifests:
            twin = objects.setdefault((manifest.kind, manifest.name), manifest)
            if twin is not manifest:
                problems.append(f"{manifest}: is also in {twin.file}; keep one of them")
    if problems:
        raise ManifestError(problems)
    return Manifests(objects)


def _read(file: Path) -> tuple[list[Manifest], list[str]]:
    """Return the objects in a file that are read here, and what is wrong with it."""
    try:
        documents = list(_documents(file))
    except ManifestError as error:
        return [], error.problems
    manifests, problems = [], []
    for where, body in documents:
        try:
            manifest = _manifest(file, where, body)
        except ManifestError as error:
            problems.extend(error.problems)
            continue
        if manifest is not None:
            manifests.append(manifest)
    return manifests, problems


def _documents(file: Path) -> Iterator[tuple[str, object]]:
    """Yield every object of a file with the place where it stands; those in a List in place of the List."""
    for position, body in enumerate(_parsed(file), start=1):
        where = f"{file}: document {position}"
        items = body.get("items") if isinstance(body, dict) and str(body.get("kind")) in LIST_KINDS else None
        if isinstance(items, list):
            yield from ((f"{where}: item {number}", item) for number, item in enumerate(items, start=1))
        elif body is not None:
            yield where, body


def _manifest(file: Path, where: str, body: object) -> Manifest | None:
    """Return the object in `body`, None when it is of a kind that is not read here."""
    if not isinstance(body, dict):
        raise ManifestError(
            [f"{where}: is a {type(body).__name__}, not an object; a manifest starts with apiVersion and kind"]
        )
    kind, version, metadata = body.get("kind"), body.get("apiVersion"), body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if isinstance(kind, str):
        if kind not in OUR_KINDS and isinstance(version, str) and version.partition("/")[0] == GROUP:
            raise ManifestError([f"{where}: {shown(kind)} is not a kind of {API_VERSION}; {_meant(kind)}"])
        if kind in LIST_KINDS:
            raise ManifestError(
                [f"{where}: is a {kind} without a list of items, or inside another; write a document for each object"]
            )
        if kind not in READ_KINDS:
            return None
    if not isinstance(kind, str) or not isinstance(name, str):
        raise ManifestError([f"{where}: kind and metadata.name are missing or not text; every manifest needs both"])
    if kind in OUR_KINDS and version != API_VERSION:
        raise ManifestError([f"{where}: {kind} {name}: apiVersion is {version!r}; use {API_VERSION}"])
    return Manifest(file, kind, name, body)


def _meant(kind: str) -> str:
    near = difflib.get_close_matches(kind, OUR_KINDS, n=1)
    return f"did you mean {near[0]}?" if near else f"write one of {listed(OUR_KINDS)}"


def _parsed(file: Path) -> list[object]:
    try:
        if file.stat().st_size > FILE_BYTES_MAX:
            raise ManifestError(
                [f"{file}: is larger than {FILE_BYTES_MAX} bytes; put documents on a volume instead of in a manifest"]
            )
        return list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise ManifestError([f"{file}: cannot be read: {error.strerror}; mend or remove it"]) from error
    except UnicodeDecodeError as error:
        raise ManifestError(
            [f"{file}: is not UTF-8 at byte {error.start}; convert it, for example with iconv"]
        ) from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that does not exist
        raise ManifestError([f"{file}: is not YAML: {_one_line(error)}"]) from error
    except RecursionError as error:
        raise ManifestError([f"{file}: is nested too deeply; a manifest is not"]) from error


def _one_line(error: yaml.YAMLError | ValueError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem} at line {mark.line + 1}, column {mark.column + 1}"
    return str(error).replace("\n", " ")
