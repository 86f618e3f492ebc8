"""Words of RAW files: decoded in pieces, of reserved types, zeros, and under another header."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.errors import MediaError
from engine.media import events
from engine.media.readers import prophesee
from engine.media.readers.prophesee import (
    ENCODINGS,
    EVT2,
    EVT3,
    EVT21,
    EVT21_LEGACY,
    TIME_HIGH,
    Encoding,
    State,
    decode,
)
from engine.media_options import Window
from tests.conftest import slow_unless
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


def random_words(coding: Encoding, seed: int, count: int = 3000) -> bytes:
    """Words of all types with random contents, whose time highs ascend.  Columns stay small: a
    vector at a column above 2,047 does not exist."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 1 << (coding.bits - 4), (count, coding.stride))
    types = rng.integers(0, 16, count)
    types[rng.integers(0, count, 5)] = TIME_HIGH
    high = types == TIME_HIGH
    values = np.sort(rng.integers(0, 1 << 11, high.sum()))
    words[high, coding.offset] = values
    words[types == 3] &= 0xBFF if coding is EVT3 else -1
    words[:, coding.offset] += types << (coding.bits - 4)
    return words.astype(f"<u{coding.bits // 8}").tobytes()


@pytest.mark.parametrize("seed", slow_unless([0], range(4)))
@pytest.mark.parametrize("form", FORMS)
def test_words_decoded_in_pieces_give_the_same_events(form: str, seed: int) -> None:
    """The time, the row and the column of a vector reach from a piece into the next one."""
    coding = FORMS[form]
    data, rng = random_words(coding, seed), np.random.default_rng(seed)
    whole, after = decode(coding, data, State(0))
    cuts = np.sort(rng.choice(len(data) // coding.word, 400)) * coding.word
    parts, state = [], State(0)
    for first, last in pairwise([0, *cuts.tolist(), len(data)]):
        part, state = decode(coding, data[first:last], state)
        parts.append(part)
    for name in "xytp":
        joined = np.concatenate([getattr(part, name) for part in parts])
        np.testing.assert_array_equal(getattr(whole, name), joined)
    assert state == after and len(whole.t) > 300


@pytest.mark.parametrize("form", FORMS)
def test_a_file_read_in_pieces_gives_the_same_events(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = stream(form)[:4000]
    path = written(tmp_path, form, expected)
    monkeypatch.setattr(prophesee, "PIECE", 8)  # most pieces have no word of their row
    assert_equal(read(path), expected)


def test_a_row_lost_between_pieces_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the test above."""
    path = written(tmp_path, "evt3", STREAM[:4000])
    monkeypatch.setattr(prophesee, "PIECE", 8)

    def lost(coding: Encoding, data: bytes, state: State) -> Any:
        return decode(coding, data, State(state.time, 0, state.base))

    monkeypatch.setattr(prophesee, "decode", lost)
    with pytest.raises(AssertionError):
        assert_equal(read(path), STREAM[:4000])


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


WHAT = [
    *((form, what) for form in FORMS for what in (*FILLED, "type 11")),
    ("evt2", "type 5"),
    ("evt2.1", "type 5"),
]


@pytest.mark.parametrize(("form", "what"), WHAT)
def test_words_that_no_sensor_writes_are_refused(form: str, what: str, tmp_path: Path) -> None:
    """Of a third of the file, or behind its end."""
    path, coding = written(tmp_path, form, stream(form)), FORMS[form]
    head, words = body(path, coding)
    third, longer = len(words) // 3, np.append(words, np.tile(words[-1], len(words)))
    parts = [(words.copy(), slice(at * third, (at + 1) * third)) for at in range(3)]
    for some, part in [*parts, (longer, slice(len(words), None))]:
        path.write_bytes(head + damaged(some, what, part, coding).tobytes())
        with pytest.raises(MediaError, match="words are repeats in a row or not defined"):
            read(path)


NOTED = [(form, what) for form, what in WHAT if what in ("zeros", "FF", "type 5", "type 11")]


@pytest.mark.parametrize(("form", "what"), NOTED)
def test_a_few_such_words_are_noted(
    form: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prophesee, "MAX_RUN", 28)
    expected = stream(form)
    path, coding = written(tmp_path, form, expected), FORMS[form]
    plain = read(path)
    assert not any("repeats in a row" in note for note in plain.warnings)
    head, words = body(path, coding)
    few = damaged(np.tile(words[-1:], 30), what, slice(0, 30), coding)
    path.write_bytes(head + np.concatenate([words, few]).tobytes())
    found = read(path)
    count = 29 if what in FILLED else 10
    assert any(f"{count} words of {path.name} are repeats in a row" in n for n in found.warnings)
    assert_equal(found.take(slice(0, len(expected))), expected)
    with events.opened(path, path.name) as recording:  # the damage is behind this window
        assert recording.events(Window(0, 1000)).warnings == plain.warnings


def test_rows_of_equal_words_up_to_the_limit_are_accepted(tmp_path: Path) -> None:
    """A flash over a whole row: vectors of EVT3 at one base."""
    path = written(tmp_path, "evt3", STREAM[:100], (2048, 480))
    head, words = body(path, EVT3)
    flash = np.array([0x3000, *[0x4FFF] * 170, 0x5FF], "<u2")
    path.write_bytes(head + np.concatenate([words, flash]).tobytes())
    found = read(path)
    assert len(found) == 100 + 170 * 12 and not any("repeats" in note for note in found.warnings)


def test_each_defined_type_is_accepted() -> None:
    """By the tables of docs.prophesee.ai."""
    known = {0, 1, 8, 10, 14, 15}
    assert known.isdisjoint(EVT2.reserved) and known.isdisjoint(EVT21.reserved)
    assert {0, 2, 3, 4, 5, 6, 7, 8, 10, 14, 15}.isdisjoint(EVT3.reserved)


@pytest.mark.parametrize("stated", ["EVT2", "EVT2.1", "EVT3"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", ["rows", "random"])
def test_a_header_of_another_encoding_is_refused(
    shape: str, form: str, stated: str, tmp_path: Path
) -> None:
    found = stream(form) if shape == "rows" else event_files.random_events(20_000, 1_000_000)
    path, coding = written(tmp_path, form, found), FORMS[form]
    path.write_bytes(f"% evt {stated[3:]}\n% end\n".encode() + body(path, coding)[1].tobytes())
    if ENCODINGS[stated] is coding:
        assert_equal(read(path), found)
        return
    with pytest.raises(MediaError, match="is damaged or not a Prophesee RAW"):
        read(path)
