"""The process tree of `tidegate local`, with real processes."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate_cli.processes import Command, ProcessTree

SLEEPER = "import os, sys, time, pathlib; pathlib.Path(sys.argv[1]).write_text(str(os.getpid())); time.sleep(600)"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "sleeper.py").write_text(SLEEPER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    return "sleeper"


async def pid_in(path: Path, *, other_than: int = 0) -> int:
    async with asyncio.timeout(20):
        while not path.is_file() or not path.read_text() or int(path.read_text()) == other_than:
            await asyncio.sleep(0.02)
    return int(path.read_text())


def alive(pid: int) -> bool:
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


async def test_keeps_restarts_and_stops(tmp_path: Path, module: str) -> None:
    said: list[str] = []
    tree = ProcessTree(say=said.append)
    command = Command("docs-runtime", module, (str(tmp_path / "pid"),), tmp_path, tmp_path / "log")
    await tree.keep(command)
    first = await pid_in(tmp_path / "pid")
    await tree.keep(command)
    os.kill(first, signal.SIGKILL)
    second = await pid_in(tmp_path / "pid", other_than=first)
    assert said[0].startswith("docs-runtime ended with signal SIGKILL and is started again; last lines of ")
    await tree.stop()
    assert not alive(second)


async def test_other_arguments_replace_the_process(tmp_path: Path, module: str) -> None:
    tree = ProcessTree(say=lambda _: None)
    await tree.keep(Command("docs-runtime", module, (str(tmp_path / "one"),), tmp_path, tmp_path / "log"))
    first = await pid_in(tmp_path / "one")
    await tree.keep(Command("docs-runtime", module, (str(tmp_path / "two"),), tmp_path, tmp_path / "log"))
    await pid_in(tmp_path / "two")
    assert not alive(first)
    await tree.stop()


async def test_one_that_fails_again_and_again_is_told_once_with_its_last_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "failing.py").write_text("import os\nprint(os.getcwd(), flush=True)\nraise SystemExit(3)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    said: list[str] = []
    tree = ProcessTree(say=said.append)
    log = tmp_path / "log"
    await tree.keep(Command("docs-runtime", "failing", (), tmp_path, log))
    async with asyncio.timeout(60):
        while not log.is_file() or len(log.read_text().splitlines()) < 3:
            await asyncio.sleep(0.02)
    await tree.stop()
    assert said == [f"docs-runtime ended with code 3 and is started again; last lines of {log}:\n  {tmp_path}"]


async def test_one_that_does_not_end_when_asked_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "deaf.py").write_text(f"import signal\nsignal.signal(15, signal.SIG_IGN)\n{SLEEPER}")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    tree = ProcessTree(say=lambda _: None)
    pid_file = tmp_path / "pid"
    await tree.keep(Command("docs-indexer", "deaf", (str(pid_file),), tmp_path, tmp_path / "log", stop_seconds=0.1))
    pid = await pid_in(pid_file)
    await tree.stop()
    assert not alive(pid)


async def test_one_that_cannot_be_started_is_tried_again(tmp_path: Path, module: str) -> None:
    said: list[str] = []
    tree = ProcessTree(say=said.append)
    folder = tmp_path / "later"
    await tree.keep(Command("docs-runtime", module, (str(tmp_path / "pid"),), folder, tmp_path / "log"))
    async with asyncio.timeout(20):
        while not said:
            await asyncio.sleep(0.02)
    assert said[0].startswith("docs-runtime could not be started (No such file or directory) and is started again")
    folder.mkdir()
    assert alive(await pid_in(tmp_path / "pid"))
    await tree.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends children with their parent on Linux only")
async def test_children_die_with_a_killed_parent(tmp_path: Path, module: str) -> None:
    script = (
        "import asyncio, pathlib, sys\n"
        "from tidegate_cli.processes import Command, ProcessTree\n"
        "async def main():\n"
        "    tree = ProcessTree(say=print)\n"
        f"    await tree.keep(Command('x', '{module}', ({str(tmp_path / 'pid')!r},), pathlib.Path({str(tmp_path)!r}), pathlib.Path({str(tmp_path / 'log')!r})))\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script])
    child = await pid_in(tmp_path / "pid")
    parent.kill()
    parent.wait()
    async with asyncio.timeout(10):
        while alive(child):
            await asyncio.sleep(0.02)
