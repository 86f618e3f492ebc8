"""Words of RAW files: decoded in pieces, of reserved types, zeros, and under another header."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.media.readers import prophesee
from engine.media.readers.prophesee import (
    EVT2,
    EVT3,
    EVT21,
    EVT21_LEGACY,
    Encoding,
)
from tests.media import event_files
from tests.media.event_files import assert_equal, ordered, read, written

pytestmark = pytest.mark.loads
FORMS = {"evt2": EVT2, "evt2.1": EVT21, "evt2.1 legacy": EVT21_LEGACY, "evt3": EVT3}
STREAM = event_files.rows_of_events(40_000)


def stream(form: str) -> Any:
    return ordered(form, STREAM)


def body(path: Path, coding: Encoding) -> tuple[bytes, Any]:
    """The header of a file, and its words in a copy."""
    data = path.read_bytes()
    start = prophesee.parse(data[:4096], path.name).end
    bits = coding.bits * coding.stride
    return data[:start], np.frombuffer(data[start:], f"<u{bits // 8}").copy()


@pytest.mark.parametrize("form", FORMS)
def test_a_file_read_in_pieces_gives_the_same_events(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = stream(form)[:4000]
    path = written(tmp_path, form, expected)
    monkeypatch.setattr(prophesee, "PIECE", 8)  # most pieces have no word of their row
    assert_equal(read(path), expected)


# Bytes of words that some encoding defines: with them up to nine tenths of the events were lost
# without a word.
FILLED = {"zeros": 0, **{f"{byte:02X}": byte for byte in (0xFF, 0xAA, 0xF0, 0xE0, 0x20, 0x01)}}


def damaged(words: Any, what: str, part: slice, coding: Encoding) -> Any:
    """A third of the words of a part have a reserved type, or all bytes of it are the same."""
    if what in FILLED:
        words[part] = np.frombuffer(bytes([FILLED[what]]) * 8, words.dtype)[0]
        return words
    kind = {"type 5": 5, "type 11": 11}[what]
    halves = words.view(f"<u{coding.bits // 8}").reshape(len(words), coding.stride)
    third = halves[part][::3, coding.offset]
    third[:] = third & (1 << (coding.bits - 4)) - 1 | kind << (coding.bits - 4)
    return words
