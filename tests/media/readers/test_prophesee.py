"""RAW and DAT files: headers, words that are no events, overflows, times that go back."""

from pathlib import Path

import numpy as np
import pytest

from engine.errors import MediaError
from tests.media.event_files import read
from tests.media.readers.streams import windows_agree

EVT3 = b"% evt 3.0\n% geometry 640x480\n"
EVT2 = b"% evt 2.0\n% geometry 640x480\n"
ROW, COLUMN, BASE, VECTOR_12, VECTOR_8, LOW = 0, 0x2000, 0x3000, 0x4000, 0x5000, 0x6000
HIGH, ON = 0x8000, 0x800


def raw(path: Path, head: bytes, *words: int, form: str = "<u2") -> Path:
    file = path / "recording.raw"
    file.write_bytes(head + np.array(words, form).tobytes())
    return file


def rows(path: Path) -> list[tuple[int, int, int, int]]:
    found = read(path)
    columns = (found.x, found.y, found.t, found.p)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_words_of_evt3(tmp_path: Path) -> None:
    words = (
        *(COLUMN | 5, ROW | 9, LOW | 1, COLUMN | 6),  # before the first time high: no time
        *(HIGH | 2, COLUMN | 7, ROW | 10 | ON, LOW | 3, COLUMN | 8 | ON),  # row without bit 11
        *(BASE | 100 | ON, VECTOR_12 | 0b101, VECTOR_8 | 0xF02, BASE | 300, VECTOR_8 | 1),
        *(HIGH | 2, COLUMN | 1),  # repeated: the lower bits stay
        *(0xA101, 0xE014, 0xF123, 0x7001),  # a trigger and others
        *(HIGH | 3, COLUMN | 2, VECTOR_8 | 1),  # a new one: they are 0
    )
    assert rows(raw(tmp_path, EVT3, *words)) == [
        (7, 0, 8192, 0),
        (8, 10, 8195, 1),
        (100, 10, 8195, 1),
        (102, 10, 8195, 1),
        (113, 10, 8195, 1),
        (300, 10, 8195, 0),
        (1, 10, 8195, 0),
        (2, 10, 12288, 0),
        (308, 10, 12288, 0),
    ]


def test_words_of_evt2(tmp_path: Path) -> None:
    words = (1 << 28 | 7, 8 << 28 | 5, 1 << 28 | 3 << 22 | 9 << 11 | 8, 0xA << 28, 9 << 11 | 7)
    assert rows(raw(tmp_path, EVT2, *words, form="<u4")) == [(9, 8, 323, 1), (9, 7, 320, 0)]


@pytest.mark.parametrize(
    ("head", "size"),
    [
        (b"% evt 3.0\n% geometry 640x480\n% end\n", (640, 480)),
        (b"% format EVT3;height=480;width=640\n", (640, 480)),
        (b"% Date 2020\r\n% evt 3.0\r\n", (21, 11)),  # of the events
    ],
)
def test_headers(tmp_path: Path, head: bytes, size: tuple[int, int]) -> None:
    found = read(raw(tmp_path, head, HIGH, ROW | 10, COLUMN | 20))
    assert (found.width, found.height) == size
    assert any("states no sensor size" in note for note in found.warnings) == (size == (21, 11))


@pytest.mark.parametrize(
    ("head", "words", "reason"),
    [
        (b"no header", (1,), "no header of Prophesee"),
        (b"% evt 4.0\n", (1,), "encoding 'EVT4'"),
        (b"% serial_number 5\n", (1,), "of an unknown kind"),
        (b"% format EVT3;endianness=big\n", (1,), "byte order 'big'"),
        (b"% evt 3.0\n% geometry 0x480\n", (1,), "sensor size '0x480'"),
        (b"% evt 3.0\n% geometry 640x99999\n", (1,), "sensor size"),
        (b"% evt 3.0\n% geometry wide\n", (1,), "sensor size 'wide'"),
        (EVT3, (), "no times in its first 0 words"),
        (EVT3, (ROW, COLUMN | 5), "no times in its first 2 words"),
        (EVT3, (HIGH, LOW | 5), "0 events"),
        (EVT3, (HIGH | 9, COLUMN, HIGH | 8, COLUMN), "goes back by 4,096 us"),
        (EVT3, (HIGH | 9, *[COLUMN] * 5000, HIGH | 7), "goes back by 8,192 us"),
        (EVT3, (HIGH, *[0] * 4096, HIGH | 4000, HIGH, HIGH | 3000, HIGH | 2000), "goes back by"),
        (EVT3, (HIGH, COLUMN | 700), "width 640 but has an event at x = 700"),
    ],
)
def test_what_is_refused(tmp_path: Path, head: bytes, words: tuple[int, ...], reason: str) -> None:
    with pytest.raises(MediaError, match=reason):
        read(raw(tmp_path, head, *words))


def test_an_overflow_inside_a_block_and_between_blocks(tmp_path: Path) -> None:
    lap, late = 1 << 24, (HIGH | 4095, COLUMN)
    words = (*late, HIGH, COLUMN, *late, *[LOW, LOW | 1] * 2500, HIGH, COLUMN)
    found = read(raw(tmp_path, EVT3, *words))
    assert found.t.tolist() == [lap - 4096, lap, 2 * lap - 4096, 2 * lap]


DAT = b"% Data file containing CD events\n% Version 2\n% Width 640\n% Height 480\n"
LAP = 1 << 32


def dat(path: Path, times: list[int], head: bytes = DAT + b"\x0c\x08") -> Path:
    file = path / "recording.dat"
    data = np.arange(len(times)) % 480 << 14 | np.arange(len(times)) % 640
    pairs = np.stack([np.array(times, np.int64) % LAP, data], axis=1)
    file.write_bytes(head + pairs.astype("<u4").tobytes())
    return file


@pytest.mark.parametrize("late", [0, 3000])
def test_late_events_and_an_overflow_of_dat(tmp_path: Path, late: int) -> None:
    rng = np.random.default_rng(3)
    times = LAP - 50_000 + np.sort(rng.integers(0, 100_000, 400)) - rng.integers(0, late + 1, 400)
    path = dat(tmp_path, times.tolist())
    place = np.arange(400)
    true = {"x": place % 640, "y": place % 480, "t": times, "p": place * 0}
    assert windows_agree(path, true) > 20


@pytest.mark.parametrize(
    ("times", "head", "reason"),
    [
        ([], DAT + b"\x0c\x08", "0 events"),
        ([], DAT, "0 events"),
        ([50_000, 40_000, 30_000, 20_000, 0], DAT + b"\x0c\x08", "goes back by 50,000 us"),
        ([1], DAT + b"\x0c\x10", r"type and size \[12, 16\]"),
        ([1], DAT.replace(b"Version 2", b"Version 1") + b"\x0c\x08", "version 1"),
        ([1], DAT.replace(b"640", b"0") + b"\x0c\x08", "sensor size '0x480'"),
        ([1] * 9, DAT.replace(b"640", b"6") + b"\x0c\x08", "width 6 but has an event at x = 8"),
    ],
)
def test_dat_files_that_are_refused(
    tmp_path: Path, times: list[int], head: bytes, reason: str
) -> None:
    with pytest.raises(MediaError, match=reason):
        read(dat(tmp_path, times, head))
