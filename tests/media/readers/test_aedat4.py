"""AEDAT4 files: the table of packets, files without one, and headers."""

from pathlib import Path
from typing import Any

import numpy.typing as npt
import pytest

from engine.errors import MediaError
from engine.media import events
from engine.media.readers import aedat4
from engine.media_options import Window
from tests.media import event_files
from tests.media.event_files import assert_equal, read, written
from tests.media.readers.streams import windows_agree

EVENTS = event_files.random_events(20_000, 1_000_000, begin=1_700_000_000_000_000)


def table_at(data: bytes) -> tuple[int, int]:
    """Where the header says the place of the table, and the place."""
    for at in range(30, 80):
        place = int.from_bytes(data[at : at + 8], "little")
        if len(data) // 2 < place < len(data):
            return at, place
    raise AssertionError("no table")


def without_table(data: bytes) -> bytes:
    at, place = table_at(data)
    return data[:at] + (2**64 - 1).to_bytes(8, "little") + data[at + 8 : place]


def with_times(path: Path, times: npt.NDArray[Any]) -> Path:
    """A file whose events have these times; faery would refuse to write some of them."""
    file = written(path, "aedat4 plain", EVENTS)
    data = bytearray(without_table(file.read_bytes()))
    for old, new in zip(EVENTS, times, strict=True):
        if old["t"] != new:
            record = old["t"].tobytes() + old["x"].tobytes() + old["y"].tobytes()
            spot = data.index(record)
            data[spot : spot + 8] = int(new).to_bytes(8, "little")
    file.write_bytes(data)
    return file


def test_a_recording_without_a_table_is_read_packet_by_packet(tmp_path: Path) -> None:
    path = written(tmp_path, "aedat4", EVENTS)
    path.write_bytes(without_table(path.read_bytes()))
    found = read(path)
    assert_equal(found, EVENTS)
    assert any("no table of packets; the recording was interrupted" in n for n in found.warnings)
    assert windows_agree(path, {key: EVENTS[key] for key in "xytp"}) > 20


def test_a_window_reads_its_packets_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "aedat4", EVENTS)
    sizes: list[int] = []
    plain = aedat4.root
    with events.opened(path, path.name) as recording:
        monkeypatch.setattr(
            aedat4, "root", lambda data, at=0: (sizes.append(len(data)), plain(data, at))[1]
        )
        recording.events(Window(500_000, 1_000))
        assert len(sizes) == 1
        recording.events(None)
        assert len(sizes) == 1 + 5


def test_a_wrong_table_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path, "aedat4 plain", EVENTS)
    data = bytearray(path.read_bytes())
    _, place = table_at(data)
    counts = (4096).to_bytes(8, "little")
    spot = data.index(counts, place)
    data[spot : spot + 8] = (4095).to_bytes(8, "little")
    path.write_bytes(data)
    with pytest.raises(MediaError, match="not as the table of packets says"):
        read(path)


def test_packets_that_go_back_in_time_are_refused(tmp_path: Path) -> None:
    times = EVENTS["t"].copy()
    times[4096] = times[0] - 77
    with pytest.raises(MediaError, match="its time goes back by 77 us"):
        read(with_times(tmp_path, times))


def test_late_events_inside_a_packet_are_read(tmp_path: Path) -> None:
    expected = EVENTS.copy()
    expected["t"][100:200] = EVENTS["t"][100:200][::-1]
    assert_equal(read(with_times(tmp_path, expected["t"])), expected)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b"EVTS</attr>", b"FRME</attr>", "no stream of events"),
        (b"<node name=", b"<node  ame=", "no stream of events"),
        (b'"int">640<', b'"int">  0<', "states the sensor size 0 x 480"),
        (b"4.0\r\n", b"4.1\r\n", "does not begin with"),
    ],
)
def test_headers_that_are_refused(tmp_path: Path, old: bytes, new: bytes, reason: str) -> None:
    path = written(tmp_path, "aedat4", EVENTS)
    path.write_bytes(path.read_bytes().replace(old, new))
    with pytest.raises(MediaError, match=reason):
        read(path)


@pytest.mark.loads
def test_damaged_bytes_never_give_other_events_silently(tmp_path: Path) -> None:
    """Bytes of the header and of the table are changed, one at a time."""
    path = written(tmp_path, "aedat4", EVENTS[:5000])
    data = path.read_bytes()
    _, place = table_at(data)
    for at in [*range(14, 80), *range(place, len(data), 3)]:
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x5A]) + data[at + 1 :])
        try:
            found = read(path)
        except MediaError:
            continue
        assert_equal(found, EVENTS[:5000])
