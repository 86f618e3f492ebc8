"""HDF5: DSEC with its index, offset and map; other layouts; files that reach outside."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.errors import MediaError
from engine.media import events
from engine.media.readers import hdf5
from engine.media_options import Window
from tests.media.readers.streams import (
    COLUMNS,
    Table,
    records,
    refusal,
    same,
    sentences_of_damage,
    table,
    windows_agree,
)

h5py = pytest.importorskip("h5py", reason="the extra for event files is not installed")
hdf5plugin = pytest.importorskip("hdf5plugin", reason="the extra for event files is not installed")

OFFSET = 52_643_283_000

PLAIN = {key: f"events/{key}" for key in COLUMNS}


def index_of(times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.searchsorted(times, np.arange(0, int(times.max()) + 2000, 1000))


def dsec(path: Path, true: Table, **changed: Any) -> Path:
    """A file as DSEC publishes it: times from the offset on, Blosc chunks, an index."""
    blosc = hdf5plugin.Blosc(cname="zstd")
    values = true | {"t": (true["t"] - true["t"].min()).astype(np.uint32)}
    top = {"ms_to_idx": index_of(values["t"]), "t_offset": np.int64(true["t"].min())} | changed
    with h5py.File(path, "w") as file:
        for key, column in values.items():
            file.create_dataset(f"events/{key}", data=column, chunks=(1000,), **blosc)
        for key, value in top.items():
            if value is not None:
                file[key] = value
    return path


def saved(path: Path, values: Table, names: dict[str, str] | None = None, **attrs: Any) -> Path:
    with h5py.File(path, "w") as file:
        for key, name in (names or PLAIN).items():
            file[name] = values[key]
        file.attrs.update(attrs)
    return path


@pytest.fixture
def true() -> Table:
    return table(9000, begin=OFFSET)


@pytest.mark.parametrize("offset", [np.uint64(2**63), np.float64(5), np.arange(3)])
def test_an_offset_that_is_no_time(tmp_path: Path, true: Table, offset: Any) -> None:
    assert "has a t_offset" in refused(dsec(tmp_path / "events.h5", true, t_offset=offset))


def rectify_map(path: Path, height: int = 90, width: int = 120) -> Any:
    rows, columns = np.mgrid[:height, :width]
    noise = np.random.default_rng(1).normal(0, 3, (height, width, 2))
    found = (np.stack([columns, rows], -1) + noise).astype(np.float32)
    found[0, 0] = np.nan
    with h5py.File(path.with_name("rectify_map.h5"), "w") as file:
        file["rectify_map"] = found
    return found


def test_a_rectify_map_beside_the_file_is_applied(tmp_path: Path, true: Table) -> None:
    path = dsec(tmp_path / "events.h5", true)
    raw, mapping = events.read(path), rectify_map(path)
    found, wanted = events.read(path), []  # the second decoder: a loop
    for x, y, t, p in zip(*(true[key].tolist() for key in COLUMNS), strict=True):
        column, row = mapping[y, x].tolist()
        if column == column and 0 <= round(column) < 120 and 0 <= round(row) < 90:
            wanted.append((round(column), round(row), t, p))
    dropped = 9000 - len(wanted)
    assert dropped > 100
    assert same(found, dict(zip(COLUMNS, np.array(wanted).T, strict=True)))
    assert (found.width, found.height) == (120, 90)
    note = f"are rectified by the rectify_map.h5 beside it; {dropped:,} of 9,000 lie outside"
    assert any(note in one for one in found.warnings)
    assert not same(found, raw)  # the control
    part = events.read(path, Window(500_000, 400_000))
    inside = (found.t >= OFFSET + 500_000) & (found.t < OFFSET + 900_000)
    assert same(part, found.take(inside))


def test_a_window_whose_events_are_all_outside(tmp_path: Path, true: Table) -> None:
    path = dsec(tmp_path / "events.h5", true)
    with h5py.File(path.with_name("rectify_map.h5"), "w") as file:
        file["rectify_map"] = np.full((90, 120, 2), -5.0)
    assert "no events in the window" in refusal(path, Window(0, 1_900_000))


def test_a_map_of_another_camera(tmp_path: Path, true: Table) -> None:
    path = dsec(tmp_path / "events.h5", true)
    rectify_map(path, height=50)
    assert "outside of 120 x 50 pixels" in refusal(path)
    with h5py.File(path.with_name("rectify_map.h5"), "w") as file:
        file["rectify_map"] = np.zeros((3, 3))
    with pytest.raises(MediaError, match=r"rectify_map\.h5 beside .* of shape"):
        events.read(path)
    path.with_name("rectify_map.h5").write_bytes(b"odd")
    with pytest.raises(MediaError, match="could not be read as HDF5"):
        events.read(path)


NAMES = {
    "EvQA": {key: f"events/{key}s" for key in COLUMNS},
    "at the top": {key: key for key in COLUMNS},
    "deep": {key: f"prophesee/left/{key}" for key in COLUMNS},
    "long names": {
        "x": "davis/events/x_coordinates",
        "y": "davis/events/y_coordinates",
        "t": "davis/events/timestamps",
        "p": "davis/events/polarities",
    },
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("unit", ["us", "s", "floats"])
def test_common_layouts(tmp_path: Path, names: dict[str, str], unit: str) -> None:
    true = table(9000, begin=36_000_000_000)
    stored = {"us": true["t"], "s": true["t"] / 1e6, "floats": true["t"].astype(np.float64)}[unit]
    path = saved(tmp_path / "a.h5", true | {"t": stored}, names)
    assert windows_agree(path, true, 12) > 5
    words = "fractions and are taken as seconds" if unit == "s" else "taken as microseconds"
    assert words in events.read(path).warnings[0]


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        *(("s", 1e-6), ("ms", 1e-3), ("us", 1), ("ns", 1000)),
        *(("Milliseconds", 1e-3), ("MS", 1e-3), (b"ms", 1e-3)),
    ],
)
def test_a_stated_unit(tmp_path: Path, unit: str | bytes, factor: float) -> None:
    true = table(500)
    path = saved(tmp_path / "a.h5", true | {"t": true["t"] * factor})
    with h5py.File(path, "a") as file:
        file["events/t"].attrs["unit"] = unit
    assert same(events.read(path), true)


@pytest.mark.loads
def test_compound_arrays(tmp_path: Path) -> None:
    true = table(5000)
    array = records(true, [("x", "<u2"), ("y", "<u2"), ("p", "<i2"), ("t", "<i8")])
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        file.create_dataset("CD/events", data=array, chunks=(700,), compression="gzip")
        file.attrs["width"], file.attrs["height"] = 640, 400
    assert windows_agree(tmp_path / "a.hdf5", true, 12) > 5
    found = events.read(tmp_path / "a.hdf5")
    assert (found.width, found.height) == (640, 400)


def test_big_endian_numbers_are_read_as_stated(tmp_path: Path) -> None:
    true = table(500)
    swapped = {key: v.astype(v.dtype.newbyteorder(">")) for key, v in true.items()}
    assert same(events.read(saved(tmp_path / "a.h5", swapped)), true)


@pytest.mark.parametrize(
    ("times", "why"),
    [
        (np.full(100, np.nan), "a time of nan"),
        (np.array(["1"] * 100, "S1"), "plain numbers"),
        (np.zeros((100, 2)), "shape"),
        (np.arange(99), "columns of different lengths"),
    ],
)
def test_times_that_are_refused(tmp_path: Path, times: Any, why: str) -> None:
    values = {key: np.ones(100, np.uint16) for key in COLUMNS} | {"t": np.arange(100) // 99}
    assert len(events.read(saved(tmp_path / "a.h5", values))) == 100  # the control
    assert why in refused(saved(tmp_path / "a.h5", values | {"t": times}))


def test_pixels_outside_dsecs_sensor(tmp_path: Path, true: Table) -> None:
    big = {key: np.tile(column, 3) for key, column in true.items()}
    big["t"] = np.sort(big["t"])
    big["x"][-1] = 640
    assert "width 640 but has an event at x = 640" in refusal(dsec(tmp_path / "a.h5", big))
    big["x"][:] = 640  # another camera in DSEC's layout
    assert events.read(dsec(tmp_path / "a.h5", big)).width == 641


def refused(path: Path) -> str:
    refusal(path, Window(0, 1000))
    return refusal(path)


@pytest.mark.parametrize("half", [slice(0, 4500), slice(4500, 9000)])
@pytest.mark.parametrize("fill", [0, 1])
def test_chunks_that_were_never_written(tmp_path: Path, half: slice, fill: int) -> None:
    true, path, every = table(9000), tmp_path / "a.h5", slice(0, 9000)
    for column, filled in [*((key, half) for key in COLUMNS), ("x", every)]:
        with h5py.File(path, "w") as file:
            for key in COLUMNS:
                place = filled if key == column else every
                how = {"chunks": (900,), "fillvalue": fill}
                file.create_dataset(f"events/{key}", (9000,), true[key].dtype, **how)
                file[f"events/{key}"][place] = true[key][place]
        if filled is half:
            assert f"'events/{column}', of which a part was never written: copy" in refused(path)
    assert same(events.read(path), true)


def test_missing_groups_are_listed(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.h5", table(10), {"x": "events/x", "t": "events/t"})
    assert "no group with the arrays x, y, t and p (found: events, events/t" in refused(path)
    h5py.File(path, "w").close()
    assert "found: nothing" in refused(path)
    with h5py.File(path, "w") as file:
        for number in range(600):
            file.create_group(str(number))
    assert "more than 512" in refused(path) or "and 4" in refused(path)
    assert "holds 0 events" in refused(saved(path, {key: np.zeros(0) for key in COLUMNS}))


def test_a_group_or_a_type_where_an_array_belongs(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.h5", table(10), {key: f"events/{key}" for key in "ytp"})
    with h5py.File(path, "a") as file:
        file.create_group("events/x")
    assert "no array at 'events/x'" in refused(path)
    with h5py.File(path, "a") as file:
        del file["events/x"]
        file["events/x"] = np.dtype("u2")
    assert "no array at 'events/x'" in refused(path)


def test_two_recordings_in_a_file(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.h5", table(10), {key: f"left/{key}" for key in COLUMNS})
    with h5py.File(path, "a") as file:
        for key, column in table(10).items():
            file[f"right/{key}"] = column
    assert "holds 2 recordings (left, right)" in refused(path)


def test_a_file_that_reaches_outside(tmp_path: Path) -> None:
    """Links, external storage and virtual arrays: each would read what another file holds."""
    secret = saved(tmp_path / "secret.h5", table(500))
    path = tmp_path / "a.h5"

    def with_x(make: Any) -> Path:
        saved(path, table(500), {key: f"events/{key}" for key in "ytp"})
        with h5py.File(path, "a") as file:
            make(file)
        with h5py.File(path) as file:  # the control: plain h5py reads it
            assert len(file["events/x"]) == 500
        return path

    def external(file: Any) -> None:
        file["events/x"] = h5py.ExternalLink(secret.name, "/events/x")

    def soft(file: Any) -> None:
        file["out"] = h5py.ExternalLink(secret.name, "/events")
        file["events/x"] = h5py.SoftLink("/out/x")

    def storage(file: Any) -> None:
        numbers = tmp_path / "numbers"
        numbers.write_bytes(table(500)["x"].tobytes())
        file.create_dataset("events/x", (500,), "u2", external=[(str(numbers), 0, 1000)])

    def virtual(file: Any) -> None:
        layout = h5py.VirtualLayout((500,), "u2")
        layout[:] = h5py.VirtualSource(secret.name, "events/x", (500,))
        file["events"].create_virtual_dataset("x", layout)

    assert "link to another place" in refused(with_x(external))
    assert "link to another place" in refused(with_x(soft))
    assert "in another file" in refused(with_x(storage))
    assert "in another file" in refused(with_x(virtual))


def test_arrays_that_cost_more_than_their_bytes(tmp_path: Path) -> None:
    path, types = tmp_path / "a.h5", (h5py.string_dtype(), h5py.vlen_dtype(np.uint16), "c16")
    huge = {"shape": (1 << 40,), "chunks": (1 << 28,), "compression": "gzip"}
    for how, why in (
        *(({"dtype": kind}, "plain numbers") for kind in types),
        ({}, "none was written"),
        (huge, "in chunks of 536,870,912 bytes"),
    ):
        saved(path, table(500), {key: f"events/{key}" for key in "ytp"})
        with h5py.File(path, "a") as file:
            file.create_dataset("events/x", **{"shape": (500,), "dtype": "u2"} | how)
        assert why in refused(path)


def test_prophesees_own_compression(tmp_path: Path) -> None:
    path = tmp_path / "a.hdf5"
    with h5py.File(path, "w") as file:
        gzip = {"chunks": (10,), "compression": "gzip"}
        file.create_dataset("CD/events", data=records(table(10)), **gzip)
    assert len(events.read(path)) == 10
    data = path.read_bytes()
    rest = b"\x08\x00\x01\x00\x01\x00deflate"  # length of the name, flags, values, the name
    filters = b"\x01\x00" + rest
    assert data.count(filters) == 1
    path.write_bytes(data.replace(filters, hdf5.ECF.to_bytes(2, "little") + rest))
    assert "Prophesee .hdf5 recording (ECF compression)" in refused(path)
    assert "give the .raw it was made from, or convert it" in refused(path)
    path.write_bytes(data.replace(filters, (40_000).to_bytes(2, "little") + rest))
    assert "unknown compression (filter 40000)" in refused(path)


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path / "a.h5", table(10))

    def absent(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(hdf5, "import_module", absent)
    assert "needs libraries that cannot be imported" in refusal(path)
    assert "run `pip install h5py hdf5plugin`" in refusal(path)


@pytest.mark.loads
def test_damage_is_one_sentence_or_other_events(tmp_path: Path, true: Table) -> None:
    path = dsec(tmp_path / "a.h5", true)
    data = path.read_bytes()
    assert sentences_of_damage(path) > 80
    path.write_bytes(data[:-1])
    assert "could not be read as HDF5" in refused(path)


@pytest.mark.parametrize("unit", ["fortnights", 3, "", "m" * 100, np.arange(3)])
def test_an_unknown_unit_is_refused(tmp_path: Path, unit: Any) -> None:
    path = saved(tmp_path / "a.h5", table(500))
    assert len(events.read(path)) == 500  # the control
    with h5py.File(path, "a") as file:
        file["events/t"].attrs["unit"] = unit
    assert "which is no known unit: set the attribute `unit`" in refused(path)
    with h5py.File(path, "a") as file:
        file["events/t"].attrs["unit"] = "ms"
        file["t_offset"] = 0
    assert "states its times in ms" in refused(path)


def test_a_link_in_place_of_the_group(tmp_path: Path) -> None:
    saved(tmp_path / "other.h5", table(10))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["events"] = h5py.ExternalLink("other.h5", "/events")
    assert "(found: events (a link, not followed))" in refused(tmp_path / "a.h5")


def test_times_that_jump_far_away_and_back(tmp_path: Path) -> None:
    true = table(9000)
    broken = true["t"].copy()
    broken[4000:4500] = np.random.default_rng(0).integers(0, 1 << 32, 500)
    assert "is damaged: its times jump back" in refusal(
        saved(tmp_path / "a.h5", true | {"t": broken})
    )
    parts = np.concatenate(np.split(true["t"], 9)[::-1])  # the control: parts in another order
    found = events.read(saved(tmp_path / "b.h5", true | {"t": parts}))
    assert any("step back 8 times" in note for note in found.warnings)
