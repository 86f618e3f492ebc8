"""Event streams of files, and their pictures."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media import media_files
from engine.media.media_files import label
from engine.media.recording import Damaged, Recording
from engine.media_options import COUNT_SPLIT, DENSEST_US, Split, Window, time_text
from engine.quoting import count
from engine.types import Events, Extent, Image

Part = slice | npt.NDArray[np.intp]  # events of one picture


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    """The recording in a file, by the reader of its kind; MediaError if it is no event file."""
    kind = media_files.kind_of_file(path, path.name) or media_files.NPY
    if kind.field != "events":
        raise MediaError(kind.refusal(name, "a recording of events"))
    reader = import_module(f"engine.media.readers.{kind.reader}")
    try:
        with reader.opened(path, name) as recording:
            yield recording
    except Damaged as error:
        raise MediaError(
            f"{name} is damaged or not {kind.name} ({error}): copy it again or record it again."
        ) from error


def read(path: Path, window: Window | None = None, name: str = "") -> Events:
    """The stream of an event file, or the part of it in the window.  MediaError if the file is
    missing, damaged or not plain numbers, or if the window is empty."""
    called = name or label(path)
    with opened(path, called) as recording:
        found, lasts = recording.events(window), recording.duration_us()
    if window is None or window.end_us <= lasts + 1:
        return found
    note = f"{called} lasts {time_text(lasts)}: it ends within the window {window}."
    return replace(found, warnings=(*found.warnings, note))


def render(events: Events, split: Split = COUNT_SPLIT, extent: Extent = "slice") -> list[Image]:
    """The event pictures [H, W, 3]: white background, red for p = 1, blue for p = 0.

    The last event at a pixel wins.  With extent "slice" the size of a picture is
    (max(y) + 1, max(x) + 1) of its events, as in the published code; with "stream", and for a part
    without events, it is that of the whole stream.  MediaError if there are too few events.
    """
    return [draw(events, part, extent) for part in parts(events, split)]


def parts(events: Events, split: Split = COUNT_SPLIT) -> list[Part]:
    """The parts of the stream that `render` draws; MediaError if it has too few events.  "count":
    equal numbers of events in file order, the last part takes the remainder.  The others: equal
    durations between the first and the last event."""
    if split.rule == "count":
        if len(events) < split.parts:
            raise MediaError(
                f"{count(len(events), 'event')} cannot be cut into {split.parts:,} slices: "
                "choose a longer recording or window, or fewer parts."
            )
        size = len(events) // split.parts
        ends = [*(index * size for index in range(split.parts)), len(events)]
        return [slice(*pair) for pair in pairwise(ends)]
    order = np.argsort(events.t, kind="stable")
    times = events.t[order]
    begin, after = int(times[0]), int(times[-1]) + 1
    edges = [begin + (after - begin) * index // split.parts for index in range(split.parts + 1)]
    found: list[Part] = []
    for low, high in pairwise(edges):
        if split.rule == "densest":
            # The 25 ms that hold the most events, from an event on; the first such.  Near the end
            # they are fewer than 25 ms, and hold what the last 25 ms from that event on hold.
            first, last = np.searchsorted(times, [low, high])
            begins = times[first:last]
            if len(begins):
                stops = np.searchsorted(times, np.minimum(begins + DENSEST_US, high))
                low = int(begins[int((stops - np.arange(first, last)).argmax())])
                high = min(low + DENSEST_US, high)
        first, last = np.searchsorted(times, [low, high])
        found.append(np.sort(order[first:last]))  # file order: the last event at a pixel wins
    return found


def draw(events: Events, part: Part, extent: Extent) -> Image:
    """The events of one part, which may be none, as a picture [H, W, 3]."""
    x, y = events.x[part], events.y[part]
    height, width = events.height, events.width
    if extent == "slice" and len(x):
        height, width = int(y.max()) + 1, int(x.max()) + 1
    picture = np.full((height * width, 3), 255, np.uint8)
    pixels = y.astype(np.intp) * width + x
    red = events.p[part] * np.uint8(255)
    # NumPy assigns in order, so the last event at a pixel wins.
    picture[pixels, 0] = red
    picture[pixels, 1] = 0
    picture[pixels, 2] = ~red
    return picture.reshape(height, width, 3)
