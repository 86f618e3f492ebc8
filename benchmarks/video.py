"""MP4 to 8 frames: the engine against decoding everything, OpenCV, decord and torchcodec.

Clips of 1440 x 1088, H.264, of 1, 5 and 16 seconds with a keyframe every 250 and every 12 frames,
made for the run.  All with one thread and by turns, CPU time.  The run stops if the engine's frames
are not those of a whole decoding.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import clips, rivals
from benchmarks.machine import Row, by_turns, main, rows, say

OWN, ALL = "StageScope", "decoding everything"
# Clips (seconds, frames from keyframe to keyframe) -> how many times less CPU than decoding all.
CLIPS = {(1, 250): 1.5, (1, 12): 1.4, (5, 250): 1.8, (5, 12): 2.4, (16, 250): 1.9, (16, 12): 6.0}
CHILD = "STAGESCOPE_BENCH_LIBRARIES"


def measure(quick: bool) -> list[Row]:
    from engine.media import video

    others, versions = rivals.usable()
    say(", ".join(f"{name} {version}" for name, version in versions.items()))
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for (seconds, gop), target in list(CLIPS.items())[: 1 if quick else None]:
            path = Path(folder) / f"{seconds}_{gop}.mp4"
            clips.write(path, seconds, gop)
            indices = video.choose(seconds * clips.FPS, "arange")
            ways = {OWN: _own, ALL: rivals.whole, **others}
            _check(_own(path, indices), rivals.whole(path, indices))
            calls = {name: partial(way, path, indices) for name, way in ways.items()}
            what = f"MP4 to 8 frames, {seconds} s, GOP {gop}, one thread"
            targets = {**dict.fromkeys(others, 1.0), ALL: target}
            found += rows(what, by_turns(calls, 1 if quick else 7), targets)
    return found


def _own(path: Path, indices: Sequence[int]) -> list[Any]:
    from engine.media import decoding, video
    from engine.media.media_files import large

    before, decoding.THREADS = decoding.THREADS, 1
    try:
        chosen = partial(video.choose, rule="arange")
        return list(video.decode(large(path), path.name, chosen).images)
    finally:
        decoding.THREADS = before


def _check(frames: Sequence[Any], wanted: Sequence[Any]) -> None:
    import numpy as np

    if not all(np.array_equal(one, other) for one, other in zip(frames, wanted, strict=True)):
        raise SystemExit("The engine's frames are not those of a whole decoding.")


if __name__ == "__main__":
    if CHILD in os.environ:
        main("video", measure, __doc__)
    else:  # a second process finds FFmpeg where torchcodec looks for it
        with tempfile.TemporaryDirectory() as libraries:
            places = [str(path) for path in rivals.library_folder(Path(libraries))]
            places += filter(None, [os.getenv("LD_LIBRARY_PATH")])
            own = {CHILD: "1", "LD_LIBRARY_PATH": os.pathsep.join(places)}
            command = [sys.executable, "-m", "benchmarks.video", *sys.argv[1:]]
            sys.exit(subprocess.run(command, env=os.environ | own).returncode)
