"""Finds the files of built-in models and proves that they are the ones a fingerprint names.

The packages that carry weights are located, not imported: importing one may pull in far more than
its data. A file is hashed before its first use; vectors of other weights are not comparable, so
anything but an exact match is refused.
"""

import hashlib
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

from tidegate_runtime.errors import ModelUnavailableError

_INSTALL = "install it with pip install 'tidegate[runtime]' (or 'tidegate[runtime-gpu]')"


def require_module(name: str, *, model: str) -> ModuleSpec:
    """Return where an installed module or package lies, without importing it.

    Raises:
        ModelUnavailableError: it is not installed.
    """
    spec = find_spec(name)
    if spec is None:
        raise ModelUnavailableError(f"model {model} needs the Python package {name}, which is missing; {_INSTALL}")
    return spec


def package_folder(name: str, *, model: str) -> Path:
    """Return the folder of an installed package without importing it.

    Raises:
        ModelUnavailableError: it is not installed.
    """
    return Path(require_module(name, model=model).origin or "").parent


def verified_file(path: Path, *, model: str, digest: str) -> Path:
    """Return `path` when its sha256 is `digest`.

    Raises:
        ModelUnavailableError: the file is missing or has another digest.
    """
    try:
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ModelUnavailableError(f"model {model}: {path} cannot be read ({error.strerror}); {_INSTALL}") from error
    if found != digest:
        raise ModelUnavailableError(
            f"model {model}: expected sha256 {digest}, found {found} in {path}; "
            "run the version of tidegate that the index was built with, or let the index be built anew"
        )
    return path
