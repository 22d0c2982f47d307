"""A hop is believed only when it was signed by a pod of the pipeline, whole and in time."""

import pytest

from tidegate_sidecar.hop import CLOCK_SKEW_SECONDS, hop_field, hop_problem

BODY = b'{"query": "leave", "release": "rel-b"}'


def signed(key: bytes = b"one", body: bytes = BODY, expires_at: float = 1_000.0) -> bytes:
    return hop_field(key, body, expires_at=expires_at).partition(b": ")[2].strip()


def test_both_live_keys_are_believed() -> None:
    assert hop_problem([b"two", b"one"], signed(b"one"), BODY, now=999.0) == ""
    assert hop_problem([b"two", b"one"], signed(b"two"), BODY, now=999.0) == ""


def test_clocks_may_differ_a_little() -> None:
    assert hop_problem([b"one"], signed(), BODY, now=1_000.0 + CLOCK_SKEW_SECONDS) == ""
    assert "expired" in hop_problem([b"one"], signed(), BODY, now=1_001.0 + CLOCK_SKEW_SECONDS)


@pytest.mark.parametrize(
    ("keys", "header", "body"),
    [
        ([b"one"], None, BODY),
        ([b"one"], b"", BODY),
        ([b"one"], b"9999999999.", BODY),
        ([b"one"], b"x" + signed(), BODY),
        ([b"one"], signed(b"three"), BODY),
        ([b"one"], signed(), BODY.replace(b"rel-b", b"rel-a")),
        ([], signed(), BODY),
        ([b"one"], b"9" + signed(), BODY),
    ],
)
def test_anything_else_is_refused(keys: list[bytes], header: bytes | None, body: bytes) -> None:
    assert hop_problem(keys, header, body, now=999.0) != ""
