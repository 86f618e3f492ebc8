"""Streams of events for tests of readers, and the property that all readers share."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.errors import MediaError
from engine.media import event_columns, events, recording
from engine.media_options import Window
from engine.types import Events

Table = dict[str, np.ndarray[Any, Any]]
COLUMNS = "xytp"


def table(count: int = 5000, seed: int = 1, span_us: int = 2_000_000, begin: int = 0) -> Table:
    """Random events of a sensor of 120 x 90 whose times ascend, in bursts and with pauses."""
    rng = np.random.default_rng(seed)
    centres = rng.integers(0, span_us, 12)
    times = rng.choice(centres, count) + rng.normal(0, span_us / 80, count).astype(np.int64)
    times = np.sort(np.clip(times, 0, span_us))
    return {
        "x": rng.integers(0, 120, count).astype(np.uint16),
        "y": rng.integers(0, 90, count).astype(np.uint16),
        "t": times - times[0] + begin,
        "p": rng.integers(0, 2, count).astype(np.uint8),
    }


@contextmanager
def small_blocks() -> Iterator[None]:
    """Blocks so small that a test's recording has several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "BLOCK", 700)
        patch.setattr(recording.Ascending, "piece", 300)
        yield


def same(found: Events, wanted: Events | Table) -> bool:
    get = wanted.get if isinstance(wanted, dict) else lambda key: getattr(wanted, key)
    return all(np.array_equal(getattr(found, key), get(key)) for key in COLUMNS)


def binned(times: Any, bins: int) -> list[int]:
    """How many of the times fall into each bin of equal length, in whole numbers."""
    since = times.astype(np.int64) - int(times.min())
    return np.bincount(since * bins // (int(since.max()) + 1), minlength=bins).tolist()


def records(values: Table, dtype: Any = None) -> np.ndarray[Any, Any]:
    fields = dtype or [("t", "<i8"), ("x", "<u2"), ("y", "<u2"), ("p", "u1")]
    found = np.zeros(len(values["t"]), fields)
    for key, column in values.items():
        found[key] = column
    return found


def windows_agree(path: Path, true: Table, count: int = 40) -> int:
    """Compares random windows, half of which begin at an event, with a plain mask over the known
    stream; the number with events."""
    rng = np.random.default_rng(7)
    since = true["t"].astype(np.int64) - int(true["t"].min())
    span = int(since.max())
    starts = np.append(rng.choice(since, count // 2), rng.integers(0, span, count - count // 2))
    filled = 0
    with small_blocks(), events.opened(path, path.name) as opened:
        assert opened.duration_us() == span
        for number, start in enumerate(starts.tolist()):
            longest = span // 3 >> number % 16
            window = Window(start, int(rng.integers(1, max(longest, 2))))
            inside = (since >= window.start_us) & (since < window.end_us)
            if not inside.any():
                with pytest.raises(MediaError, match="no events in the window"):
                    opened.events(window)
                continue
            filled += 1
            assert same(opened.events(window), {key: true[key][inside] for key in COLUMNS})
        whole = opened.events(None)
        wide = Window(0, span + 1)
        assert same(opened.events(wide), event_columns.cut(whole, wide, ""))
        for bins in (1, 7, 120):
            assert opened.rates(bins).tolist() == binned(true["t"], bins)
    return filled


def refusal(path: Path, window: Window | None = None) -> str:
    """The one sentence that refuses a file."""
    with pytest.raises(MediaError) as caught:
        events.read(path, window)
    text = str(caught.value)
    assert path.name in text and text.endswith(".") and "\n" not in text and len(text) < 420
    return text


def damaged(data: bytes, rng: np.random.Generator, count: int) -> Iterator[bytes]:
    """A file cut off, with parts of zeros, repeated or exchanged, and with some bytes changed in
    all of it or in its first part, where the headers are."""
    for size in (0, 8, 30, 100, len(data) // 2, len(data) - 10, len(data) - 1):
        yield data[:size]
    size = len(data) // 8
    for at in range(0, len(data) - 2 * size, size):
        first, second = data[at : at + size], data[at + size : at + 2 * size]
        for part in (bytes(2 * size), first + first, second + first):
            yield data[:at] + part + data[at + 2 * size :]
    for end in (len(data), len(data), min(3000, len(data))):
        for _ in range(count):
            broken = bytearray(data)
            for at in rng.integers(min(8, end - 1), end, 4):
                broken[at] ^= int(rng.integers(1, 256))
            yield bytes(broken)


def sentences_of_damage(path: Path, true: Table | None = None) -> int:
    """In how many of its damaged forms a file is refused, each time by one sentence; of the others
    the events are the `true` ones, where the format can tell."""
    count, rng = 0, np.random.default_rng(1)
    for data in damaged(path.read_bytes(), rng, 20):
        path.write_bytes(data)
        for window in (None, Window(0, 300_000)):
            try:
                found = events.read(path, window)
            except MediaError:
                count += 1
                refusal(path, window)
            else:
                inside = np.flatnonzero(true["t"] - true["t"][0] < 300_000) if true else []
                end = len(inside) if window else None
                assert not true or same(found, {key: true[key][:end] for key in COLUMNS})
    return count
