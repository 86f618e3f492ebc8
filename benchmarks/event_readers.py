"""Event files: each reader against two decoders of the same file, and a window of a long recording.

A million events are written in every format and read by turns by the engine, by faery and by
eventcv, as far as they know the format, CPU time; the run stops if the events differ.  Then a file
of 2 GB is opened and 50 ms from its middle are read, in a process of its own for each format, for
the time and the memory.  Needs the extra `events` and faery.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.machine import Row, by_turns, limit, main, rows, say

EVENTS = 1_000_000
WIDTH, HEIGHT = 640, 480
Table = dict[str, npt.NDArray[Any]]
LONG = ("evt2.raw", "dsec.h5", "npy")
_WINDOW = """
import json, re, sys, time
from pathlib import Path
from engine.media import events
from engine.media.readers import npy, {module}  # imports are not part of the figure
from engine.media_options import Window
path = Path(sys.argv[1])
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
Path("/proc/self/clear_refs").write_text("5")  # the peak begins here: proc(5)
before, start = peak(), time.perf_counter()
with events.opened(path, path.name) as recording:
    duration = recording.duration_us()
    opened = time.perf_counter() - start
    found = recording.events(Window(duration // 2, 50_000))
    print(json.dumps([opened, time.perf_counter() - start, before, len(found), peak()]))
"""


def measure(quick: bool) -> list[Row]:
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in WRITERS:
            say(f"{name} ...")
            found += compared(name, Path(folder), 10_000 if quick else EVENTS, 1 if quick else 5)
        for name in LONG:
            found += window(name, Path(folder), 1 << (20 if quick else 31))
    return found


def compared(name: str, folder: Path, count: int, rounds: int) -> list[Row]:
    """The CPU time of each decoder by turns; SystemExit if the events differ."""
    true, path = table(count), folder / f"one.{name}"
    WRITERS[name](path, true)
    others = {other: read for other, read in OTHERS.items() if name in KNOWN[other]}
    wanted = _of_npz(true) if name == "caltech.bin" else true
    ways: dict[str, Callable[[], Any]] = {}
    for reader, read in {"engine": _engine, **others}.items():
        try:
            events = read(path)
        except ImportError as error:
            say(f"{reader}: {error}")
            continue
        if not all(np.array_equal(events[key], wanted[key]) for key in "xytp"):
            raise SystemExit(f"{reader} reads other events from {name}.")
        ways[reader if reader == "engine" else f"{reader} alone"] = partial(read, path)
    times = by_turns(ways, rounds)
    path.unlink()
    what = f"{count:,} events from {name}, read and checked"
    return [limit(what, times["engine"], "ms"), *rows(what, times)]


def window(name: str, folder: Path, size: int) -> list[Row]:
    """Opening a long file and reading 50 ms from its middle: ms, and MB above the imports."""
    path = folder / f"long.{name}"
    LONG_WRITERS[name](path, size)
    module = {"dsec.h5": "hdf5", "npy": "npy"}.get(name, "prophesee")
    code = _WINDOW.replace("{module}", module)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    _, both, before, events, peak = json.loads(done.stdout)
    what = f"{events:,} events from the middle of {path.stat().st_size / 1e9:.2g} GB of {name}"
    path.unlink()
    memory = limit(f"{what}, memory", [(peak - before) / 1024], "MB")
    return [limit(f"{what}, wall", [1000 * both], "ms"), memory]


def table(count: int, seed: int = 0) -> Table:
    """Random events in order of time, no two at the same time: 1 to 2 us apart."""
    rng = np.random.default_rng(seed)
    return {
        "x": rng.integers(0, WIDTH, count).astype(np.uint16),
        "y": rng.integers(0, HEIGHT, count).astype(np.uint16),
        "t": np.cumsum(rng.integers(1, 3, count)).astype(np.int64),
        "p": rng.integers(0, 2, count).astype(np.uint8),
    }


def _of_npz(true: Table) -> Table:
    """The events as the 5 bytes of N-Caltech101 can hold them."""
    return {**true, "x": true["x"] % 240, "y": true["y"] % 180}


# Writers
def _camera(form: str) -> Callable[[Path, Table], None]:
    """The format of a maker of cameras, as the tests write it."""

    def write(path: Path, true: Table) -> None:
        from tests.media import event_files

        array = event_files.events(true["t"])
        for key in "xyp":
            array[key] = true[key]
        event_files.written(path.parent, form, array, (WIDTH, HEIGHT)).rename(path)

    return write


def _dsec(path: Path, true: Table) -> None:
    import h5py
    import hdf5plugin

    with h5py.File(path, "w") as file:
        for key, kind in (("x", "u2"), ("y", "u2"), ("t", "u4"), ("p", "u1")):
            blosc = hdf5plugin.Blosc(cname="zstd", clevel=1, shuffle=1)
            file.create_dataset(f"events/{key}", data=true[key].astype(kind), chunks=True, **blosc)
        steps = np.arange(0, int(true["t"][-1]) // 1000 + 2) * 1000
        file["ms_to_idx"] = np.searchsorted(true["t"], steps).astype("u8")
        file["t_offset"] = np.int64(0)


def _evqa(path: Path, true: Table) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for name, key in (("xs", "x"), ("ys", "y"), ("ts", "t"), ("ps", "p")):
            file.create_dataset(f"events/{name}", data=true[key])


def _npy(path: Path, true: Table) -> None:
    kinds = [("x", "<u2"), ("y", "<u2"), ("t", "<i8"), ("p", "u1")]
    found = np.empty(len(true["t"]), dtype=kinds)
    for key in "xytp":
        found[key] = true[key]
    with path.open("wb") as file:
        np.save(file, found, allow_pickle=False)


def _csv(path: Path, true: Table) -> None:
    import pandas as pd

    pd.DataFrame({key: true[key] for key in "txyp"}).to_csv(path, index=False)


def _npz(path: Path, true: Table) -> None:
    with path.open("wb") as file:
        np.savez(file, **true)  # type: ignore[arg-type]


def _eventbench(path: Path, true: Table) -> None:
    """An object array of 16 time bins, as EventBench publishes them."""
    ends = np.linspace(0, len(true["t"]), 17).astype(int)
    bins = np.empty(16, object)
    for number, (first, last) in enumerate(pairwise(ends)):
        bins[number] = {key: values[first:last] for key, values in true.items()}
    with path.open("wb") as file:
        np.savez(file, event_bins=bins)


def _caltech(path: Path, true: Table) -> None:
    some = _of_npz(true)
    last = some["p"].astype(np.uint64) << 23 | some["t"].astype(np.uint64)
    data = np.empty((len(last), 5), np.uint8)
    data[:, 0], data[:, 1] = some["x"], some["y"]
    data[:, 2], data[:, 3], data[:, 4] = last >> 16, last >> 8 & 255, last & 255
    path.write_bytes(data.tobytes())


WRITERS: dict[str, Callable[[Path, Table], None]] = {
    "npy": _npy,
    "npz": _npz,
    "eventbench.npz": _eventbench,
    "evt2.raw": _camera("evt2"),
    "evt2.1.raw": _camera("evt2.1"),
    "evt3.raw": _camera("evt3"),
    "dat": _camera("dat"),
    "aedat4": _camera("aedat4"),
    "dsec.h5": _dsec,
    "evqa.h5": _evqa,
    "caltech.bin": _caltech,
    "csv": _csv,
}


def _records(start: int, count: int) -> npt.NDArray[Any]:
    rng = np.random.default_rng(start)
    x, y, p = (rng.integers(0, n, count).astype(np.uint64) for n in (WIDTH, HEIGHT, 2))
    t = np.arange(start, start + count, dtype=np.uint64)
    found = np.empty(count, dtype=[("x", "<u2"), ("y", "<u2"), ("t", "<i8"), ("p", "u1")])
    found["x"], found["y"], found["t"], found["p"] = x, y, t, p
    return found


def _long_npy(path: Path, size: int) -> None:
    kind = [("x", "<u2"), ("y", "<u2"), ("t", "<i8"), ("p", "u1")]
    count = size // np.dtype(kind).itemsize
    table = np.lib.format.open_memmap(path, "w+", np.dtype(kind), (count,))
    for start in range(0, count, 1 << 20):
        some = min(1 << 20, count - start)
        table[start : start + some] = _records(start, some)
    table.flush()


def _long_evt2(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.write(f"% evt 2.0\n% format EVT2;height={HEIGHT};width={WIDTH}\n% end\n".encode())
        start = 0
        while file.tell() < size:
            file.write(_evt2(start, 1 << 20).tobytes())
            start += 1 << 20


def _evt2(start: int, count: int) -> npt.NDArray[Any]:
    """An event each microsecond, with a time high every 64."""
    rng = np.random.default_rng(start)
    t = np.arange(start, start + count, dtype=np.uint64).reshape(-1, 64)
    x, y = rng.integers(0, WIDTH, t.shape), rng.integers(0, HEIGHT, t.shape)
    p = rng.integers(0, 2, t.shape)
    words = (p.astype(np.uint64) << 28) | ((t & 63) << 22) | (x.astype(np.uint64) << 11)
    highs = (8 << 28 | (t[:, :1] >> 6 & 0xFFFFFFF)).astype(np.uint64)
    return np.concatenate([highs, words | y.astype(np.uint64)], axis=1).astype("<u4")


def _long_dsec(path: Path, size: int) -> None:
    """Blosc-compressed columns of about the given size before compression."""
    import h5py
    import hdf5plugin

    count, kinds = size // 9, {"x": "u2", "y": "u2", "t": "u4", "p": "u1"}
    with h5py.File(path, "w") as file:
        blosc = hdf5plugin.Blosc(cname="zstd", clevel=1, shuffle=1)
        columns = {
            key: file.create_dataset(f"events/{key}", (count,), kind, chunks=(1 << 16,), **blosc)
            for key, kind in kinds.items()
        }
        for start in range(0, count, 1 << 20):
            some = _records(start, min(1 << 20, count - start))
            for key, column in columns.items():
                column[start : start + len(some)] = some[key]
        file["ms_to_idx"] = np.minimum(np.arange(0, count // 1000 + 2) * 1000, count).astype("u8")
        file["t_offset"] = np.int64(0)


LONG_WRITERS: dict[str, Callable[[Path, int], None]] = {
    "npy": _long_npy,
    "dsec.h5": _long_dsec,
    "evt2.raw": _long_evt2,
}


# Readers
def _engine(path: Path) -> Table:
    from engine.media import events

    found = events.read(path)
    return {key: getattr(found, key) for key in "xytp"}


def _by_faery(path: Path) -> Table:
    import faery

    found = faery.events_stream_from_file(path).to_array()
    return {"x": found["x"], "y": found["y"], "t": found["t"], "p": found["p"]}


def _by_eventcv(path: Path) -> Table:
    import eventcv

    found = eventcv.load(str(path), time_unit="microseconds").numpy()
    return {key: found[:, column] for column, key in enumerate("xytp")}


OTHERS: dict[str, Callable[[Path], Table]] = {"faery": _by_faery, "eventcv": _by_eventcv}
KNOWN = {
    "faery": {"evt2.raw", "evt3.raw", "dat", "aedat4"},
    "eventcv": {"evt2.raw", "evt3.raw", "dat", "aedat4", "csv", "evqa.h5"},
}

if __name__ == "__main__":
    main("event_readers", measure, __doc__)
