"""Buckets and content hashes are frozen: a change here re-deals every user and renames every revision."""

import json
import os
import subprocess
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate_api.hashing import BUCKETS, bucket, canonical_json, content_hash

KNOWN_ANSWERS: list[tuple[list[str], int]] = json.loads(Path(__file__).with_name("buckets.json").read_text())


@pytest.mark.parametrize(("parts", "expected"), KNOWN_ANSWERS, ids=lambda value: ascii(value)[:60])
def test_known_answer(parts: list[str], expected: int) -> None:
    assert bucket(*parts) == expected


def test_replicates_use_another_modulus() -> None:
    assert bucket("rep", "acme/handbook", "rel-0123456789", "u1", modulus=64) == 14


@pytest.mark.parametrize("seed", ["0", "1", "4711"])
def test_buckets_do_not_depend_on_the_hash_seed_of_the_process(seed: str) -> None:
    program = (
        "from tidegate_api.hashing import bucket, content_hash\n"
        "import hashlib\n"
        "dealt = ','.join(str(bucket('s', 'rel-0123456789', f'u{n}')) for n in range(10_000))\n"
        "print(hashlib.sha256(dealt.encode()).hexdigest(), content_hash({'b': 1, 'a': [2]}))\n"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.split() == [
        "10507b5e901c7a61a22e79e5495919ca3f3765373805e6b89bb7bc5b22f93553",
        content_hash({"a": [2], "b": 1}),
    ]


def test_one_user_in_two_unicode_forms_is_one_unit() -> None:
    composed, decomposed = (unicodedata.normalize(form, "Ångström é") for form in ("NFC", "NFD"))
    assert composed != decomposed
    assert bucket("s", "rel-0123456789", composed) == bucket("s", "rel-0123456789", decomposed)


def test_parts_do_not_run_into_each_other() -> None:
    assert bucket("ab", "c") != bucket("a", "bc")
    assert bucket("ab") != bucket("ab", "")


def test_buckets_are_uniform() -> None:
    """Chi-squared over 100 cells: 99 degrees of freedom, beyond 160 once in ten thousand."""
    users = 100_000
    cells = Counter(bucket("s", "rel-0123456789", f"user-{number}") * 100 // BUCKETS for number in range(users))
    expected = users / 100
    assert sum((cells[cell] - expected) ** 2 / expected for cell in range(100)) < 160


def test_another_release_meets_other_users() -> None:
    """At 10 % each, 1 % of all users are in both: not 10 %."""
    users = range(20_000)
    first, second = (
        {number for number in users if bucket("s", release, f"u{number}") < BUCKETS // 10}
        for release in ("rel-0123456789", "rel-9f8e7d6c5b")
    )
    assert 0.008 < len(first & second) / len(users) < 0.012


def test_equal_documents_have_equal_bytes() -> None:
    assert canonical_json({"b": [1, 2.0, "ü"], "a": {"x": None}}) == '{"a":{"x":null},"b":[1,2,"ü"]}'.encode()
    assert content_hash({"b": [1, 2.0, "ü"], "a": {"x": None}}) == "beb3b0cead"
    assert content_hash({"a": {"x": None}, "b": (1.0, 2, "ü")}) == "beb3b0cead"


def test_numbers_that_json_has_not_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(float("nan"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=50, deadline=None)
@given(json_values)
def test_a_hash_survives_a_round_trip_through_json(value: object) -> None:
    assert content_hash(json.loads(canonical_json(value))) == content_hash(value)  # type: ignore[arg-type]
