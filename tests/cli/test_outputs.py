"""Files that a user asks for are new ones, outside of runs, whatever command writes them."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engine import __main__ as program
from engine.__main__ import main
from engine.models import registry
from tests import fabricate
from tests.cli.conftest import Refused
from tests.test_main import root

__all__ = ["root"]
Refusal = Callable[[str, Path], str]
ROOT = Path(__file__).resolve().parents[2]
FORMATS = ("md", "html", "csv", "json", "parquet")
COMMANDS = {
    "imported": "report --imported {run}/results.jsonl --out",
    **{name: f"report {{run}} --format {name} --out" for name in FORMATS},
    "map": "explain --sample id-0 --model tiny-llava --words car --dataset {root} --out",
}


@pytest.fixture
def run(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(registry, "load", None)  # nothing is loaded for what is refused
    return fabricate.run(cache_dir / "run", fabricate.pair(3)).folder


@pytest.fixture
def refusal(run: Path, root: Path, refused: Refused) -> Refusal:
    """Why a command does not write to a path."""

    def why(command: str, path: Path) -> str:
        return refused(*COMMANDS[command].format(run=run, root=root).split(), path)

    return why


def text(path: Path) -> None:
    path.write_text("my only copy")


def dangling(path: Path) -> None:
    path.symlink_to("gone")


def link(path: Path) -> None:
    text(path.with_name("target"))
    path.symlink_to("target")


def state(path: Path) -> tuple[int, ...]:
    """What a write would change: reading a link changes its time of access."""
    was = path.lstat()
    return was.st_ino, was.st_mode, was.st_size, was.st_mtime_ns


@pytest.mark.loads
@pytest.mark.parametrize("prepare", [text, dangling, link, Path.mkdir, os.mkfifo])
@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_that_exists_is_replaced(
    command: str,
    prepare: Callable[[Path], None],
    refusal: Callable[[str, Path], str],
    tmp_path: Path,
) -> None:
    path = tmp_path / "out.png"
    prepare(path)
    before = state(path), sorted(tmp_path.iterdir())
    assert f"{path.name} exists already: name another file" in refusal(command, path)
    assert (state(path), sorted(tmp_path.iterdir())) == before


def test_commands_write_files_in_this_way_only() -> None:
    for path in (ROOT / "engine" / "cli").glob("*.py"):
        source = path.read_text(encoding="utf-8")
        for word in ("write_whole", "write_text", "write_bytes", "open("):
            assert word not in source, path


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENAMETOOLONG])
def test_a_command_says_what_its_error_needs(
    code: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def failing(*_: object) -> None:
        raise OSError(code, os.strerror(code), "some.file")

    monkeypatch.setattr(program, "_print_anywhere", lambda: None)
    monkeypatch.setattr("engine.cli.listing._samples", failing)
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    assert main(["samples"]) == (2 if code == errno.ENAMETOOLONG else 1)  # the user's name
    told = capfd.readouterr().err
    assert told.startswith("some.file cannot be ")
    assert ("disk space" in told) is (code in (errno.ENOSPC, errno.EDQUOT))
