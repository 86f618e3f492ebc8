"""DAT files: headers, overflows of 32 bits, times that go back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.errors import MediaError
from engine.media import event_columns, readers
from engine.media_options import Window
from tests.media.event_files import read
from tests.media.readers.streams import small_blocks

HEAD = b"% Data file containing CD events\n% Version 2\n% Width 640\n% Height 480\n"
LAP = 1 << 32


def recording(path: Path, times: list[int], head: bytes = HEAD + b"\x0c\x08") -> Path:
    file = path / "recording.dat"
    data = np.arange(len(times)) % 480 << 14 | np.arange(len(times)) % 640
    pairs = np.stack([np.array(times, np.int64) % LAP, data], axis=1)
    file.write_bytes(head + pairs.astype("<u4").tobytes())
    return file


def test_records(tmp_path: Path) -> None:
    file = tmp_path / "a.dat"
    file.write_bytes(HEAD + b"\x00\x08" + np.array([7, 1 << 28 | 9 << 14 | 5], "<u4").tobytes())
    found = read(file)
    assert (found.x[0], found.y[0], found.t[0], found.p[0]) == (5, 9, 7, 1)
    assert (found.width, found.height) == (640, 480)


@pytest.mark.parametrize("late", [0, 3000])
def test_late_events_and_an_overflow(tmp_path: Path, late: int) -> None:
    rng = np.random.default_rng(3)
    times = LAP - 50_000 + np.sort(rng.integers(0, 100_000, 400)) - rng.integers(0, late + 1, 400)
    path = recording(tmp_path, times.tolist())
    whole = read(path)
    np.testing.assert_array_equal(whole.t - whole.t[0], times - times[0])
    with small_blocks(), readers.opened(path, path.name) as opened:
        assert opened.duration_us() == times.max() - times.min()
        assert opened.rates(7).sum() == 400
        for start, length in rng.integers(1, 60_000, (40, 2)):
            window = Window(int(start), int(length))
            part, expected = opened.events(window), event_columns.cut(whole, window, path.name)
            np.testing.assert_array_equal(part.t, expected.t)
            np.testing.assert_array_equal(part.x, expected.x)


@pytest.mark.parametrize(
    ("times", "head", "reason"),
    [
        ([], HEAD + b"\x0c\x08", "0 events"),
        ([], HEAD, "0 events"),
        ([0, 90_000, 40_000], HEAD + b"\x0c\x08", "goes back by 50,000 us"),
        ([50_000, 40_000, 30_000, 20_000, 0], HEAD + b"\x0c\x08", "goes back by 50,000 us"),
        ([1], HEAD + b"\x0e\x08", r"type and size \[14, 8\]"),
        ([1], HEAD + b"\x0c\x10", r"type and size \[12, 16\]"),
        ([1], HEAD.replace(b"Version 2", b"Version 1") + b"\x0c\x08", "version 1"),
        ([1], HEAD.replace(b"640", b"0") + b"\x0c\x08", "sensor size '0x480'"),
        ([1] * 9, HEAD.replace(b"640", b"6") + b"\x0c\x08", "width 6 but has an event at x = 8"),
    ],
)
def test_what_is_refused(tmp_path: Path, times: list[int], head: bytes, reason: str) -> None:
    with pytest.raises(MediaError, match=reason):
        read(recording(tmp_path, times, head))
