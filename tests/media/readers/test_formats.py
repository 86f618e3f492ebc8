"""One recording in every format: the same events, pictures and features, whole and in a window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine import media
from engine.media_options import Window
from engine.types import MediaOptions, Sample
from tests.media.readers.streams import Table, table
from tests.media.readers.test_caltech import saved as save_bin
from tests.media.readers.test_npy import boxed, records
from tests.media.readers.test_npz import bins
from tests.media.readers.test_text import saved as save_text

SENSOR = (120, 90)


def _npy(path: Path, true: Table) -> None:
    np.save(path, records(true))


def _dict(path: Path, true: Table) -> None:
    path.write_bytes(boxed(dict(true)))


def _bins(path: Path, true: Table) -> None:
    np.savez_compressed(path, event_bins=bins(true))


def _arrays(path: Path, true: Table) -> None:
    np.savez(path, **true)


def _seconds(path: Path, true: Table) -> None:
    rows = zip(*(true[key].tolist() for key in "ptyx"), strict=True)
    lines = [f"{p} {t / 1e6:.6f} {y} {x}" for p, t, y, x in rows]
    path.write_text("\n".join(["# p t_s y x", *lines]))


def _hdf5(path: Path, true: Table) -> None:
    pytest.importorskip("h5py", reason="the extra for event files is not installed")
    pytest.importorskip("hdf5plugin", reason="the extra for event files is not installed")
    from tests.media.readers import test_hdf5

    write = test_hdf5.dsec if path.name.startswith("dsec") else test_hdf5.saved
    write(path, true)


def _faery(path: Path, true: Table) -> None:
    faery = pytest.importorskip("faery", reason="faery is not installed")
    array = np.zeros(len(true["t"]), faery.EVENTS_DTYPE)
    for key in "xyt":
        array[key] = true[key]
    array["on"] = true["p"]
    version = {"evt2": "evt2", "evt3": "evt3"}.get(path.stem)
    faery.events_stream_from_array(array, SENSOR).to_file(path, version=version)


FORMATS: dict[str, Callable[[Path, Table], object]] = {
    "records.npy": _npy,
    "dict.npy": _dict,
    "bins.npz": _bins,
    "arrays.npz": _arrays,
    "a.bin": save_bin,
    "a.csv": save_text,
    "seconds.txt": _seconds,
    "evqa.h5": _hdf5,
    "dsec.h5": _hdf5,
    "evt2.raw": _faery,
    "evt3.raw": _faery,
    "a.dat": _faery,
    "a.aedat4": _faery,
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("window", [None, Window(0, 900_000)], ids=["whole", "window"])
def test_every_format_gives_the_same_pictures(
    tmp_path: Path, name: str, window: Window | None
) -> None:
    true = table(4000)
    # Each corner is hit in the beginning, so that all files have the size of the sensor.
    true["x"][:2], true["y"][:2] = (0, SENSOR[0] - 1), (0, SENSOR[1] - 1)
    how = MediaOptions(window=window)
    FORMATS[name](tmp_path / name, true)
    _dict(tmp_path / "plain.npy", true)
    found = media.load(Sample("a", "a", events=tmp_path / name), "events", how)
    plain = media.load(Sample("a", "a", events=tmp_path / "plain.npy"), "events", how)
    assert all(map(np.array_equal, found.images, plain.images)) and len(found.images) == 5
    if not name.startswith("dsec"):  # its sensor is larger, which is part of the digest
        assert found.digest == plain.digest
    # The control: one event of another polarity is another digest.
    other = true | {"p": true["p"].copy()}
    other["p"][100] ^= 1
    FORMATS[name](tmp_path / name, other)
    changed = media.load(Sample("a", "a", events=tmp_path / name), "events", how)
    assert changed.digest != found.digest
