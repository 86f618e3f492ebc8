"""N-Caltech101's .bin: five bytes per event, checked by a plain loop."""

from pathlib import Path

import numpy as np
import pytest

from engine.media import events
from engine.media_options import Window
from tests.media.readers.streams import Table, refusal, same, table, windows_agree


def packed(values: Table) -> bytes:
    columns = zip(values["x"], values["y"], values["p"], values["t"], strict=True)
    return b"".join(
        bytes([int(x), int(y)]) + (int(p) << 23 | int(t)).to_bytes(3, "big")
        for x, y, p, t in columns
    )


def saved(path: Path, values: Table) -> Path:
    path.write_bytes(packed(values))
    return path


def decoded(data: bytes) -> Table:
    """The second decoder: a loop over the published layout."""
    rows = []
    for at in range(0, len(data), 5):
        word = int.from_bytes(data[at : at + 5], "big")
        rows.append((word >> 32, word >> 24 & 255, word & (1 << 23) - 1, word >> 23 & 1))
    return dict(zip("xytp", np.array(rows).T, strict=True))


def test_a_file_equals_the_second_decoder(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.bin", table())
    found = events.read(path)
    assert same(found, decoded(path.read_bytes())) and same(found, table())
    assert (found.width, found.height, found.warnings[1:]) == (120, 90, ())
    # The control: another reading of the bytes, with x and y exchanged, is noticed.
    swapped = table() | {"x": table()["y"], "y": table()["x"]}
    assert not same(found, swapped)


def test_windows(tmp_path: Path) -> None:
    true = table(9000, begin=1234)
    assert windows_agree(saved(tmp_path / "a.bin", true), true) > 20
    with pytest.raises(AssertionError):
        windows_agree(tmp_path / "a.bin", true | {"x": true["x"] ^ 1})


def test_times_may_step_back(tmp_path: Path) -> None:
    true = table(9000)
    true["t"] = np.roll(true["t"], 4000)
    path = saved(tmp_path / "a.bin", true)
    inside = (true["t"] >= 300_000) & (true["t"] < 800_000)
    part = {key: values[inside] for key, values in true.items()}
    assert same(events.read(path, Window(300_000, 500_000)), part)


def test_overflows_of_the_counter(tmp_path: Path) -> None:
    """An event at y = 240 adds 8192 us to all after it and is no event."""
    true = table(2000, span_us=8000)
    marked = {
        key: np.insert(values, [500, 1200], values[[500, 1200]]) for key, values in true.items()
    }
    marked["y"][[500, 1201]] = 240
    path = saved(tmp_path / "a.bin", marked)
    true["t"][500:] += 8192
    true["t"][1200:] += 8192
    found = events.read(path)
    assert same(found, true)
    assert "a.bin overflowed 2 times" in found.warnings[0]
    assert same(events.read(path, Window(0, 1_000_000)), true)


@pytest.mark.parametrize("window", [None, Window(1000, 100_000)])
def test_files_of_another_kind(tmp_path: Path, window: Window | None) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(packed(table(50))[:-2])
    assert "cut off" in refusal(path, window)
    path.write_bytes(np.random.default_rng(1).bytes(50_000))
    assert "step back" in refusal(path, window)
    path.write_bytes(bytes(50_000))
    assert "10,000 of its 10,000 events are zeros" in refusal(path, window)
    path.write_bytes(b"")
    assert "empty" in refusal(path, window)
    little = np.frombuffer(packed(table()), np.uint8).reshape(-1, 5)[:, [0, 1, 4, 3, 2]]
    path.write_bytes(little.tobytes())
    assert "step back" in refusal(path, window)
