"""Who a request comes from. Absent or doubtful credentials fail closed; nothing is guessed.

An `Identity` is built whole from the configuration and the mounted Secrets and never changed: a
rotation makes a new one, so a request sees one set of keys. Keys are known by their SHA-256 only. A
broken entry is reported by key id and field, never by content, and costs no other key its life.
Identity headers are believed only beside a credential that vouches for them; anonymous callers have
no tenant, whatever they say.
"""

import hashlib
import hmac
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from tidegate_api.wire import HEADER_PROXY_SECRET, HEADER_SESSION, HEADER_TENANT, HEADER_USER, ErrorCode
from tidegate_sidecar.caller import SCOPE_QUERY, Caller
from tidegate_sidecar.errors import RequestError, shown

ANY_TENANT = "*"
MAX_IDENTIFIER_CHARACTERS = 256
EXPECTED = {
    "sha256": "64 lower-case hex digits",
    "tenants": "a list that names at least one tenant",
    "groups": "a list of names",
    "scopes": "a list of names",
    "notAfter": "a time with an offset, such as 2027-01-31T00:00:00Z",
}

Headers = Mapping[bytes, bytes]
PROXY_SECRET = HEADER_PROXY_SECRET.encode()
TENANT = HEADER_TENANT.encode()
USER = HEADER_USER.encode()
SESSION = HEADER_SESSION.encode()
Name = Annotated[str, Field(min_length=1, max_length=MAX_IDENTIFIER_CHARACTERS)]


class KeyEntry(BaseModel):
    """One entry of the key Secret. An unknown member breaks it: it might be a limit that we would not enforce."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    tenants: Annotated[list[Name], Field(min_length=1)]
    groups: list[Name] = Field(default_factory=list)
    scopes: list[Name] = Field(default_factory=lambda: [SCOPE_QUERY])
    not_after: AwareDatetime | None = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A usable key. `only_tenant` need not be named; `not_after` is in seconds since the epoch."""

    key_id: str
    sha256: bytes
    tenants: frozenset[str]
    only_tenant: str | None
    groups: tuple[str, ...]
    scopes: frozenset[str]
    not_after: float


@dataclass(frozen=True, slots=True)
class Identity:
    """The ways in. `keys` and `proxy_secret_sha256` are None where that way is not configured or not usable."""

    anonymous: bool = False
    keys: Mapping[bytes, ApiKey] | None = None
    trusts_proxy: bool = False
    proxy_secret_sha256: bytes | None = None
    problems: tuple[str, ...] = ()

    def live_keys(self, now: float) -> int:
        """Return how many keys are accepted at `now`."""
        return sum(key.not_after > now for key in (self.keys or {}).values())

    def unusable(self, now: float) -> str:
        """Return why nobody can get in, or an empty string."""
        if self.anonymous or self.live_keys(now) or self.proxy_secret_sha256 is not None:
            return ""
        return "; ".join(self.problems) or "no API key is live; add one to the Secret or renew its notAfter"

    def authenticate(self, headers: Headers, now: float) -> Caller:
        """Return the caller.

        Raises:
            RequestError: the credential is missing, wrong or expired, or names a tenant it may not speak for.
        """
        if self.anonymous:
            return Caller(session=_identifier(headers, SESSION))
        if self.trusts_proxy and PROXY_SECRET in headers:
            return self._from_proxy(headers)
        if self.keys is not None and b"authorization" in headers:
            return self._from_key(self.keys, headers, now)
        ways = []
        if self.keys is not None:
            ways.append("authorization: Bearer <key>")
        if self.trusts_proxy:
            ways.append(f"{HEADER_PROXY_SECRET} with the identity headers")
        raise _unauthenticated(f"no credential; send {' or '.join(ways)}")

    def _from_key(self, keys: Mapping[bytes, ApiKey], headers: Headers, now: float) -> Caller:
        scheme, _, credential = headers[b"authorization"].partition(b" ")
        if scheme.lower() != b"bearer":
            raise _unauthenticated("header authorization must be `Bearer <key>`")
        digest = hashlib.sha256(credential.strip()).digest()
        key = keys.get(digest)
        if key is None or not hmac.compare_digest(key.sha256, digest):
            raise _unauthenticated("the key is not known; check it, or ask for a new one")
        if key.not_after <= now:
            raise _unauthenticated("the key has expired; ask for a new one")
        return Caller(
            tenant=_tenant_of(key, _identifier(headers, TENANT)),
            groups=key.groups,
            user=_identifier(headers, USER),
            session=_identifier(headers, SESSION),
            scopes=key.scopes,
        )

    def _from_proxy(self, headers: Headers) -> Caller:
        presented = hashlib.sha256(headers[PROXY_SECRET]).digest()
        if self.proxy_secret_sha256 is None or not hmac.compare_digest(presented, self.proxy_secret_sha256):
            raise _unauthenticated(f"header {HEADER_PROXY_SECRET} is wrong; the identity headers are not believed")
        tenant = _identifier(headers, TENANT)
        if tenant == ANY_TENANT:
            raise _unknown_tenant(tenant)
        return Caller(tenant=tenant, user=_identifier(headers, USER), session=_identifier(headers, SESSION))


def build_identity(
    *,
    anonymous: bool,
    key_entries: Mapping[str, bytes] | None,
    proxy_secret: bytes | None,
    trusts_proxy: bool,
    problems: tuple[str, ...] = (),
) -> Identity:
    """Build an identity from the contents of the mounted Secrets. `key_entries` None = keys are not configured."""
    found = list(problems)
    keys: dict[bytes, ApiKey] = {}
    for key_id, content in sorted((key_entries or {}).items()):
        try:
            key = parse_key(key_id, content)
        except BrokenKeyError as error:
            found.append(str(error))
            continue
        if key.sha256 in keys:
            found.append(f"key {shown(key_id)}: same sha256 as key {shown(keys[key.sha256].key_id)}; remove one")
        else:
            keys[key.sha256] = key
    secret = (proxy_secret or b"").strip()
    if trusts_proxy and not secret:
        found.append("the proxy secret is missing or empty; put it into the entry `secret` of its Secret")
    return Identity(
        anonymous=anonymous,
        keys=None if key_entries is None else keys,
        trusts_proxy=trusts_proxy,
        proxy_secret_sha256=hashlib.sha256(secret).digest() if secret else None,
        problems=tuple(found),
    )


class BrokenKeyError(Exception):
    """An entry of the key Secret that can't be used. Names key id and field, never content."""


def parse_key(key_id: str, content: bytes) -> ApiKey:
    """Return the key that an entry describes.

    Raises:
        BrokenKeyError: the entry is not JSON or a field is missing, unknown or malformed.
    """
    try:
        entry = KeyEntry.model_validate_json(content)
    except ValidationError as error:
        raise BrokenKeyError(f"key {shown(key_id)}: {_why_broken(error)}") from None
    return ApiKey(
        key_id=key_id,
        sha256=bytes.fromhex(entry.sha256),
        tenants=frozenset(entry.tenants),
        only_tenant=_only(entry.tenants),
        groups=tuple(entry.groups),
        scopes=frozenset(entry.scopes),
        not_after=math.inf if entry.not_after is None else entry.not_after.timestamp(),
    )


def _why_broken(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if not first["loc"]:
        return "the entry is not a JSON object"
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return f"unknown field {shown(name)}; allowed are {', '.join(EXPECTED)}"
    return f"field {name} must be {EXPECTED[name]}"


def _only(tenants: list[str]) -> str | None:
    distinct = set(tenants)
    return tenants[0] if len(distinct) == 1 and ANY_TENANT not in distinct else None


def _tenant_of(key: ApiKey, named: str | None) -> str:
    if named is None:
        if key.only_tenant is not None:
            return key.only_tenant
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"this key speaks for several tenants; name one in header {HEADER_TENANT}"
        )
    if named == ANY_TENANT or not (named in key.tenants or ANY_TENANT in key.tenants):
        raise _unknown_tenant(named)
    return named


def _identifier(headers: Headers, name: bytes) -> str | None:
    if name not in headers:
        return None
    try:
        value = headers[name].decode()
    except UnicodeDecodeError:
        raise RequestError(ErrorCode.INVALID_REQUEST, f"header {name.decode()} is not UTF-8; encode it") from None
    if 0 < len(value) <= MAX_IDENTIFIER_CHARACTERS:
        return value
    limit = f"must have 1 to {MAX_IDENTIFIER_CHARACTERS} characters; or leave it out"
    raise RequestError(ErrorCode.INVALID_REQUEST, f"header {name.decode()}: {shown(value)} {limit}")


def _unauthenticated(message: str) -> RequestError:
    return RequestError(ErrorCode.UNAUTHENTICATED, message)


def _unknown_tenant(tenant: str) -> RequestError:
    message = f"unknown tenant {shown(tenant)}; name one that this credential speaks for in header {HEADER_TENANT}"
    return RequestError(ErrorCode.FORBIDDEN, message)
