"""Which files a source lists, and what is an error instead of an empty list."""

import errno
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tidegate_api.config import ConfigMapFrom, SourceConfig, VolumeFrom
from tidegate_runtime.errors import UnreadableDocumentError, UnreadableSourceError
from tidegate_runtime.indexer.sources import MAX_FILE_BYTES, Listing, Scan, list_source, matches_glob, read_file

EXTENSIONS = frozenset({".md", ".txt"})


def volume(path: Path, *include: str) -> SourceConfig:
    return SourceConfig(name="docs", volume=VolumeFrom(claim_name="claim", path=str(path)), include=list(include))


def names(listing: Listing) -> list[str]:
    return [file.name for file in listing.files]


def put(path: Path, content: str = "words") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def failing_at(folder: Path, number: int) -> Scan:
    """List folders as the system does, but answer with an error at one of them: permissions do not stop root."""

    def scan(path: Path) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        if path == folder:
            raise OSError(number, os.strerror(number), str(path))
        return os.scandir(path)

    return scan


def test_a_volume_lists_its_tree_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b/z.md", "b/a.txt", "a.md", "c.MD", "skip.bin", "b.md"):
        put(tmp_path / name)

    assert names(list_source(volume(tmp_path), extensions=EXTENSIONS)) == ["a.md", "b.md", "b/a.txt", "b/z.md", "c.MD"]


def test_include_selects_by_pattern_instead_of_ending(tmp_path: Path) -> None:
    for name in ("a.md", "deep/b.md", "deep/c.log", "deep/d.txt"):
        put(tmp_path / name)

    listing = list_source(volume(tmp_path, "**/*.md", "deep/*.log"), extensions=EXTENSIONS)

    assert names(listing) == ["a.md", "deep/b.md", "deep/c.log"]


def test_a_mounted_config_map_lists_its_keys_and_no_versions(tmp_path: Path) -> None:
    version = tmp_path / "..2026_01_01"
    put(version / "a.md")
    put(version / "b.md")
    (tmp_path / "..data").symlink_to(version.name)
    for key in ("a.md", "b.md"):
        (tmp_path / key).symlink_to(Path("..data") / key)
    (tmp_path / "gone.md").symlink_to(Path("..data") / "gone.md")
    put(tmp_path / "folder" / "c.md")
    source = SourceConfig(name="docs", config_map=ConfigMapFrom(name="handbook", path=str(tmp_path)))

    listing = list_source(source, extensions=EXTENSIONS)

    assert (names(listing), listing.refused) == (["a.md", "b.md"], ())


def test_a_replaced_config_map_gives_other_signatures(tmp_path: Path) -> None:
    for version, text in (("..1", "one"), ("..2", "two")):
        os.utime(put(tmp_path / version / "a.md", text), ns=(0, 0))
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "a.md").symlink_to("..data/a.md")
    source = SourceConfig(name="docs", config_map=ConfigMapFrom(name="handbook", path=str(tmp_path)))
    before = list_source(source, extensions=EXTENSIONS)

    (tmp_path / "new").symlink_to("..2")
    (tmp_path / "new").rename(tmp_path / "..data")

    assert list_source(source, extensions=EXTENSIONS) != before


def test_links_lead_to_files_inside_the_source_only(tmp_path: Path) -> None:
    put(tmp_path / "secret.md")
    root = tmp_path / "docs"
    put(root / "a.md")
    (root / "inside.md").symlink_to("a.md")
    (root / "outside.md").symlink_to("../secret.md")
    (root / "sub").mkdir()
    (root / "folder.md").symlink_to("sub")
    (root / "loop.md").symlink_to("loop.md")
    (root / "nothing.md").symlink_to("moved-away.md")

    listing = list_source(volume(root), extensions=EXTENSIONS)

    assert names(listing) == ["a.md", "inside.md"]
    assert [failure.document for failure in listing.refused] == ["loop.md", "nothing.md", "outside.md"]
    assert listing.refused[1].reason == "is a link that leads to nothing; mend or remove it"
    assert "leads outside the source" in listing.refused[2].reason


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    put(tmp_path / "worktree" / "a.md")
    (tmp_path / "current").symlink_to("worktree")

    assert names(list_source(volume(tmp_path / "current"), extensions=EXTENSIONS)) == ["a.md"]


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")

    listing = list_source(volume(tmp_path), extensions=EXTENSIONS)

    assert (names(listing), listing.refused[0].document) == ([], "pipe.md")
    assert "not a regular file" in listing.refused[0].reason


def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.md")).write_text("words")

    listing = list_source(volume(tmp_path), extensions=EXTENSIONS)

    assert (names(listing), listing.refused[0].document) == ([], "caf\N{REPLACEMENT CHARACTER}.md")


def test_a_name_in_any_script_and_of_any_length_is_listed(tmp_path: Path) -> None:
    for name in ("年假规定.md", "x" * 250 + ".md"):
        put(tmp_path / name)

    assert len(names(list_source(volume(tmp_path), extensions=EXTENSIONS))) == 2


def test_lost_and_found_does_not_make_a_volume_unreadable(tmp_path: Path) -> None:
    put(tmp_path / "lost+found" / "a.md")
    put(tmp_path / "b.md")

    assert names(list_source(volume(tmp_path), extensions=EXTENSIONS)) == ["b.md"]


def test_a_missing_folder_is_an_error_with_source_path_and_next_step(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSourceError) as caught:
        list_source(volume(tmp_path / "absent"), extensions=EXTENSIONS)

    for part in ("source 'docs'", str(tmp_path / "absent"), "does not exist", "check from.volume.path", "'claim'"):
        assert part in str(caught.value)


def test_a_missing_config_map_is_named(tmp_path: Path) -> None:
    source = SourceConfig(name="docs", config_map=ConfigMapFrom(name="handbook", path=str(tmp_path / "absent")))

    with pytest.raises(UnreadableSourceError, match="ConfigMap 'handbook' exists"):
        list_source(source, extensions=EXTENSIONS)


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSourceError, match="is not a folder"):
        list_source(volume(put(tmp_path / "a.md")), extensions=EXTENSIONS)


def test_a_folder_inside_that_cannot_be_listed_makes_the_whole_listing_an_error(tmp_path: Path) -> None:
    put(tmp_path / "a.md")
    locked = put(tmp_path / "locked" / "b.md").parent

    with pytest.raises(UnreadableSourceError, match=rf"source 'docs': {locked} may not be read by this process; check"):
        list_source(volume(tmp_path), extensions=EXTENSIONS, scan=failing_at(locked, errno.EACCES))


def test_a_folder_that_is_removed_during_the_listing_is_gone(tmp_path: Path) -> None:
    put(tmp_path / "a.md")
    removed = put(tmp_path / "removed" / "b.md").parent

    listing = list_source(volume(tmp_path), extensions=EXTENSIONS, scan=failing_at(removed, errno.ENOENT))

    assert names(listing) == ["a.md"]


def test_a_root_that_is_removed_during_the_listing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSourceError, match="does not exist"):
        list_source(volume(tmp_path), extensions=EXTENSIONS, scan=failing_at(tmp_path, errno.ENOENT))


def test_a_disk_that_fails_is_an_error_with_what_the_system_says(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSourceError, match=r"cannot be listed \(Input/output error\)"):
        list_source(volume(tmp_path), extensions=EXTENSIONS, scan=failing_at(tmp_path, errno.EIO))


def test_a_source_that_names_no_place_is_an_error() -> None:
    with pytest.raises(UnreadableSourceError, match="neither configMap nor volume"):
        list_source(SourceConfig(name="docs"), extensions=EXTENSIONS)


def test_a_file_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.md"
    with path.open("wb") as stream:
        stream.truncate(200 * 1024 * 1024)
    (file,) = list_source(volume(tmp_path), extensions=EXTENSIONS).files
    path.unlink()  # were it opened, the reason would be another

    with pytest.raises(UnreadableDocumentError, match=r"has 200\.0 MiB, the limit for one file is 16 MiB; split it"):
        read_file(file)


def test_a_file_that_grew_over_the_limit_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "a.md", "short")
    (file,) = list_source(volume(tmp_path), extensions=EXTENSIONS).files
    with path.open("r+b") as stream:
        stream.truncate(MAX_FILE_BYTES + 1)

    with pytest.raises(UnreadableDocumentError, match="the limit for one file"):
        read_file(file)


def test_a_file_that_is_gone_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "a.md")
    (file,) = list_source(volume(tmp_path), extensions=EXTENSIONS).files
    path.unlink()

    with pytest.raises(UnreadableDocumentError, match="cannot be read: No such file"):
        read_file(file)


@pytest.mark.parametrize(
    ("name", "pattern", "expected"),
    [
        ("a.md", "**/*.md", True),
        ("x/y/a.md", "**/*.md", True),
        ("x/y/a.md", "*.md", False),
        ("a.md", "*.md", True),
        ("x/a.md", "x/**", True),
        ("x/y/a.md", "x/**/a.md", True),
        ("x/a.md", "x/**/a.md", True),
        ("z/a.md", "x/**", False),
        ("a1.md", "a[0-9].md", True),
        ("ab.md", "a?.md", True),
        ("a.md", "A.md", False),
        ("a.md", "./a.md", True),
        ("x/a.md", "/x/a.md", True),
        ("a/" * 30 + "b.md", "**/" * 30 + "c.md", False),
        ("a.md", "", False),
    ],
)
def test_patterns(name: str, pattern: str, expected: bool) -> None:
    assert matches_glob(name, pattern) is expected
