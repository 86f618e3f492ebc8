"""One holder at a time, in one process and in two, and none left behind by a dead one."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from engine.storage.json_lines import Appender, held

ROOT = Path(__file__).resolve().parents[2]
_HOLDER = """
import sys, time
from pathlib import Path
from engine.storage.json_lines import Appender
file = Appender(Path(sys.argv[1]))
print(file.lock(), flush=True)
time.sleep(60)
"""


def test_two_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    with closing(Appender(path)) as first, closing(Appender(path)) as second:
        assert not held(path)
        assert first.lock() and held(path)
        assert not second.lock(patience_s=0.05)
        first.close()
        assert not held(path) and second.lock()
    assert not held(path)


def test_a_file_that_was_replaced_before_it_is_locked_is_not_the_one(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    with closing(Appender(path)) as late:
        path.unlink()
        with closing(Appender(path)) as first:
            assert first.lock() and not late.lock()


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX's")
def test_a_killed_process_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    child = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None and child.stdout.readline().strip() == "True"
    with closing(Appender(path)) as file:
        assert held(path) and not file.lock(patience_s=0.05)
        child.kill()
        child.wait()
        child.stdout.close()
        assert not held(path) and file.lock()


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert not held(tmp_path / "none" / "lines")
