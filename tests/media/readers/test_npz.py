"""EventBench's archives, plain archives, and archives that cost more than their bytes."""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.media import events
from engine.media.readers import npz
from tests.conftest import SHARED
from tests.media.readers.streams import (
    COLUMNS,
    Table,
    records,
    refusal,
    same,
    table,
    windows_agree,
)

SAMPLE = SHARED / "eventbench" / "event_bins.npz"


def bins(values: Table, count: int = 16) -> np.ndarray[Any, Any]:
    """An object array of time bins, as EventBench saves it."""
    found = np.empty(count, object)
    found[:] = np.array_split(records(values), count)
    return found


@pytest.mark.skipif(not SAMPLE.exists(), reason="the published EventBench sample is not here")
def test_the_published_sample_equals_numpys_own_reading() -> None:
    found = events.read(SAMPLE)
    with np.load(SAMPLE, allow_pickle=True) as archive:  # the second decoder, on a known file
        wanted = np.concatenate(list(archive["event_bins"]))
    assert same(found, {key: wanted[key] for key in COLUMNS})
    assert (len(found), found.width, found.height) == (785_830, 320, 240)
    assert not same(found, {key: wanted[key][::-1] for key in COLUMNS})  # the control


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_time_bins(tmp_path: Path, save: Any) -> None:
    true = table(3000)
    save(tmp_path / "a.npz", event_bins=bins(true))
    assert windows_agree(tmp_path / "a.npz", true, 10) > 3


@pytest.mark.parametrize(
    "names", ["xytp", ("xs", "ys", "ts", "ps"), ("X", "Y", "timestamps", "pol")]
)
def test_plain_arrays(tmp_path: Path, names: Any) -> None:
    true = table(3000)
    arrays = {name: true[key] for name, key in zip(names, COLUMNS, strict=True)}
    np.savez_compressed(tmp_path / "a.npz", **arrays, other=np.zeros((3, 3)))
    assert windows_agree(tmp_path / "a.npz", true, 10) > 3


def test_code_in_an_archive_does_not_run(tmp_path: Path) -> None:
    class Touch:
        def __reduce__(self) -> tuple[Any, Any]:
            return Path.touch, (tmp_path / "made",)

    box = np.empty(1, object)
    box[0] = Touch()
    np.savez(tmp_path / "a.npz", event_bins=box)
    assert "a.npz is refused" in refusal(tmp_path / "a.npz")
    assert not (tmp_path / "made").exists()
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:  # the control
        pickle.loads(archive.read("event_bins.npy")[128:])  # noqa: S301
    assert (tmp_path / "made").exists()


def member(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def archived(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_archives_that_are_refused(tmp_path: Path) -> None:
    path, numbers = tmp_path / "a.npz", table(100)
    plain = {f"{key}.npy": member(values) for key, values in numbers.items()}
    assert len(events.read(archived(path, plain))) == 100  # the control
    assert "unusual compression" in refusal(archived(path, plain, zipfile.ZIP_BZIP2))
    for members, why in (
        ({"word/document.xml": b"<xml>"}, "without arrays"),
        ({}, "without arrays"),
        ({"a.npy": b"", "b.npy": b""}, "found: a, b"),
        ({f"{number}.npy": b"" for number in range(70)}, "too many"),
        (plain | {"x.npy": member(np.eye(3))}, "one number per event"),
        (plain | {"x.npy": member(np.arange(3))}, "different lengths"),
        ({name: member(np.zeros(0)) for name in plain}, "holds 0 events"),
        (plain | {"t.npy": member(numbers["t"] / 1e6)}, "whole numbers of microseconds"),
    ):
        assert why in refusal(archived(path, members))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    """Which of them other programs read is not defined."""
    path = archived(tmp_path / "a.npz", {f"{key}.npy": member(v) for key, v in table().items()})
    assert len(events.read(path)) == 5000
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("x.npy", member(table(seed=2)["x"]))
    assert "with several members of one name" in refusal(path)


def test_sizes_are_checked_before_unpacking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archived(tmp_path / "a.npz", {"x.npy": bytes(5_000_000)})
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(npz, "MAX_BYTES", 1_000_000)
    assert "would unpack to 5,000,000 bytes" in refusal(path)


def test_a_member_that_is_larger_than_declared(tmp_path: Path) -> None:
    path = archived(tmp_path / "a.npz", {"x.npy": bytes(5000)}, zipfile.ZIP_STORED)
    data = path.read_bytes()
    declared = (5000).to_bytes(4, "little")
    path.write_bytes(data.replace(declared, (100).to_bytes(4, "little")))
    assert "damaged" in refusal(path) or "another size" in refusal(path)
