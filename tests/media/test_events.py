"""Event streams: what is normalised at the door, what is refused, and how they are drawn."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.errors import MediaError
from engine.media import events
from engine.media_options import Split
from engine.types import Events
from tests.conftest import REAL


def saved(folder: Path, **columns: Any) -> Path:
    """A raw event file of four events, with the given columns in place of the usual ones."""
    table = {
        "x": np.array([0, 1, 2, 3], np.uint16),
        "y": np.array([0, 1, 1, 0], np.uint16),
        "t": np.array([0, 10, 20, 30], np.uint16),
        "p": np.array([0, 1, 0, 1], np.uint8),
    } | columns
    path = folder / "000000.npy"
    box = np.array({k: v for k, v in table.items() if v is not None}, dtype=object)
    np.save(path, box, allow_pickle=True)
    return path


def stream(n: int, seed: int = 0, width: int = 16, height: int = 12) -> Events:
    """Random events on a small sensor, so that most pixels are hit more than once."""
    rng = np.random.default_rng(seed)
    return Events(
        rng.integers(0, width, n).astype(np.uint16),
        rng.integers(0, height, n).astype(np.uint16),
        np.arange(n, dtype=np.int64),
        rng.integers(0, 2, n).astype(np.uint8),
        width,
        height,
    )


def drawn_on_one_canvas(
    stream: Events, count: int, first_wins: bool = False
) -> np.ndarray[Any, Any]:
    """The drawing rule with pictures as large as the stream, one event at a time."""
    size = len(stream) // count
    pictures = np.full((count, stream.height, stream.width, 3), 255, np.uint8)
    for number, picture in enumerate(pictures):
        end = len(stream) if number == count - 1 else (number + 1) * size
        order = range(number * size, end)
        for i in reversed(order) if first_wins else order:
            colour = (255, 0, 0) if stream.p[i] else (0, 0, 255)
            picture[stream.y[i], stream.x[i]] = colour
    return pictures


def drawn_as_published(stream: Events, count: int) -> list[np.ndarray[Any, Any]]:
    """The rule of EventGPT's published code: each slice is as large as max(y) + 1, max(x) + 1."""
    total, pictures = len(stream), []
    for number in range(count):
        start = number * (total // count)
        end = total if number == count - 1 else (number + 1) * (total // count)
        x, y, p = (column[start:end].tolist() for column in (stream.x, stream.y, stream.p))
        picture = np.ones((max(y) + 1, max(x) + 1, 3), np.uint8) * 255
        for column, row, polarity in zip(x, y, p, strict=True):
            picture[row, column] = [0, 0, 255] if polarity == 0 else [255, 0, 0]
        pictures.append(picture)
    return pictures


def growing(n: int, seed: int = 0) -> Events:
    """Events whose places spread as time goes on, so that slices differ in extent."""
    rng, share = np.random.default_rng(seed), np.linspace(0.1, 1, n)
    even = stream(n, seed, 64, 48)
    x, y = (rng.random(n) * share * side for side in (64, 48))
    return replace(even, x=x.astype(np.uint16), y=y.astype(np.uint16))


def same(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    return all(np.array_equal(*pair) for pair in zip(found, wanted, strict=True))


@pytest.mark.parametrize("n", [5, 1000, 1003, 1004])
@pytest.mark.parametrize("count", [1, 5])
def test_a_common_extent_equals_a_plain_loop(n: int, count: int) -> None:
    found = events.render(stream(n), Split(parts=count), "stream")
    assert {(one.dtype, one.shape) for one in found} == {(np.dtype(np.uint8), (12, 16, 3))}
    assert same(found, drawn_on_one_canvas(stream(n), count))


@pytest.mark.parametrize("n", [5, 1000, 1003, 1004])
@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_pictures_equal_the_published_rule(n: int, count: int, seed: int) -> None:
    for recording in (stream(n, seed), growing(n, seed)):
        assert same(
            events.render(recording, Split(parts=count)), drawn_as_published(recording, count)
        )


def test_the_sensor_may_be_larger_than_its_events(tmp_path: Path) -> None:
    found = events.read(saved(tmp_path, width=np.int64(640), height=480))
    assert (found.width, found.height) == (640, 480)


@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
def test_whole_floats_and_booleans_are_taken(tmp_path: Path, kind: str) -> None:
    times = [0, 65_504, 32_752, 32_752]
    found = events.read(saved(tmp_path, t=np.array(times, kind), p=np.arange(4) > 1))
    assert (found.t.tolist(), found.p.tolist()) == (times, [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("true", "notes"),
    [
        ([65_531, 65_539, 98_304, 131_066, 131_073], ("overflowed 2 times",)),
        ([65_530, 65_539, 65_533, 65_541], ("overflowed 1 time", "step back 1 time;")),
    ],
)
def test_a_counter_of_16_bits_is_continued(
    tmp_path: Path, true: list[int], notes: tuple[str, ...]
) -> None:
    others = {key: np.zeros(len(true), np.uint8) for key in "xyp"}
    found = events.read(saved(tmp_path, t=np.array(true).astype(np.uint16), **others))
    assert found.t.tolist() == true
    for note, warning in zip(notes, found.warnings, strict=True):
        assert note in warning


def test_shuffled_times_are_no_overflow(tmp_path: Path) -> None:
    times = np.random.default_rng(0).permutation(65_536).astype(np.uint16)
    others = {key: np.ones(65_536, np.uint8) for key in "xyp"}
    found = events.read(saved(tmp_path, t=times, **others))
    np.testing.assert_array_equal(found.t, times)
    assert not any("overflowed" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"p": None}, "no array 'p' with one value per event (found: t, x, y)"),
        ({"x": 5}, "no array 'x'"),
        ({"x": np.zeros((2, 2), np.uint16)}, "no array 'x' with one value per event"),
        ({"x": np.zeros(3, np.uint16)}, "different lengths (x 3, y 4, t 4, p 4)"),
        ({key: np.zeros(0, np.uint16) for key in "xytp"}, "holds 0 events"),
        ({"x": np.array([0, np.nan, 1, 2])}, "x = nan at event 1"),
        *(  # warnings are errors here: a cast of a half-precision number printed one
            ({"t": np.array([0, value, 2, 3], kind)}, f"t = {value} at event 1: give whole")
            for kind in ("f2", "f4", "f8")
            for value in (np.inf, -np.inf, np.nan, 0.5)
        ),
        ({"t": np.array([0, 1, 2, 2**63], np.uint64)}, "t = 9,223,372,036,854,775,808"),
        ({"t": np.array([-(2**63), 1, 2, 3])}, "t = -9,223,372,036,854,775,808"),
        ({"width": 3}, "says width 3 but has an event at x = 3"),
        ({"height": 10**9}, "says height 1,000,000,000"),
    ],
)
def test_streams_that_are_refused(tmp_path: Path, columns: dict[str, Any], sentence: str) -> None:
    with pytest.raises(MediaError) as caught:
        events.read(saved(tmp_path, **columns))
    assert sentence in str(caught.value)
    assert f"{tmp_path.name}/000000.npy" in str(caught.value)


def test_a_real_recording() -> None:
    path = REAL / "event_npy/fish/000000.npy"
    if not path.is_file():
        pytest.skip("the real recordings are not on this machine")
    found = events.read(path)
    assert (len(found), found.width, found.height) == (132_268, 640, 480)
    assert (found.duration_ms, found.warnings) == (49.595, ())
    assert same(events.render(found), drawn_as_published(found, 5))
    assert same(events.render(found, extent="stream"), drawn_on_one_canvas(found, 5))


def shuffled(n: int, seed: int = 0) -> Events:
    """Events at random times in file order, as some recordings have them."""
    times = np.random.default_rng(seed).integers(0, 1_000_000, n)
    return replace(stream(n, seed), t=times.astype(np.int64))


def indices(part: Any, n: int) -> list[int]:
    return list(np.arange(n)[part])


@pytest.mark.parametrize("make", [growing, shuffled])
def test_equal_times_hold_every_event_once_and_in_file_order(make: Any) -> None:
    recording = make(1000)
    found = [indices(part, 1000) for part in events.parts(recording, Split("time", 7))]
    assert sorted(i for part in found for i in part) == list(range(1000))
    assert all(part == sorted(part) for part in found)
    span = int(recording.t.max() - recording.t.min()) + 1
    for number, part in enumerate(found):
        times = recording.t[part] - recording.t.min()
        assert span * number // 7 <= times.min() and times.max() < span * (number + 1) // 7


def test_control_the_three_rules_give_other_pictures() -> None:
    recording = replace(growing(1000), t=np.arange(1000, dtype=np.int64) ** 2)
    drawn = [
        events.render(recording, Split(rule), "stream") for rule in ("count", "time", "densest")
    ]  # type: ignore[arg-type]
    assert not same(drawn[0], drawn[1]) and not same(drawn[1], drawn[2])
