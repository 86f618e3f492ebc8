"""The restricted reader: all that NumPy writes is read, and nothing else gets anywhere."""

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.errors import MediaError
from engine.media import event_columns, events, pickles
from engine.media.pickles import RefusedError
from engine.media.readers import npy
from engine.media_options import Window
from tests.media.readers.streams import records, refusal, table
from tests.media.readers.streams import same as same_events

PLAIN = {
    "x": np.array([3, 1, 2], np.uint16),
    "t": np.array([10, 20, 30], np.int64),
    "p": np.array([True, False, True]),
    "big": np.array([1, 258], ">u2"),
    "matrix": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "none": np.array([], np.int32),
    "width": np.int64(640),
    "duration_ms": 49.5,
    "indices": [1, 2, 3],
    "path": "seq/000000",
    "nothing": None,
}


def stated(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def header(descr: str = "'|O'", shape: str = "()") -> bytes:
    return stated(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}")


def boxed(value: object, protocol: int = 3) -> bytes:
    """A .npy as np.save writes it: a 0-d object array around the value."""
    box = np.empty((), object)
    box[()] = value
    return header() + pickle.dumps(box, protocol)


def same(found: dict[str, Any]) -> None:
    for key in ("x", "t", "p", "big", "matrix", "none"):
        np.testing.assert_array_equal(found[key], PLAIN[key])
        assert found[key].dtype == PLAIN[key].dtype, key
    assert (found["width"], found["duration_ms"]) == (640, 49.5)
    assert not {"indices", "path", "nothing"} & set(found)


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_every_pickle_protocol(protocol: int) -> None:
    same(npy.columns(boxed(PLAIN, protocol), "a.npy"))
    same(npy.columns(header() + pickle.dumps(PLAIN, protocol), "a.npy"))


@pytest.mark.parametrize("core", [b"numpy.core", b"numpy._core"])
def test_module_names_of_both_numpy_generations(core: bytes) -> None:
    data = boxed(PLAIN)
    modern = b"numpy._core" if b"numpy._core" in data else b"numpy.core"
    same(npy.columns(data.replace(modern, core), "a.npy"))


def test_padded_records_are_read_and_the_gaps_left_out() -> None:
    table = np.zeros(5, np.dtype([("p", "u1"), ("x", "<u2"), ("t", "<i8")], align=True))
    for index, name in enumerate("ptx"):
        table[name] = np.arange(5) * 10 + index
    file = io.BytesIO()
    np.save(file, table)
    found = npy.columns(file.getvalue(), "a.npy")
    assert sorted(found) == ["p", "t", "x"]
    for name, values in found.items():
        np.testing.assert_array_equal(values, table[name])


class Call:
    """Pickles as a call of `function(*arguments)`, which an ordinary unpickler would make."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.parts = (function, arguments)

    def __reduce__(self) -> tuple[Any, Any]:
        return self.parts


@pytest.mark.parametrize("protocol", range(6))
def test_code_in_a_pickle_does_not_run(tmp_path: Path, protocol: int) -> None:
    target = tmp_path / "made"
    data = boxed({"x": Call(Path.touch, target)}, protocol)
    with pytest.raises(MediaError, match=r"a\.npy is refused"):
        npy.columns(data, "a.npy")
    assert not target.exists()
    # The control: the very same bytes do create the file when Python's own unpickler reads them.
    pickle.loads(data[len(header()) :])  # noqa: S301
    assert target.exists()


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_arrays_of_anything_but_numbers(protocol: int) -> None:
    for array in (
        np.array([[1], "a"], dtype=object),
        np.array(["text"]),
        np.array(["2026-01-01"], "M8[D]"),
        np.array([1j]),
        np.zeros(2, [("x", "u2")]),
        np.zeros(2, "V4"),
    ):
        with pytest.raises(MediaError, match="refused"):
            npy.columns(boxed({"x": array}, protocol), "a.npy")


def test_sizes_that_do_not_match_the_bytes() -> None:
    data = boxed({"x": np.arange(1000, dtype=np.uint16)})
    claim = b"M\xe8\x03\x85"  # BININT2 1000, TUPLE1: the shape
    assert data.count(claim) == 1
    for size in (b"M\xe7\x03\x85", b"M\xe9\x03\x85", b"J\xff\xff\xff\x7f\x85"):
        with pytest.raises(MediaError, match=r"claims [0-9,]+ values in 2,000 bytes"):
            npy.columns(data.replace(claim, size), "a.npy")
    with pytest.raises(MediaError, match="shape is not made of a few whole numbers"):
        npy.columns(data.replace(claim, b"J\xff\xff\xff\xff\x85"), "a.npy")


# What a hostile file can say in the pickle language itself, beyond what Python would ever write.
HOSTILE = {
    "a state for a stand-in": b"cnumpy.core.multiarray\n_reconstruct\n}b.",
    "a state for a dict": b"}}b.",
    "an instance by name": b"(inumpy\nndarray\n.",
    "a persistent id": b"Pfile\n.",
    "an empty stack": b"R.",
    "a mark that is missing": b"t.",
    "a memo that is missing": b"h\x05.",
    "a key that cannot be hashed": b"}]Ns.",
    "an item for a number": b"K\x01Na.",
    "a name of a name": b"\x80\x04\x8c\x05numpy\x8c\x0edtype.__init__\x93.",
    "names that are numbers": b"\x80\x04K\x01K\x02\x93.",
    "no end": b"}",
    "an unknown operation": b"\xff.",
    "an odd escape in a text": b"S'\\j'\n.",
    "a text without its end": b"X\xff\xff\xff\x7fabc.",
    "an array never filled": b"cnumpy.core.multiarray\n_reconstruct\n"
    b"(cnumpy\nndarray\n(K\x00tC\x01btR.",
}


@pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_pickles(payload: bytes) -> None:
    with pytest.raises(MediaError, match=r"a\.npy is refused"):
        npy.columns(header() + payload, "a.npy")


def in_bins(*bins: Any) -> bytes:
    box = np.empty(len(bins), object)
    for index, one in enumerate(bins):
        box[index] = one
    return header(shape=f"({len(bins)},)") + pickle.dumps(box, 4)


REFUSED = (
    (b"", "no .npy header in its 0 bytes"),
    (b"\0" * 40, "no .npy header"),
    (boxed(PLAIN)[:60], "no .npy header"),
    (b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 100, "no .npy header"),
    (boxed(PLAIN)[:-40], "a damaged pickle"),
    (header("'<u2'", "(3,)") + b"\0" * 6, "an array of type '<u2'"),
    (header("'|O'", "(1,)") + pickle.dumps([PLAIN]), "an object that is no dict"),
    (header("[('x', '|O')]", "(1,)") + b"\0" * 8, "a record with the field"),
    (header("[('x', '<u2', (3,))]", "(1,)") + b"\0" * 6, "a record with the field"),
    (header("[('x', '<u2'), ('x', '<u2')]", "(1,)") + b"\0" * 4, "name already used"),
    (header("[('', '|V4')]", "(1,)") + bytes(4), "records without a field"),
    (header("[]", "(1,)") + bytes(4), "an array of type"),
    (header("[('', '<u2'), ('x', '<u2')]", "(1,)") + bytes(4), "a record with the field"),
    (header("[('', '|V0x')]", "(1,)") + bytes(4), "a record with the field"),
    (header("[('x', '<u2')]", "(999999999999,)") + b"\0" * 8, "claims 999,999,999,999 records"),
    (header("[('x', '<u2')]", "(-1,)"), "a header that is not a dict"),
    *((boxed(one), "an object that is no dict") for one in ([1, 2], "text", None)),
    *(  # calls that an array of numbers does not need
        (header() + pickle.dumps(Call(*call)), "")
        for call in (
            (np.ndarray, (1,), "O", b"\x00" * 8),
            (eval, "1"),
            (bytes, 10**6),
            (np.frombuffer, b"12345678", "u8"),
            (np.dtype, "O", False, True),
            (getattr, 1, "real"),
        )
    ),
    (in_bins({"x": np.arange(3)}), "a time bin without x, y, t and p"),
    (in_bins({key: np.arange(3 + (key == "t")) for key in "xytp"}), "of different lengths"),
    (in_bins(dict.fromkeys("xytp", np.zeros((2, 2)))), "of different lengths"),
    (in_bins(np.arange(3)), "a time bin of type"),
    (in_bins("text"), "an object that is no dict"),
    (in_bins(), "0 time bins"),
    (in_bins(np.zeros(2, [("x", [("y", "u2")])])), "that their fields do not fit in"),
    (in_bins(np.zeros(2, [("x", "u2", (3,))])), "do not fit in"),
    (in_bins(np.zeros(2, [("x", "O")])), "an array of|do not fit in"),
)


@pytest.mark.parametrize(("data", "why"), REFUSED, ids=range(len(REFUSED)))
def test_files_that_are_no_event_file(data: bytes, why: str) -> None:
    with pytest.raises(MediaError, match=rf"^a\.npy is refused, as it holds .*({why}).*\.$"):
        npy.columns(data, "a.npy")


def nested(depth: int) -> bytes:
    """Tuples that each hold the former twice: a few bytes whose text has 2**depth parts."""
    return b")\x94" + b"".join(b"h" + bytes([i, 104, i]) + b"\x86\x94" for i in range(depth))


BOMBS = {
    "a name of tuples": (b"\x80\x04" + nested(60) + b"\x8c\x01x\x93.", "a name that is not text"),
    "a name 5,000 deep": (b"\x80\x04)" + b"\x85" * 5000 + b"\x8c\x01x\x93.", "not text"),
    "a long number": (b"\x8b\x10\x27\x00\x00" + b"\x7f" * 10_000 + b".", "operation LONG4"),
    "a number of 2,040 bits": (b"\x8a\xff" + b"\x7f" * 255 + b".", "2,039 bits"),
    "a long number as text": (b"I" + b"9" * 4000 + b"\n.", "operation INT"),
    "many operations": (b"(" * 10_001 + b".", "more than 10,000 operations"),
    "text encoded again and again": (
        b"X\xe8\x03\x00\x00" + b"a" * 1000 + b"q\x00"
        + b"c_codecs\nencode\n(h\x00X\6\0\0\0latin1tR" * 99,
        "the name '_codecs.encode'",
    ),
    "a shape of many sizes": (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR"
        b"(K\x01(" + b"K\x01" * 33 + b"tcnumpy\ndtype\n(X\x02\0\0\0u1K\0K\1tR\x89C\x01atbq\x00"
        b"}(X\1\0\0\0xh\x00u.",
        "a few whole numbers",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("payload", "why"), BOMBS.values(), ids=BOMBS.keys())
def test_pickles_that_cost_more_than_their_bytes(
    payload: bytes, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pickles, "MAX_STEPS", 10_000)
    with pytest.raises(MediaError, match=rf"^a\.npy is refused, as it holds .*{why}") as caught:
        npy.columns(header() + payload, "a.npy")
    assert len(str(caught.value)) < 300


def test_one_array_may_stand_under_several_keys() -> None:
    array = np.arange(1000, dtype=np.uint8)
    found = npy.columns(boxed({f"key{i}": array for i in range(200)}), "a.npy")
    assert len(found) == 200 and all(len(values) == 1000 for values in found.values())  # type: ignore[arg-type]
    with pytest.raises(MediaError, match="has too many keys"):
        npy.columns(boxed({f"key{i}": 1 for i in range(300)}), "a.npy")


def saved(path: Path, array: np.ndarray[Any, Any]) -> Path:
    np.save(path, array, allow_pickle=False)
    return path


def test_a_window_reads_a_part_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the limit of events set low, the whole is refused and a window is not."""
    true = table(200_000)
    path = saved(tmp_path / "a.npy", records(true))
    monkeypatch.setattr(event_columns, "MAX_EVENTS", 50_000)
    assert "holds more than 50,000 events" in refusal(path)
    assert "the most that are read at once" in refusal(path, Window(0, 2_000_000))
    found = events.read(path, Window(500_000, 1000))
    inside = (true["t"] >= 500_000) & (true["t"] < 501_000)
    assert same_events(found, {key: values[inside] for key, values in true.items()})
    true["t"] = true["t"][::-1]
    assert "sort its events by time" in refusal(saved(path, records(true)), Window(0, 1000))


@pytest.mark.parametrize("window", [None, Window(0, 10_000_000)])
def test_a_time_that_is_no_number(tmp_path: Path, window: Window | None) -> None:
    array = records(table(100), [("t", "<f8"), ("x", "<u2"), ("y", "<u2"), ("p", "u1")])
    array["t"][50] = np.nan
    assert "give whole numbers" in refusal(saved(tmp_path / "a.npy", array), window)


def test_records_that_are_cut_off(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npy", records(table(100)))
    path.write_bytes(path.read_bytes()[:-7])
    assert "its header claims 100 records" in refusal(path, Window(0, 1000))
    assert "holds 0 events" in refusal(saved(path, records(table(100))[:0]))


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_time_bins_of_dicts(protocol: int) -> None:
    """Those of records are in archives: test_npz.py."""
    true, dicts = table(300), np.empty(2, object)
    for index, half in enumerate((slice(0, 100), slice(100, 300))):
        dicts[index] = {key: values[half] for key, values in true.items()} | {"start": index}
    found = npy.columns(header(shape="(2,)") + pickle.dumps(dicts, protocol), "a.npy")
    for key, values in true.items():
        np.testing.assert_array_equal(found[key], values)


RECORD = (
    b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tC\x01btR"
    b"(K\x01(K\x01tcnumpy\ndtype\n(X\x03\0\0\0V10K\0K\1tR(K\x03X\1\0\0\0|N(X\1\0\0\0xt}X\1\0\0\0x"
    b"(cnumpy\ndtype\n(X\2\0\0\0u2K\0K\1tR(K\3X\1\0\0\0<NNNK\0K\0K\0tb%sts"
    b"K\x0aK\1K\x10tb\x89C\x0a0123456789tb."
)


@pytest.mark.parametrize(
    ("offset", "fits"),
    [(b"K\x00", True), (b"K\x08", True), (b"K\x09", False), (b"J\xff\xff\xff\xff", False)],
)
def test_fields_lie_inside_their_record(offset: bytes, fits: bool) -> None:
    """Offsets that a file states are checked before NumPy sees them."""
    box = pickles.load(RECORD % offset)
    if fits:
        assert pickles.array(box)["x"].tolist() == [
            int.from_bytes(b"0123456789"[offset[1] :][:2], "little")
        ]
        return
    with pytest.raises(RefusedError, match="do not fit in"):
        pickles.array(box)
