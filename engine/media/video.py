"""Reads the few frames of a clip that a model is shown, and holds the rules that choose them.  Only
the wanted frames are converted to RGB and kept, so a long clip needs no more memory than a short
one."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from engine.errors import BadInput, MediaError
from engine.media import decoding
from engine.media.decoding import Clip, container
from engine.media.media_files import Data, label, large, opened
from engine.types import FRAME_RULES

FRAMES = 8
_TAIL = 64  # the last bytes of a GIF, which hold its end mark

Choice = Callable[[int], Sequence[int]]


def choose(n: int, rule: str, count: int = FRAMES) -> list[int]:
    """The indices of the `count` frames of n that are shown, ascending; BadInput for an unknown
    rule.  If n < `count`, "arange" and "linspace" repeat frames; "spread" gives each once."""
    if rule not in FRAME_RULES:
        raise BadInput(f"frames is {rule!r}: choose one of {', '.join(FRAME_RULES)}.")
    if n <= 0:
        return []
    if rule == "linspace":
        return [int(i) for i in np.linspace(0, n - 1, count, dtype=int)]
    if rule == "spread":
        if n <= count:
            return list(range(n))
        return [int(i * (n - 1) / max(1, count - 1)) for i in range(count)]
    return [int(i) for i in np.arange(0, n, n / count).astype(int)[:count]]


def middle(n: int) -> list[int]:
    return [n // 2] if n > 0 else []


def decode(data: Data, name: str, choice: Choice) -> Clip:
    """The frames [H, W, 3] RGB that `choice` picks; MediaError if the clip cannot be decoded."""
    return decoding.some_frames(data, name, choice) or _of_all(data, name, choice)


def _of_all(data: Data, name: str, choice: Choice) -> Clip:
    """The same, but every frame is decoded; this always gives the right frames.  With one thread:
    several threads repair damage differently each time and may not report it."""
    expected = len(_times(data, name))
    wanted = list(choice(expected))
    kept, count, damaged = decoding.all_frames(data, name, wanted)
    if count != expected:
        wanted = list(choice(count))
        kept, count, damaged = decoding.all_frames(data, name, wanted)
    if not wanted or not count:
        raise MediaError(f"{name} {decoding.NO_FRAMES}")
    notes = []
    if count != expected:
        notes.append(f"{name} announces {expected:,} frames; {count:,} could be decoded.")
    if damaged:
        notes.append(f"{name} is damaged: {damaged:,} of its frames were repaired by the decoder.")
    with opened(data) as file:  # FFmpeg reads a GIF without its end mark without an error
        head = file.read(4)
        file.seek(max(0, len(data) - _TAIL))
        whole = file.read().rstrip(b"\0").endswith(b";")
    if head == b"GIF8" and not whole:
        notes.append(f"{name} has no end mark: it may be cut off, and frames may be missing.")
    return Clip(tuple(kept[i] for i in wanted), tuple(wanted), count, tuple(notes))


def times(path: Path) -> tuple[float, ...]:
    """When each frame is shown, in microseconds after the first one; () if the clip does not say.
    MediaError if the clip cannot be opened.  Nothing is decoded."""
    found = _times(large(path), label(path))
    known = sorted({time for time in found if time is not None})
    if not known or len(known) < len(found):  # an AVI gives no display times
        return ()
    return tuple(float((time - known[0]) * 1_000_000) for time in known)


def rate(data: Data, name: str) -> float | None:
    """The average number of frames per second, by the clip's header; None if it does not say."""
    with container(data, name, probed=False) as clip:
        found = clip.streams.video[0].average_rate
        return float(found) if found else None


def _times(data: Data, name: str) -> list[Fraction | None]:
    """The display time in seconds of each frame that is decoded, in the order of the packets."""
    found: list[Fraction | None] = []
    with container(data, name) as clip:
        stream = clip.streams.video[0]
        for number, packet in enumerate(clip.demux(stream)):
            decoding.check_count(number, name)
            if packet.size and not packet.is_discard:
                unit, at = packet.time_base or stream.time_base, packet.pts
                found.append(None if unit is None or at is None else Fraction(at * unit))
    return found
