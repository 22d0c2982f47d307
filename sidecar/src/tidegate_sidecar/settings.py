"""The reloadable configuration: a file and the Secrets it points at, as one unchanging value.

Whatever changes on disk makes a new `Settings`; a request reads one from beginning to end. A broken
document leaves the last good one in force and says so.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from tidegate_api.config import AuthConfig, SidecarConfig
from tidegate_sidecar.adapters.files import (
    LOOK_SECONDS,
    directory_stamp,
    file_stamp,
    on_every_change,
    read_entries,
    read_file,
)
from tidegate_sidecar.identity import Identity, build_identity

logger = logging.getLogger(__name__)

PROXY_SECRET_ENTRY = "secret"  # noqa: S105 - the name of an entry, not a secret
KEYS_FIELD = "spec.auth.apiKeys.secretRef"


class SettingsError(Exception):
    """A configuration that can't be used; names the field and what it must be."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is in force. `problem` says why a newer document is not; empty = this is the newest."""

    config: SidecarConfig
    config_hash: str
    identity: Identity
    problem: str = ""


def load_config(path: Path) -> SidecarConfig:
    """Read the configuration file.

    Raises:
        SettingsError: the file is missing or malformed, or its ways to authenticate contradict each other.
    """
    document = read_file(path)
    if document is None:
        raise SettingsError(f"config file {path} can't be read")
    try:
        config = SidecarConfig.model_validate_json(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "document"
        raise SettingsError(f"config file {path}: {field}: {first['msg']}") from None
    auth = config.auth
    if auth.anonymous == bool(auth.api_keys_dir or auth.trusted_headers_dir):
        raise SettingsError(f"config file {path}: auth must be anonymous alone, or apiKeysDir or trustedHeadersDir")
    return config


def load_identity(auth: AuthConfig) -> Identity:
    """Read the mounted Secrets. What is missing or broken in them closes doors and is told in `problems`."""
    problem = ""
    key_entries: dict[str, bytes] | None = None
    proxy_secret: bytes | None = None
    if auth.api_keys_dir is not None:
        found = read_entries(Path(auth.api_keys_dir))
        problem = _why_no_keys(auth.api_keys_dir, found)
        key_entries = found or {}
    if auth.trusted_headers_dir is not None:
        proxy_secret = (read_entries(Path(auth.trusted_headers_dir)) or {}).get(PROXY_SECRET_ENTRY)
    return build_identity(
        anonymous=auth.anonymous,
        key_entries=key_entries,
        trusts_proxy=auth.trusted_headers_dir is not None,
        proxy_secret=proxy_secret,
        problems=(problem,) if problem else (),
    )


def _why_no_keys(directory: str, entries: dict[str, bytes] | None) -> str:
    if entries is None:
        return f"no folder {directory} to read API keys from; mount the Secret that {KEYS_FIELD} names"
    if not entries:
        return f"the Secret that {KEYS_FIELD} names has no entry in {directory}; add one entry for each key"
    return ""


class SettingsKeeper:
    """Holds the settings in force and follows the disk."""

    def __init__(self, path: Path, *, look_seconds: float = LOOK_SECONDS) -> None:
        self._path = path
        self._look_seconds = look_seconds
        self.current = _settings(load_config(path))

    async def follow(self, on_change: Callable[[Settings], None]) -> None:
        """Reload whenever the file or a mounted Secret changes, until cancelled."""
        # The first look reloads: something may have changed since the start.
        await on_every_change(self._stamps, lambda: self._reload(on_change), look_seconds=self._look_seconds)

    async def _reload(self, on_change: Callable[[Settings], None]) -> None:
        fresh = await asyncio.to_thread(self._load)
        if fresh == self.current:
            return
        self.current = fresh
        logger.info(
            "settings read",
            extra={"hash": fresh.config_hash, "problem": fresh.problem, "problems": list(fresh.identity.problems)},
        )
        on_change(fresh)

    def _load(self) -> Settings:
        """Keep the last good configuration beside a broken one; the Secrets are read anew either way."""
        try:
            return _settings(load_config(self._path))
        except SettingsError as error:
            return _settings(self.current.config, problem=str(error))

    def _stamps(self) -> object:
        auth = self.current.config.auth
        directories = [Path(each) for each in (auth.api_keys_dir, auth.trusted_headers_dir) if each is not None]
        return file_stamp(self._path), [(each, directory_stamp(each)) for each in directories]


def _settings(config: SidecarConfig, *, problem: str = "") -> Settings:
    return Settings(config, config.config_hash(), load_identity(config.auth), problem)
