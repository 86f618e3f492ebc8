"""Headers of .npy files: all that NumPy writes is read, and nothing costs more than its length."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from engine.media.readers import npy


def made(text: str | bytes, version: int = 1) -> bytes:
    raw = text if isinstance(text, bytes) else text.encode("latin-1")
    size = len(raw).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + raw


def saved(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize(
    "array",
    [
        np.zeros(3),
        np.zeros((), "u2"),
        np.asfortranarray(np.zeros((2, 3))),
        np.zeros(2, [("x", "<u2"), ("it's odd", ">i8", (2,))]),
        np.zeros(0, np.dtype([("x", "u1"), ("t", "i8")], align=True)),
    ],
    ids=["1-d", "0-d", "Fortran", "fields", "aligned"],
)
def test_what_numpy_writes(array: np.ndarray[Any, Any], version: tuple[int, int]) -> None:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version)
    data = file.getvalue()
    found = npy.header(data)
    assert found.shape == array.shape and data[found.start :] == array.tobytes("A")
    file.seek(8)
    reader = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
    if version[0] in reader:
        assert reader[version[0]](file)[0] == found.shape


@pytest.mark.parametrize(
    "text",
    [
        *("", "[1]", "{", "{'a'}", "{'a': }", "{'a': 1 'b': 2}", "{'shape': (1 2)}", "{[]: 1}"),
        *("{'a': 1}}", "{'a': 1} 2", "{'a': 1 + 2j}", "{'a': -1}", "{'a': 1.5}", "{'a': '\\"),
        *("{'a': __import__('os')}", "(" * 9000, "-" * 9000 + "1", "{'a': " * 1500),
        "{'shape': (" + "9" * 9000 + ",)}",
    ],
)
def test_headers_that_are_refused(text: str) -> None:
    full = text.replace("{", "{'descr': '|O', 'shape': (), ", 1)
    why = r"^a header that is not a (Python literal|dict of a type and a shape)$"
    for one in (text, full):
        with pytest.raises(ValueError, match=why):
            npy.header(made(one) + bytes(9))


def test_control_a_full_header_is_accepted() -> None:
    assert npy.header(made("{'descr': '|O', 'shape': (), 'a': [1, None,]}")).shape == ()


@pytest.mark.parametrize("escape", ["0or 1", "1is 1"])
def test_odd_text_prints_no_warning(escape: str) -> None:
    """Python's own parser warns of these; warnings are errors here."""
    npy.header(made(f"{{'descr': '{escape}', 'shape': ()}}"))


def test_padded_records_are_read_and_the_gaps_left_out() -> None:
    dtype = np.dtype([("p", "u1"), ("x", "<u2"), ("t", "<i8"), ("y", ">u2")], align=True)
    assert dtype.itemsize > 13
    table = np.zeros(5, dtype)
    for index, name in enumerate("ptxy"):
        table[name] = np.arange(5) * 10 + index
    found = npy.columns(saved(table), "a.npy")
    assert sorted(found) == ["p", "t", "x", "y"]
    for name, values in found.items():
        np.testing.assert_array_equal(values, table[name])


@pytest.mark.parametrize(
    "fields", ["[('', '|V4')]", "[]", "[('', '<u2'), ('x', '<u2')]", "[('x', '<u2'), ('', '|V0x')]"]
)
def test_gaps_alone_are_no_records(fields: str) -> None:
    text = f"{{'descr': {fields}, 'fortran_order': False, 'shape': (1,)}}"
    with pytest.raises(Exception, match="is refused, as it holds"):
        npy.columns(made(text) + bytes(4), "a.npy")
