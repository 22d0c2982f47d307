"""Who a caller is: every way in, and every way to stay out."""

import json

import pytest
from tests.unit.sidecar.builders import key_entry

from tidegate_api.wire import ErrorCode
from tidegate_sidecar.caller import Caller
from tidegate_sidecar.errors import RequestError
from tidegate_sidecar.identity import build_identity

NOW = 1_800_000_000.0
SECRET = b"a-long-shared-secret"


def keyed(**entries: bytes):
    return build_identity(anonymous=False, key_entries=entries, proxy_secret=None, trusts_proxy=False)


def proxied(secret: bytes | None = SECRET, **entries: bytes):
    return build_identity(anonymous=False, key_entries=entries or None, proxy_secret=secret, trusts_proxy=True)


def headers(**named: str) -> dict[bytes, bytes]:
    return {name.replace("_", "-").encode(): value.encode() for name, value in named.items()}


def refusal(identity, now=NOW, **named: str) -> RequestError:
    with pytest.raises(RequestError) as refused:
        identity.authenticate(headers(**named), now)
    return refused.value


# --- anonymous -----------------------------------------------------------------------------------


def test_anonymous_callers_have_no_tenant_and_no_user_whatever_they_say():
    identity = build_identity(anonymous=True, key_entries=None, proxy_secret=None, trusts_proxy=False)
    said = headers(x_tidegate_tenant="acme", x_tidegate_user="u", x_tidegate_session="s", authorization="Bearer k")
    assert identity.authenticate(said, NOW) == Caller(session="s")
    assert identity.unusable(NOW) == ""


# --- keys ----------------------------------------------------------------------------------------


def test_a_key_gives_its_tenant_groups_and_scopes_and_the_callers_claims():
    identity = keyed(web=key_entry("k", "acme", groups=["staff"], scopes=["query", "explain"]))
    said = headers(authorization="Bearer k", x_tidegate_user="u", x_tidegate_session="s")
    expected = Caller("acme", ("staff",), "u", "s", frozenset({"query", "explain"}))
    assert identity.authenticate(said, NOW) == expected


def test_a_key_may_query_when_its_entry_names_no_scope():
    caller = keyed(web=key_entry("k", "acme")).authenticate(headers(authorization="bearer k"), NOW)
    assert caller.scopes == {"query"}


def test_several_keys_live_at_once():
    identity = keyed(old=key_entry("k1", "acme"), new=key_entry("k2", "acme"))
    for key in ("k1", "k2"):
        assert identity.authenticate(headers(authorization=f"Bearer {key}"), NOW).tenant == "acme"
    assert identity.live_keys(NOW) == 2


UNAUTHENTICATED = {
    "nothing": {},
    "another key": {"authorization": "Bearer other"},
    "another scheme": {"authorization": "Basic k"},
    "no key": {"authorization": "Bearer"},
    "the digest instead of the key": {"authorization": "Bearer " + json.loads(key_entry("k", "a"))["sha256"]},
    "only claims": {"x_tidegate_tenant": "acme", "x_tidegate_user": "u"},
    "a proxy secret that nothing configures": {"x_tidegate_proxy_secret": "x", "x_tidegate_tenant": "acme"},
}


@pytest.mark.parametrize("said", UNAUTHENTICATED.values(), ids=UNAUTHENTICATED)
def test_without_a_known_key_nobody_gets_in(said):
    assert refusal(keyed(web=key_entry("k", "acme")), **said).code is ErrorCode.UNAUTHENTICATED


def test_a_key_ends_at_its_not_after():
    identity = keyed(web=key_entry("k", "acme", notAfter="2027-01-15T08:00:00Z"))
    assert identity.authenticate(headers(authorization="Bearer k"), NOW - 1).tenant == "acme"
    assert identity.live_keys(NOW - 1) == 1
    assert "expired" in refusal(identity, authorization="Bearer k").message
    assert identity.live_keys(NOW) == 0
    assert "no API key is live" in identity.unusable(NOW)


def test_a_key_of_several_tenants_must_name_one_of_them():
    identity = keyed(web=key_entry("k", "acme", "bank"))
    named = headers(authorization="Bearer k", x_tidegate_tenant="bank")
    assert identity.authenticate(named, NOW).tenant == "bank"
    unnamed = refusal(identity, authorization="Bearer k")
    assert unnamed.code is ErrorCode.INVALID_REQUEST
    assert "x-tidegate-tenant" in unnamed.message


def test_a_tenant_that_the_key_does_not_speak_for_is_unknown_and_no_other_is_named():
    refused = refusal(keyed(web=key_entry("k", "acme", "bank")), authorization="Bearer k", x_tidegate_tenant="other")
    assert refused.code is ErrorCode.FORBIDDEN
    assert "unknown tenant 'other'" in refused.message
    assert "acme" not in refused.message
    assert "bank" not in refused.message


def test_a_key_for_every_tenant_must_name_one_and_the_star_is_none():
    identity = keyed(web=key_entry("k", "*"))
    assert identity.authenticate(headers(authorization="Bearer k", x_tidegate_tenant="any"), NOW).tenant == "any"
    assert refusal(identity, authorization="Bearer k").code is ErrorCode.INVALID_REQUEST
    assert refusal(identity, authorization="Bearer k", x_tidegate_tenant="*").code is ErrorCode.FORBIDDEN


@pytest.mark.parametrize("value", ["", "x" * 257])
def test_an_identifier_must_have_a_length_that_makes_sense(value):
    refused = refusal(keyed(web=key_entry("k", "acme")), authorization="Bearer k", x_tidegate_user=value)
    assert refused.code is ErrorCode.INVALID_REQUEST
    assert "x-tidegate-user" in refused.message
    assert len(refused.message) < 250


def test_an_identifier_must_be_utf8():
    said = headers(authorization="Bearer k") | {b"x-tidegate-user": b"\xff"}
    with pytest.raises(RequestError, match="not UTF-8"):
        keyed(web=key_entry("k", "acme")).authenticate(said, NOW)


GOOD = json.loads(key_entry("good", "acme"))
BROKEN = {
    "not JSON": (b"secret-text", "not a JSON object"),
    "not an object": (b'["secret-text"]', "not a JSON object"),
    "no sha256": (b'{"tenants": ["acme"]}', "field sha256 must be 64"),
    "short sha256": (json.dumps(GOOD | {"sha256": "secret-text"}).encode(), "field sha256 must be 64"),
    "no tenants": (json.dumps({"sha256": GOOD["sha256"]}).encode(), "field tenants must be"),
    "empty tenants": (json.dumps(GOOD | {"tenants": []}).encode(), "field tenants must be"),
    "empty tenant": (json.dumps(GOOD | {"tenants": [""]}).encode(), "field tenants must be"),
    "time without offset": (json.dumps(GOOD | {"notAfter": "2027-01-01T00:00:00"}).encode(), "field notAfter must be"),
    "scopes not a list": (json.dumps(GOOD | {"scopes": "secret-text"}).encode(), "field scopes must be"),
    "misspelt member": (json.dumps(GOOD | {"notafter": "secret-text"}).encode(), "unknown field 'notafter'"),
}


@pytest.mark.parametrize(("content", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_entry_is_told_by_key_id_and_field_and_the_others_live(content, message):
    identity = keyed(broken=content, good=key_entry("k", "acme"))
    (problem,) = identity.problems
    assert problem.startswith("key 'broken': ")
    assert message in problem
    assert "secret-text" not in problem
    assert identity.authenticate(headers(authorization="Bearer k"), NOW).tenant == "acme"
    assert identity.unusable(NOW) == ""


def test_two_entries_of_one_key_are_told_and_the_first_by_name_counts():
    identity = keyed(b=key_entry("k", "bank"), a=key_entry("k", "acme"))
    assert identity.problems == ("key 'b': same sha256 as key 'a'; remove one",)
    assert identity.authenticate(headers(authorization="Bearer k"), NOW).tenant == "acme"


def test_only_broken_entries_leave_nobody_in_and_say_why():
    identity = keyed(broken=b"{}")
    assert refusal(identity, authorization="Bearer k").code is ErrorCode.UNAUTHENTICATED
    assert "key 'broken'" in identity.unusable(NOW)


# --- trusted headers -----------------------------------------------------------------------------


def test_a_proxy_with_the_secret_is_believed():
    said = headers(
        x_tidegate_proxy_secret=SECRET.decode(), x_tidegate_tenant="acme", x_tidegate_user="u", x_tidegate_session="s"
    )
    assert proxied(SECRET + b"\n").authenticate(said, NOW) == Caller("acme", (), "u", "s")


def test_a_proxy_that_names_no_tenant_speaks_for_the_public():
    assert proxied().authenticate(headers(x_tidegate_proxy_secret=SECRET.decode()), NOW).tenant is None


NOT_BELIEVED = {
    "no secret": {"x_tidegate_tenant": "acme"},
    "wrong secret": {"x_tidegate_tenant": "acme", "x_tidegate_proxy_secret": "wrong"},
    "empty secret": {"x_tidegate_tenant": "acme", "x_tidegate_proxy_secret": ""},
}


@pytest.mark.parametrize("said", NOT_BELIEVED.values(), ids=NOT_BELIEVED)
@pytest.mark.parametrize("secret", [SECRET, None, b" \n"], ids=["configured", "missing", "blank"])
def test_identity_headers_are_believed_only_beside_the_secret(said, secret):
    assert refusal(proxied(secret), **said).code is ErrorCode.UNAUTHENTICATED


def test_a_proxy_cannot_speak_for_every_tenant_at_once():
    refused = refusal(proxied(), x_tidegate_proxy_secret=SECRET.decode(), x_tidegate_tenant="*")
    assert refused.code is ErrorCode.FORBIDDEN


def test_a_missing_proxy_secret_is_told():
    assert "proxy secret is missing" in proxied(None).unusable(NOW)


def test_keys_and_a_proxy_may_be_configured_together_and_a_wrong_secret_is_not_excused_by_a_key():
    identity = proxied(SECRET, web=key_entry("k", "acme"))
    assert identity.authenticate(headers(authorization="Bearer k"), NOW).tenant == "acme"
    by_proxy = headers(x_tidegate_proxy_secret=SECRET.decode(), x_tidegate_tenant="bank")
    assert identity.authenticate(by_proxy, NOW).tenant == "bank"
    wrong = refusal(identity, authorization="Bearer k", x_tidegate_proxy_secret="wrong")
    assert wrong.code is ErrorCode.UNAUTHENTICATED
    nothing = refusal(identity)
    assert "Bearer <key> or x-tidegate-proxy-secret" in nothing.message
