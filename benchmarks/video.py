"""MP4 to 8 frames: the engine against decoding everything, OpenCV, decord and torchcodec.

`python -m benchmarks.video`: clips of 1440 x 1088, H.264, of 1, 5 and 16 seconds with a keyframe
every 250 and every 12 frames, made for the run.  All with one thread and by turns, medians of CPU
time and wall; then the engine with one, two and as many threads as cores, and the memory that a
clip of 10 minutes takes.  Every rival's frames are compared with those of a whole decoding.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import clips
from benchmarks.machine import keep, spread

ROUNDS = 7
SECONDS, GOPS = (1, 5, 16), (250, 12)
LONG = 38  # repetitions of the clip of 16 seconds that give 10 minutes
OWN, ALL = "StageScope", "decode all"
CHILD = "STAGESCOPE_BENCH_CLIPS"
MEMORY = """
import resource, sys
from pathlib import Path
import av, numpy
import engine.media.media_sources
from engine import media
from engine.types import Sample
def peak():
    status = Path("/proc/self/status")
    if status.is_file():  # where ru_maxrss counts what the parent had
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20
before = peak()
found = media.load(Sample("a", "s", mp4=Path(sys.argv[1])), "video")
print(round(before), round(peak()), found.source.replace(",", "").split()[-1])
"""


def main() -> None:
    """The clips, then a second process that finds FFmpeg where torchcodec looks for it."""
    if CHILD in os.environ:
        keep("video", _measure(Path(os.environ[CHILD])))
        return
    from benchmarks import rivals

    with tempfile.TemporaryDirectory() as folder:
        for seconds in SECONDS:
            for gop in GOPS:
                clips.write(_path(Path(folder), seconds, gop), seconds, gop)
        clips.repeat(_path(Path(folder), 16, 250), Path(folder) / "long.mp4", LONG)
        libraries = Path(folder) / "libraries"
        libraries.mkdir()
        places = [*map(str, rivals.library_folder(libraries)), os.getenv("LD_LIBRARY_PATH", "")]
        own = {CHILD: folder, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, places))}
        command = [sys.executable, "-m", "benchmarks.video"]
        subprocess.run(command, env=os.environ | own, check=True)


def _path(folder: Path, seconds: int, gop: int) -> Path:
    return folder / f"{seconds}_{gop}.mp4"


def _measure(folder: Path) -> dict[str, Any]:
    from benchmarks import rivals

    others, versions = rivals.usable()
    ways = {ALL: rivals.whole, OWN: _own} | others
    figures: dict[str, Any] = {"clips": f"{clips.WIDTH} x {clips.HEIGHT}, H.264", **versions}
    for seconds in SECONDS:
        for gop in GOPS:
            path = _path(folder, seconds, gop)
            print(f"{seconds} s, a keyframe every {gop} frames ...", file=sys.stderr)
            figures[f"{seconds} s, GOP {gop}"] = _cell(ways, path, seconds * clips.FPS)
    figures["threads, 16 s"] = {f"GOP {gop}": _threads(_path(folder, 16, gop)) for gop in GOPS}
    figures["10 minutes"] = _memory(folder / "long.mp4")
    return figures


def _cell(ways: dict[str, Any], path: Path, count: int) -> dict[str, Any]:
    """Every way by turns on one clip: times, ratios of the same round, equality of frames."""
    from engine.media import video

    indices = video.choose(count, "arange")
    wanted = ways[ALL](path, indices)
    equal = {name: _equal(way(path, indices), wanted) for name, way in ways.items()}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            times[name].append(_timed(lambda way=way: way(path, indices)))  # type: ignore[misc]
    return {name: _row(times[name], times[ALL], times[OWN]) | equal[name] for name in ways}


def _own(path: Path, indices: Sequence[int]) -> list[Any]:
    from engine.media import decoding, video

    before, decoding.THREADS = decoding.THREADS, 1
    try:
        return list(video.read(path, "arange").images)
    finally:
        decoding.THREADS = before


def _threads(path: Path) -> dict[str, Any]:
    """The engine with one, two and as many threads as there are cores, by turns."""
    from engine.media import decoding, video

    times: dict[int, list[tuple[float, float]]] = {1: [], 2: [], 0: []}
    before = decoding.THREADS
    for _ in range(ROUNDS):
        for count, found in times.items():
            decoding.THREADS = count
            found.append(_timed(lambda: video.read(path, "arange")))
    decoding.THREADS = before
    names = {1: "one", 2: "two", 0: "one per core"}
    return {names[count]: _row(found, times[1], times[1]) for count, found in times.items()}


def _timed(work: Callable[[], Any]) -> tuple[float, float]:
    """(CPU, wall) in milliseconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return 1000 * (time.process_time() - cpu), 1000 * (time.perf_counter() - wall)


Times = list[tuple[float, float]]  # CPU and wall


def _row(times: Times, base: Times, engine: Times) -> dict[str, Any]:
    """A reader's times, and their ratios to `base` and to the engine."""
    pairs = list(zip(base, times, strict=True))
    ahead = [own[0] / fast[0] for own, fast in zip(times, engine, strict=True)]
    return {
        "cpu_ms": spread([cpu for cpu, _ in times]),
        "wall_ms": spread([wall for _, wall in times]),
        "times_less_cpu": spread([one[0] / own[0] for one, own in pairs]),
        "times_less_wall": spread([one[1] / own[1] for one, own in pairs]),
        "times_of_own_cpu": spread(ahead),
    }


def _equal(found: list[Any], wanted: list[Any]) -> dict[str, Any]:
    """Whether the frames equal those of a full decoding, and the largest difference."""
    import numpy as np

    if [frame.shape for frame in found] != [frame.shape for frame in wanted]:
        return {"equal": False, "largest_difference": None}
    differences = (
        int(np.abs(one.astype(np.int16) - other).max())
        for one, other in zip(found, wanted, strict=True)
    )
    worst = max(differences)
    return {"equal": worst == 0, "largest_difference": worst}


def _memory(path: Path) -> dict[str, Any]:
    """Memory of a separate process before it loads the clip, and its peak."""
    command = [sys.executable, "-c", MEMORY, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    before, peak, count = map(int, done.stdout.split())
    size = round(path.stat().st_size / 2**20, 1)
    return {"frames": count, "file_mb": size, "before_mb": before, "peak_mb": peak}


if __name__ == "__main__":
    main()
