"""The time line as markup: its marks, its pictures, and that nothing in it runs or is fetched."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from engine.media import events
from engine.types import MediaKind
from engine.viewing import seen_markup
from engine.viewing.event_times import EventDensity, density
from engine.viewing.seen_markup import RowHead
from engine.viewing.seen_times import SeenPicture, SeenRow, SeenTimeline
from tests.media.test_events import stream
from tests.report.test_drawers import EVIL, Reader, read

HEADS: dict[MediaKind, RowHead] = {
    "events": RowHead("EventGPT", "#8768D8"),
    "video": RowHead("Video-LLaVA", "#1F8A9C"),
}


def shade(grey: int) -> np.ndarray:
    return np.full((6, 8, 3), grey, np.uint8)


def made(known: bool = True) -> SeenTimeline:
    spans = tuple(
        SeenPicture(f"Event image {n} of 2", 500.0 * (n - 1), 500.0 * n, known, shade(n), 7)
        for n in (1, 2)
    )
    ticks = tuple(
        SeenPicture(f"Frame {n} of 3", 500.0 * n, 500.0 * n, known, shade(n)) for n in range(3)
    )
    rows = (SeenRow("events", "raw events", spans), SeenRow("video", "MP4", ticks))
    return SeenTimeline(1000.0, density(stream(1000)), rows, ())


def attributes(reader: Reader, name: str) -> list[str]:
    return [value or "" for found, value in reader.attributes if found == name]


def test_every_mark_can_be_focused_has_a_name_and_a_picture() -> None:
    found = read(seen_markup.markup(made(), HEADS))
    assert attributes(found, "tabindex") == ["0"] * 5
    names = attributes(found, "alt")
    assert names == [
        "Event image 1 of 2: 0 to 500 µs, 7 events",
        "Event image 2 of 2: 500 to 1,000 µs, 7 events",
        "Frame 0 of 3: 0 µs",
        "Frame 1 of 3: 500 µs",
        "Frame 2 of 3: 1,000 µs",
    ]
    assert set(names) < set(attributes(found, "aria-label"))
    assert seen_markup.markup(made(), HEADS).count('class="seen-mark seen-first ') == 1
    pictures = attributes(found, "src")
    assert all(source.startswith("data:image/webp;base64,") for source in pictures)
    data = base64.b64decode(pictures[0].partition(",")[2])
    assert Image.open(io.BytesIO(data)).size == (8, 6)


def test_marks_stand_where_their_times_are() -> None:
    text = seen_markup.markup(made(), HEADS)
    assert re.findall(r"margin-left:calc\(([\d.]+)%", text) == ["0.000", "50.000", "100.000"]
    assert re.findall(r"margin-left:([\d.]+%;width:[\d.]+%)", text) == [
        "0.000%;width:50.000%",
        "50.000%;width:50.000%",
    ]


def test_unknown_times_are_said_and_drawn_otherwise() -> None:
    text = seen_markup.markup(made(known=False), HEADS)
    assert text.count("seen-assumed") == 5 and "Frame 1 of 3: time unknown" in text
    assert "500 to" not in text
    assert "seen-assumed" not in seen_markup.markup(made(), HEADS)  # control


def test_without_any_time_there_is_no_axis() -> None:
    found = replace(made(known=False), window_us=0.0, density=None)
    text = seen_markup.markup(found, HEADS)
    assert "no file gives a time" in text and "time (µs)" not in text
    assert re.findall(r"margin-left:calc\(([\d.]+)%", text) == ["0.000", "50.000", "100.000"]


def test_the_areas_are_as_high_as_the_counts() -> None:
    counts = EventDensity(250.0, np.array([1, 0, 2, 0]), np.array([2, 0, 4, 1]))
    text = seen_markup.markup(replace(made(), density=counts), HEADS)
    darker, brighter = (
        [float(y) for y in re.findall(r"% ([\d.]+)%", area)][1:-1:2]
        for area in re.findall(r"polygon\(([^)]*)\)", text)
    )
    assert darker == [50.0, 100.0, 0.0, 75.0]  # all events, from the top
    assert brighter == [75.0, 100.0, 50.0, 100.0]
    assert "7 events, counted per 250 µs (highest 4)" in text


@pytest.mark.parametrize("window", [1, 3, 99, 1000, 49_585, 950_000, 8_800_000, 9_999_999_999])
def test_axis_values_are_round_and_few(window: float) -> None:
    found = seen_markup.ticks_of(window)
    assert 2 <= len(found) <= seen_markup.MOST_TICKS
    assert found[0] == 0 and found[-1] <= window
    assert f"{found[1]:.0f}".rstrip("0") in ("1", "2", "5")


def test_nothing_runs_whatever_the_names_are() -> None:
    row = SeenRow("events", EVIL, made().rows[0].pictures)
    heads: dict[MediaKind, RowHead] = {"events": RowHead(EVIL, "#8768D8")}
    found = read(seen_markup.markup(replace(made(), rows=(row,)), heads))
    assert set(found.tags) == {"div", "span", "img"}
    names = {name for name, _ in found.attributes}
    assert not [name for name in names if name.startswith("on")]
    assert all(source.startswith("data:") for source in attributes(found, "src"))


def test_words_tell_it_all() -> None:
    words = seen_markup.words(made(), HEADS)
    assert words.startswith("Time line of 1,000 µs. 1,000 events. EventGPT, event images: 0 to 500")
    assert "Video-LLaVA, frames: 0 µs, 500 µs, 1,000 µs." in words


def test_an_event_picture_keeps_every_pixel() -> None:
    picture = events.draw(stream(60), slice(None), "stream")
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) == 3
    head, _, data = seen_markup.event_address(picture).partition(",")
    assert head == "data:image/png;base64"
    assert np.array_equal(
        np.array(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")), picture
    )
