"""The folder of a connection: short enough for sockets, and none is left behind."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest

from engine.benchmark.cluster import ray_folders
from engine.storage.file_lock import FileLock


def aged(path: Path, seconds: float) -> Path:
    path.mkdir(parents=True)
    (path / "file").touch()
    then = time.time() - seconds
    os.utime(path, (then, then))
    return path


def test_what_was_left_behind_goes_and_what_is_in_use_stays(tmp_path: Path) -> None:
    old = aged(tmp_path / f"{ray_folders.PREFIX}old", ray_folders.STALE_S + 60)
    young = aged(tmp_path / f"{ray_folders.PREFIX}young", 0.0)
    other = aged(tmp_path / "stagescope-verify-x", ray_folders.STALE_S + 60)
    used = tmp_path / f"{ray_folders.PREFIX}used"
    used.mkdir()
    lock = FileLock(used / ray_folders.LOCK)
    assert lock.acquire()
    os.utime(used, (0, 0))
    ray_folders.sweep(tmp_path)
    assert [path.exists() for path in (old, young, other, used)] == [False, True, True, True]
    lock.release()
    ray_folders.sweep(tmp_path)
    assert not used.exists()


def test_a_link_that_somebody_has_put_there_is_not_followed(tmp_path: Path) -> None:
    target = aged(tmp_path / "target", 0.0)
    link = tmp_path / f"{ray_folders.PREFIX}link"
    link.symlink_to(target)
    os.utime(link, (0, 0), follow_symlinks=False)
    ray_folders.sweep(tmp_path)
    assert (target / "file").exists()


def test_sockets_have_room_below_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("long" * 12)))
    made = ray_folders.make()
    try:
        session = "session_2026-11-21_16-42-42_123456_1234567/sockets/plasma_store"
        assert len(str(made / session)) <= 107
    finally:
        made.rmdir()
