"""Raw events to images: the engine against a loop over events, and a long stream.

`python -m benchmarks.events`: the demo's events, 10 million synthetic ones, and those of a real
recording: the file given with `--file`, or the one beside the checkout, where there is one.
Drawing is compared with a loop over events, which sets one pixel after the other; the pictures
must be equal.  Of the 10 million, reading the file is timed as well.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import keep, spread

ROUNDS, MANY = 9, 10_000_000
WIDTH, HEIGHT, SECONDS = 640, 480, 0.09
REAL = Path(__file__).resolve().parents[2] / "shared/data/real/event_npy/fish/000000.npy"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument(
        "--file", type=Path, default=REAL, help="a raw .npy of events to measure as well"
    )
    given = options.parse_args().file
    figures = {"demo": against_a_loop(_demo())}
    if given.is_file():
        figures["recording"] = against_a_loop(given)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.npy"
        write(path, MANY)
        figures["synthetic"] = many(path)
    keep("events", figures)


def _demo() -> Path:
    from engine import settings
    from engine.demo.demo_dataset import ensure_dataset
    from engine.media import dataset

    sample = dataset.read(ensure_dataset(settings.load().demo_dir)).samples[0]
    assert sample.events is not None
    return sample.events


def write(path: Path, count: int) -> None:
    """Events of a sensor of 640 x 480, drawn at random, in order of time."""
    rng = np.random.default_rng(0)
    columns = [("x", np.uint16), ("y", np.uint16), ("t", np.uint32), ("p", np.uint8)]
    table = np.empty(count, dtype=columns)
    table["x"], table["y"] = rng.integers(0, WIDTH, count), rng.integers(0, HEIGHT, count)
    table["t"], table["p"] = np.linspace(0, 1e6 * SECONDS, count), rng.integers(0, 2, count)
    np.save(path, table, allow_pickle=False)


def against_a_loop(path: Path) -> dict[str, Any]:
    """Drawing by turns with the loop; ratios within a round."""
    from engine.media import events

    stream = events.read(path)
    pairs = list(zip(events.render(stream), loop(stream), strict=True))
    drawn, looped = [], []
    for _ in range(ROUNDS):
        looped.append(_cpu_ms(lambda: loop(stream)))
        drawn.append(_cpu_ms(lambda: events.render(stream)))
    ratios = [slow / fast for slow, fast in zip(looped, drawn, strict=True)]
    return {
        "events": len(stream),
        "equal": all(np.array_equal(*pair) for pair in pairs),
        "sizes": len({drawn.shape for drawn, _ in pairs}),
        "drawn_cpu_ms": spread(drawn),
        "loop_cpu_ms": spread(looped),
        "times_less": spread(ratios),
    }


def many(path: Path) -> dict[str, Any]:
    """Reading and drawing a long stream, each by itself and together, CPU and wall."""
    from engine.media import events

    reading, drawing, wall = [], [], []
    stream = events.read(path)
    for _ in range(ROUNDS):
        start = time.perf_counter()
        reading.append(_cpu_ms(lambda: events.read(path)))
        drawing.append(_cpu_ms(lambda: events.render(stream)))
        wall.append(1000 * (time.perf_counter() - start))
    return {
        "events": len(stream),
        "reading_cpu_ms": spread(reading),
        "drawing_cpu_ms": spread(drawing),
        "both_cpu_ms": spread([a + b for a, b in zip(reading, drawing, strict=True)]),
        "both_wall_ms": spread(wall),
    }


def loop(stream: Any) -> Any:
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


def _cpu_ms(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return 1000 * (time.process_time() - start)


if __name__ == "__main__":
    main()
