"""Other libraries that give chosen frames of a clip, one thread each, where they are installed.

`pip install -e '.[bench]'`.  torchcodec brings no FFmpeg of its own: `library_folder`
makes one out of PyAV's, under the names torchcodec looks for.

Boundary: each rival is a function from a path and indices to frames [H, W, 3] RGB.
"""

import re
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Frames = list[Any]
Rival = Callable[[Path, Sequence[int]], Frames]


def whole(path: Path, indices: Sequence[int]) -> Frames:
    """PyAV: every frame decoded and converted, then eight of them taken."""
    import av

    with av.open(str(path)) as clip:
        stream = clip.streams.video[0]
        stream.thread_type, stream.codec_context.thread_count = "NONE", 1
        frames = [frame.to_ndarray(format="rgb24") for frame in clip.decode(stream)]
    return [frames[index] for index in indices]


def opencv(path: Path, indices: Sequence[int]) -> Frames:
    """Every frame grabbed, the wanted ones converted."""
    import cv2

    clip = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
    frames, wanted = [], set(indices)
    for index in range(max(indices) + 1):
        clip.grab()
        if index in wanted:
            frames.append(cv2.cvtColor(clip.retrieve()[1], cv2.COLOR_BGR2RGB))
    clip.release()
    return frames


def decord(path: Path, indices: Sequence[int]) -> Frames:
    import decord

    reader = decord.VideoReader(str(path), ctx=decord.cpu(0), num_threads=1)
    return list(reader.get_batch(list(indices)).asnumpy())


def torchcodec(path: Path, indices: Sequence[int]) -> Frames:
    from torchcodec.decoders import VideoDecoder

    decoder = VideoDecoder(str(path), dimension_order="NHWC", num_ffmpeg_threads=1)
    return list(decoder.get_frames_at(list(indices)).data.numpy())


RIVALS: dict[str, tuple[str, Rival]] = {
    "OpenCV": ("opencv-python-headless", opencv),
    "decord": ("decord", decord),
    "torchcodec": ("torchcodec", torchcodec),
}


def usable() -> tuple[dict[str, Rival], dict[str, str]]:
    """(the rivals that import, and for all of them a version or why there is none)."""
    found: dict[str, Rival] = {}
    said: dict[str, str] = {}
    for name, (package, rival) in RIVALS.items():
        try:
            said[name] = version(package)
            __import__({"OpenCV": "cv2"}.get(name, name))
        except PackageNotFoundError:
            said[name] = "not installed"
        except (ImportError, OSError, RuntimeError) as error:
            said[name] = f"does not import: {str(error).splitlines()[0]}"
        else:
            found[name] = rival
    return found, said


def library_folder(folder: Path) -> list[Path]:
    """Folders for LD_LIBRARY_PATH: links to PyAV's FFmpeg, and what those libraries need."""
    spec = find_spec("av")
    home = Path(str(spec.origin)).parents[1] / "av.libs" if spec else Path()
    for path in home.glob("lib*-*.so.*"):
        if name := re.fullmatch(r"(lib(?:av|sw)[a-z]+)-[0-9a-f]+\.so\.([0-9]+)[0-9.]*", path.name):
            link = folder / f"{name[1]}.so.{name[2]}"
            if not link.exists():
                link.symlink_to(path)
    return [folder, home]
