"""Writes event files of the formats that others define: with faery, and EVT2.1 by hand."""

from itertools import groupby
from pathlib import Path
from typing import Any

import faery
import numpy as np
import numpy.typing as npt

from engine.media.events import opened
from engine.types import Events

Array = npt.NDArray[Any]
SIZE = (640, 480)
# Format: file name and faery's options; EVT2.1, which faery lacks, has the word order instead.
FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    "evt2": ("evt2.raw", {"version": "evt2"}),
    "evt3": ("evt3.raw", {"version": "evt3"}),
    "evt2.1": ("evt21.raw", {}),
    "evt2.1 legacy": ("evt21_legacy.raw", {}),
    "dat": ("recording.dat", {}),
    "aedat4": ("lz4.aedat4", {}),
    "aedat4 zstd": ("zstd.aedat4", {"compression": ("zstd", 3)}),
    "aedat4 plain": ("plain.aedat4", {"compression": None}),
}


def events(t: Array, seed: int = 0, size: tuple[int, int] = SIZE) -> Array:
    """Events at the given times, at random places."""
    rng = np.random.default_rng(seed)
    found = np.zeros(len(t), faery.EVENTS_DTYPE)
    found["t"] = t
    found["x"], found["y"] = rng.integers(0, size[0], len(t)), rng.integers(0, size[1], len(t))
    found["p"] = rng.integers(0, 2, len(t))
    return found


def random_events(count: int, span_us: int, begin: int = 0, seed: int = 0) -> Array:
    """Events at random times in increasing order."""
    rng = np.random.default_rng(seed)
    return events(begin + np.sort(rng.integers(0, span_us, count)), seed)


def rows_of_events(count: int) -> Array:
    """Events of which many share a time and a row, as EVT3 and EVT2.1 store them in vectors."""
    rng = np.random.default_rng(0)
    found = events(np.sort(rng.integers(0, count // 8, count // 4).repeat(4)))
    for name in ("y", "p"):
        found[name] = found[name][::4].repeat(4)
    found["x"] = found["x"][::4].repeat(4) // 64 * 64 + np.tile([0, 3, 9, 30], count // 4)
    return found


def ordered(form: str, found: Array) -> Array:
    """The events; for EVT2.1 in the order of its words: by polarity, then by column."""
    if not form.startswith("evt2.1"):
        return found
    found = np.unique(found)
    return found[np.lexsort((found["x"], found["p"], found["y"], found["t"]))]


def written(path: Path, form: str, found: Array, size: tuple[int, int] = SIZE) -> Path:
    """The file of a format in a folder."""
    name, options = FORMATS[form]
    if form.startswith("evt2.1"):
        (path / name).write_bytes(evt21(found, size, legacy=form.endswith("legacy")))
        return path / name
    stream = faery.events_stream_from_array(found, size)
    stream.to_file(path / name, zero_t0=False, enforce_monotonic_timestamps=True, **options)
    return path / name


def evt21(found: Array, size: tuple[int, int] = SIZE, *, legacy: bool = False) -> bytes:
    """EVT2.1 from the documentation: neighbours of a group of 32 columns share a word."""
    words, high = [8 << 60], 0
    rows = found.tolist()  # t, x, y, p as numbers of Python, which are quicker
    for (t, y, p, column), group in groupby(
        rows, lambda row: (row[0], row[2], row[3], row[1] // 32)
    ):
        while high < t >> 6:
            high = min(t >> 6, high + (1 << 26))
            words.append(8 << 60 | (high & 0xFFFFFFF) << 32)
        mask = 0
        for _, x, _, _ in group:
            bit = 1 << x % 32
            assert bit > mask, "a word holds columns in increasing order"
            mask |= bit
        words.append(p << 60 | (t & 63) << 54 | column * 32 << 43 | y << 32 | mask)
    order = "legacy" if legacy else "little"
    body = np.array(words, "<u8")
    if legacy:
        body = body.view("<u4").reshape(-1, 2)[:, ::-1].copy()
    head = f"% evt 2.1\n% format EVT21;endianness={order};height={size[1]};width={size[0]}\n% end\n"
    return head.encode() + body.tobytes()


def assert_equal(found: Events, expected: Array) -> None:
    assert len(found) == len(expected)
    for name, column in zip("xytp", (found.x, found.y, found.t, found.p), strict=True):
        np.testing.assert_array_equal(column, expected[name], name)


def read(path: Path) -> Events:
    with opened(path, path.name) as recording:
        return recording.events(None)
