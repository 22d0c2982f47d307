"""Configuration and credentials on disk, and how they change while the sidecar runs."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.unit.sidecar.builders import config, key_entry

from tidegate_api.config import LimitsConfig, SidecarConfig
from tidegate_sidecar.adapters.files import MAX_ENTRY_BYTES, TableFile, read_entries
from tidegate_sidecar.settings import Settings, SettingsError, SettingsKeeper, load_config, load_identity

NOW = 1_800_000_000.0


def write(path: Path, content: bytes | SidecarConfig) -> None:
    """Replace a file as a kubelet or an editor does."""
    text = content if isinstance(content, bytes) else content.model_dump_json(by_alias=True).encode()
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(text)
    fresh.replace(path)


def mount(directory: Path, **entries: bytes) -> None:
    """Lay out a Secret as a kubelet does: entries behind the symlink `..data`, swapped at once."""
    directory.mkdir(exist_ok=True)
    generation = directory / f"..{len(list(directory.iterdir()))}"
    generation.mkdir()
    for name, content in entries.items():
        (generation / name).write_bytes(content)
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"..data/{name}")
    fresh = directory / "..data_tmp"
    fresh.symlink_to(generation.name)
    os.replace(fresh, directory / "..data")


class Following:
    """A keeper that follows the disk; waits for what a test expects."""

    def __init__(self, path: Path) -> None:
        self.keeper = SettingsKeeper(path, look_seconds=0.01)
        self.changed = asyncio.Event()

    async def __aenter__(self) -> "Following":
        self.task = asyncio.create_task(self.keeper.follow(self.on_change))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    def on_change(self, _: Settings) -> None:
        self.changed.set()

    async def next_change(self) -> Settings:
        async with asyncio.timeout(10):
            await self.changed.wait()
        self.changed.clear()
        return self.keeper.current


UNUSABLE = {
    "not JSON": (b"{", "document"),
    "member missing": (b'{"pipeline": "p", "namespace": "n"}', "auth: Field required"),
    "member of another type": (
        b'{"pipeline": "p", "namespace": "n", "auth": {"anonymous": true}, "limits": {"maxTopK": "x"}}',
        "limits.maxTopK",
    ),
    "no way in": (config(anonymous=False), "auth must be"),
    "anonymous beside keys": (config(anonymous=True, api_keys_dir="/keys"), "auth must be"),
}


@pytest.mark.parametrize(("content", "message"), UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_config_names_the_field(tmp_path, content, message):
    write(tmp_path / "config.json", content)
    with pytest.raises(SettingsError, match=message):
        load_config(tmp_path / "config.json")


def test_a_missing_config_is_told(tmp_path):
    with pytest.raises(SettingsError, match="can't be read"):
        load_config(tmp_path / "config.json")


async def test_a_changed_config_is_obeyed(tmp_path):
    path = tmp_path / "config.json"
    write(path, config())
    async with Following(path) as following:
        before = following.keeper.current
        write(path, config(limits=LimitsConfig(max_top_k=7)))
        after = await following.next_change()
    assert after.config.limits.max_top_k == 7
    assert after.config_hash != before.config_hash


async def test_a_broken_config_leaves_the_last_good_one_in_force_and_keys_are_still_followed(tmp_path):
    path, keys = tmp_path / "config.json", tmp_path / "keys"
    mount(keys, web=key_entry("k1", "acme"))
    write(path, config(anonymous=False, api_keys_dir=str(keys)))
    async with Following(path) as following:
        write(path, b"{")
        broken = await following.next_change()
        assert "document" in broken.problem
        assert broken.config.auth.api_keys_dir == str(keys)
        mount(keys, web=key_entry("k2", "acme", notAfter="2020-01-01T00:00:00Z"))
        rotated = await following.next_change()
        assert rotated.identity.live_keys(NOW) == 0
        write(path, config(anonymous=False, api_keys_dir=str(keys)))
        assert (await following.next_change()).problem == ""


async def test_rotated_keys_are_live_without_a_restart(tmp_path):
    path, keys = tmp_path / "config.json", tmp_path / "keys"
    mount(keys, web=key_entry("old", "acme"))
    write(path, config(anonymous=False, api_keys_dir=str(keys)))

    def tenant_of(settings: Settings, key: str) -> str | None:
        return settings.identity.authenticate({b"authorization": f"Bearer {key}".encode()}, NOW).tenant

    async with Following(path) as following:
        assert tenant_of(following.keeper.current, "old") == "acme"
        mount(keys, web=key_entry("old", "acme"), app=key_entry("new", "bank"))
        both = await following.next_change()
        assert [tenant_of(both, key) for key in ("old", "new")] == ["acme", "bank"]


async def test_a_mount_that_appears_later_is_found(tmp_path):
    path, keys = tmp_path / "config.json", tmp_path / "keys"
    write(path, config(anonymous=False, api_keys_dir=str(keys)))
    async with Following(path) as following:
        assert f"no folder {keys} to read API keys from" in following.keeper.current.identity.unusable(NOW)
        mount(keys, web=key_entry("k", "acme"))
        assert (await following.next_change()).identity.unusable(NOW) == ""


def test_a_mounted_secret_without_an_entry_is_not_taken_for_a_missing_mount(tmp_path):
    mount(tmp_path / "keys")
    identity = load_identity(config(anonymous=False, api_keys_dir=str(tmp_path / "keys")).auth)
    told = f"the Secret that spec.auth.apiKeys.secretRef names has no entry in {tmp_path / 'keys'}"
    assert identity.unusable(NOW) == f"{told}; add one entry for each key"


def test_the_proxy_secret_is_one_entry_of_its_mount(tmp_path):
    mount(tmp_path / "proxy", secret=b"shared\n", other=b"x")
    said = {b"x-tidegate-proxy-secret": b"shared", b"x-tidegate-tenant": b"acme"}
    identity = load_identity(config(anonymous=False, trusted_headers_dir=str(tmp_path / "proxy")).auth)
    assert identity.authenticate(said, NOW).tenant == "acme"
    missing = load_identity(config(anonymous=False, trusted_headers_dir=str(tmp_path / "none")).auth)
    assert "proxy secret is missing" in missing.unusable(NOW)


def test_entries_are_read_without_the_mounts_own_names_and_without_end(tmp_path):
    mount(tmp_path / "keys", a=b"1", b=b"x" * (MAX_ENTRY_BYTES + 1))
    (tmp_path / "keys" / "folder").mkdir()
    assert read_entries(tmp_path / "keys") == {"a": b"1", "b": b"x" * MAX_ENTRY_BYTES}
    assert read_entries(tmp_path / "none") is None


async def test_a_table_file_is_offered_now_and_after_each_change(tmp_path):
    path = tmp_path / "table.json"
    offers: asyncio.Queue[tuple[bytes | None, str]] = asyncio.Queue()

    async def offer(document: bytes | None, origin: str) -> None:
        await offers.put((document, origin))

    async def next_offer() -> tuple[bytes | None, str]:
        async with asyncio.timeout(10):
            return await offers.get()

    task = asyncio.create_task(TableFile(path, look_seconds=0.01).follow(offer))
    try:
        assert await next_offer() == (None, "file")
        write(path, b"one")
        assert await next_offer() == (b"one", "file")
        write(path, b"two")
        assert await next_offer() == (b"two", "file")
        path.unlink()
        assert await next_offer() == (None, "file")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
