"""One holder at a time, in one process and in two, and none left behind by a dead one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.storage.file_lock import FileLock, held

ROOT = Path(__file__).resolve().parents[2]
_HOLDER = """
import sys, time
from pathlib import Path
from engine.storage.file_lock import FileLock
print(FileLock(Path(sys.argv[1])).acquire(), flush=True)
time.sleep(60)
"""


def test_two_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert not held(tmp_path / "lock")
    assert first.acquire() and held(tmp_path / "lock")
    assert not second.acquire(patience_s=0.05)
    first.release()
    assert not held(tmp_path / "lock") and second.acquire()
    second.release()
    second.release()


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX's")
def test_a_killed_process_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    child = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None and child.stdout.readline().strip() == "True"
    lock = FileLock(path)
    assert held(path) and not lock.acquire(patience_s=0.05)
    child.kill()
    child.wait()
    child.stdout.close()
    assert not held(path) and lock.acquire()
    lock.release()


def test_a_folder_that_is_not_there_raises(tmp_path: Path) -> None:
    assert not held(tmp_path / "none" / "lock")
    with pytest.raises(FileNotFoundError):
        FileLock(tmp_path / "none" / "lock").acquire()
