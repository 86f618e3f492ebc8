"""Raw events to 5 images: the engine against a loop that sets one pixel after another.

The demo's events, and those of the recording beside the checkout, where there is one.  The run
stops if the pictures are not equal.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import Row, by_turns, demo_samples, main, rows

REAL = Path(__file__).resolve().parents[2] / "shared/data/real/event_npy/fish/000000.npy"
TARGET = 18.0


def measure(quick: bool) -> list[Row]:
    from engine.media import events

    found: list[Row] = []
    for name, path in (("a demo scene", demo_samples()[0].events), ("a recording", REAL)):
        if path.is_file():
            stream = events.read(path)
            ways = {"own": partial(events.render, stream), "a loop": partial(loop, stream)}
            if not all(map(np.array_equal, events.render(stream), loop(stream))):
                raise SystemExit(f"The pictures of {name} are not those of the loop.")
            what = f"{len(stream):,} events of {name} to 5 images"
            times = by_turns(ways, 1 if quick else 9)
            found += rows(what, times, {"a loop": TARGET})
    return found


def loop(stream: Any) -> list[Any]:
    """Five pictures, one event after another: each as large as its slice, the last event wins."""
    size, pictures = len(stream) // 5, []
    for number in range(5):
        places = range(number * size, len(stream) if number == 4 else (number + 1) * size)
        x, y = (column[places.start : places.stop] for column in (stream.x, stream.y))
        picture = np.full((int(y.max()) + 1, int(x.max()) + 1, 3), 255, dtype=np.uint8)
        for index in places:
            colour = (255, 0, 0) if stream.p[index] else (0, 0, 255)
            picture[stream.y[index], stream.x[index]] = colour
        pictures.append(picture)
    return pictures


if __name__ == "__main__":
    main("events", measure, __doc__)
