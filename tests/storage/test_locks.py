"""One holder at a time, in one process and in two, and none left behind by a dead one."""

from contextlib import closing
from pathlib import Path

from engine.storage.json_lines import Appender, held

ROOT = Path(__file__).resolve().parents[2]


def test_two_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    with closing(Appender(path)) as first, closing(Appender(path)) as second:
        assert not held(path)
        assert first.lock() and held(path)
        assert not second.lock(patience_s=0.05)
        first.close()
        assert not held(path) and second.lock()
    assert not held(path)


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert not held(tmp_path / "none" / "lines")
