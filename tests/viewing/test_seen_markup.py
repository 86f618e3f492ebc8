"""The time line as markup: its marks, its pictures, and that nothing in it runs or is fetched."""

import re
from dataclasses import replace

import numpy as np

from engine.types import MediaKind
from engine.viewing import seen_markup
from engine.viewing.seen_markup import RowHead
from engine.viewing.seen_times import SeenPicture, SeenRow, SeenTimeline, density
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


def test_nothing_runs_whatever_the_names_are() -> None:
    row = SeenRow("events", EVIL, made().rows[0].pictures)
    heads: dict[MediaKind, RowHead] = {"events": RowHead(EVIL, "#8768D8")}
    found = read(seen_markup.markup(replace(made(), rows=(row,)), heads))
    assert set(found.tags) == {"div", "span", "img"}
    names = {name for name, _ in found.attributes}
    assert not [name for name in names if name.startswith("on")]
    assert all(source.startswith("data:") for source in attributes(found, "src"))
