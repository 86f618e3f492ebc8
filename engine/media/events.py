"""Event streams of files, their pictures, and their seeded changes (docs/results.md).

The random numbers of a change depend on the seed, the change and the sample's id alone.  So changes
do not depend on one another, and with one seed the events that are lost at strength 0.3 are also
lost at 0.6.  Times are whole microseconds.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media.media_files import NPY, kind_of_file, label
from engine.media.recording import Damaged, Recording
from engine.media_options import COUNT_SPLIT, DENSEST_US, Change, Split, Window, time_text
from engine.quoting import count
from engine.types import Events, Extent, Image, MediaOptions

Part = slice | npt.NDArray[np.intp]  # events of one picture
HOT_US = 1_000  # between two events of a hot pixel: 1,000 a second
MAX_EVENTS = 1 << 24  # with those of hot pixels: about 1 GB while they are merged
Mask = npt.NDArray[np.bool_]


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    """The recording in a file, by the reader of its kind; MediaError if it is no event file."""
    kind = kind_of_file(path, path.name) or NPY
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


def strength(how: MediaOptions, change: Change) -> float:
    """0 without this change."""
    return next((one.strength for one in how.perturb if one.change == change), 0.0)


def generator(how: MediaOptions, change: Change, sample: str) -> np.random.Generator:
    """A new generator at its start, for this change of this sample."""
    text = f"{how.perturb_seed} {change} {sample}"
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


def evenly(count: int, share: float, phase: float = 0.0) -> Mask:
    """Which of `count` things in order stay if the share is removed evenly among them."""
    steps = np.floor(np.arange(count + 1) * (1 - share) + phase)
    stays: Mask = steps[1:] > steps[:-1]
    return stays


def perturbed(plain: Events, how: MediaOptions, sample: str, name: str) -> Events:
    """The stream of a sample, changed; MediaError if nothing is left of it or it becomes too large.
    Drop and jitter are drawn per event of the plain stream; hot pixels fire, and the window is cut,
    between its first and last event.  The rate is lowered last, as at the output of a sensor."""
    if not how.perturbed:
        return plain
    begin, after = int(plain.t.min()), int(plain.t.max()) + 1
    kept = generator(how, "drop", sample).random(len(plain)) >= strength(how, "drop")
    found = plain.take(kept)
    if deviation := strength(how, "jitter"):
        noise = generator(how, "jitter", sample).standard_normal(len(plain)) * deviation
        found = _ordered(replace(found, t=found.t + np.rint(noise[kept]).astype(np.int64)))
    if share := strength(how, "hot"):
        found = _with_hot_pixels(found, share, generator(how, "hot", sample), begin, after, name)
    if share := strength(how, "window"):
        left = max(1, round((after - begin) * (1 - share)))
        low = begin + (after - begin - left) // 2  # as much is cut off at each end
        found = found.take((found.t >= low) & (found.t < low + left))
    if share := strength(how, "rate"):
        phase = generator(how, "rate", sample).random()
        found = _ordered(found).take(evenly(len(found), share, phase))
    if not len(found):
        raise MediaError(
            f"{name} has no event left after {how.perturbed}: choose a lower strength."
        )
    return found


def _ordered(events: Events) -> Events:
    """By time; events of one time stay in file order."""
    return events.take(np.argsort(events.t, kind="stable"))


def _with_hot_pixels(
    events: Events, share: float, draw: np.random.Generator, begin: int, after: int, name: str
) -> Events:
    """With an event every HOT_US at each hot pixel, merged by time.  At least one pixel is hot, and
    a larger share adds to them."""
    pixels = events.width * events.height
    order = np.argsort(draw.random(pixels), kind="stable")
    hot = np.sort(order[: max(1, round(share * pixels))])
    phases = draw.integers(0, HOT_US, pixels)[hot]
    polarity = draw.integers(0, 2, pixels, dtype=np.uint8)[hot]
    counts = np.maximum(0, -((begin + phases - after) // HOT_US))
    if len(events) + int(counts.sum()) > MAX_EVENTS:
        raise MediaError(
            f"{name} with {len(hot):,} hot pixels has more than {MAX_EVENTS:,} events: choose a "
            "lower strength, or a shorter window as in --window 0s+50ms."
        )
    which = np.repeat(np.arange(len(hot)), counts)
    ticks = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    y, x = np.divmod(hot[which], events.width)
    t = begin + phases[which] + ticks * HOT_US
    x, y = (np.append(*pair).astype(np.uint16) for pair in ((events.x, x), (events.y, y)))
    p = np.append(events.p, polarity[which])
    return _ordered(replace(events, x=x, y=y, t=np.append(events.t, t), p=p))
