"""JSON lines: whole or not there, past torn tails, full disks and broken lines."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from engine.plain_files import checked
from engine.storage import json_lines
from engine.storage.json_lines import Appender, DamagedLines

ROOT = Path(__file__).resolve().parents[2]


def objects(path: Path, damage: DamagedLines | None = None) -> list[dict[str, object]]:
    return [value for _, value in json_lines.read(path, checked, damage)]


def test_what_is_appended_is_read_back_and_found_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with closing(Appender(path)) as appender:
        for number in range(3):
            appender.append({"n": number, "text": "Größe\n🚗"})
    found = list(json_lines.read(path, checked))
    assert [value["n"] for _, value in found] == [0, 1, 2] and json_lines.count(path) == 3
    assert json_lines.at(path, found[2][0], checked) == found[2][1]
    assert json_lines.at(path, found[2][0] + 1, checked) is None


def test_a_file_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert objects(tmp_path / "none") == [] and json_lines.count(tmp_path / "none") == 0


@pytest.mark.parametrize("whole", [b'{"n": 1}\n{"n": 2}\n', b""])
@pytest.mark.parametrize("tail", [b'{"n": 9', b"x", b'{"n": 9}', b"\x00" * 200_000])
def test_a_torn_last_line_is_left_out_and_cut(tmp_path: Path, whole: bytes, tail: bytes) -> None:
    path, damage = tmp_path / "a.jsonl", DamagedLines()
    path.write_bytes(whole + tail)
    assert len(objects(path, damage)) == whole.count(b"\n") and damage.torn
    with closing(Appender(path)) as appender:
        assert appender.cut_torn_line() == len(tail) and appender.cut_torn_line() == 0
        appender.append({"n": 3})
    assert path.read_bytes() == whole + b'{"n":3}\n'


def test_another_writers_torn_line_is_ended_not_cut(tmp_path: Path) -> None:
    path, damage = tmp_path / "a.jsonl", DamagedLines()
    path.write_bytes(b'{"n": 1')
    with closing(Appender(path)) as appender:
        appender.end_torn_line()
        appender.append({"n": 2})
    assert objects(path, damage) == [{"n": 2}] and damage.broken == [1]


def test_broken_lines_are_numbered_and_left_out(tmp_path: Path) -> None:
    path, damage = tmp_path / "a.jsonl", DamagedLines()
    deep = b"[" * 100_000
    path.write_bytes(b'{"n": 1}\nodd\n[1]\n' + deep + b'\n\xff\xfe\n{"n": 2}\n')
    assert objects(path, damage) == [{"n": 1}, {"n": 2}]
    assert damage.broken == [2, 3, 4, 5] and not damage.torn


def test_a_full_disk_leaves_nothing_of_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk takes ten bytes of the second line and then refuses."""
    path = tmp_path / "a.jsonl"
    appender = Appender(path)
    appender.append({"n": 1})
    write, room = os.write, [10]

    def full(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(descriptor, data[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        appender.append({"n": 2, "text": "x" * 50})
    monkeypatch.undo()
    assert path.read_bytes() == b'{"n":1}\n'
    appender.append({"n": 3})
    appender.close()
    assert objects(path) == [{"n": 1}, {"n": 3}]


_WRITER = """
import sys
from pathlib import Path
from engine.storage.json_lines import Appender
appender = Appender(Path(sys.argv[1]))
for number in range(10**9):
    appender.append({"n": number, "text": "x" * 5000})
    print(number, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX's")
def test_kill_9_loses_nothing_that_was_appended(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    child = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    said = [child.stdout.readline() for _ in range(50)]
    time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    rest, _ = child.communicate()
    last = int((*said, *rest.split())[-1])
    kept = [value["n"] for value in objects(path)]
    assert kept == list(range(len(kept))) and len(kept) >= last + 1
    assert json.loads(path.read_bytes().splitlines()[last])["n"] == last
