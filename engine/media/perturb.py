"""Seeded changes of an event stream or of the frames of a clip (docs/robustness.md).

The random numbers of a change depend on the seed, the change and the sample's id alone.  So changes
do not depend on one another, and with one seed the events that are lost at strength 0.3 are also
lost at 0.6.  Without a change of strength above 0 nothing here is called.  Times are whole
microseconds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media_options import Change, Perturbation, perturbed_text
from engine.types import Events, Image, MediaOptions

HOT_US = 1_000  # between two events of a hot pixel: 1,000 a second
MAX_EVENTS = 1 << 24  # with those of hot pixels: about 1 GB while they are merged
WHITE = 255

Mask = npt.NDArray[np.bool_]
Times = npt.NDArray[np.int64]


class CannotPerturb(MediaError):
    """The change has no meaning for this sample; no other source of it is tried."""


@dataclass(frozen=True)
class Changes:
    """The changes of strength above 0 for one sample."""

    found: tuple[Perturbation, ...] = ()
    seed: int = 0
    sample: str = ""

    @classmethod
    def of(cls, how: MediaOptions, sample: str) -> Changes:
        return cls(tuple(one for one in how.perturb if one.strength), how.perturb_seed, sample)

    def __bool__(self) -> bool:
        return bool(self.found)

    def __str__(self) -> str:
        return perturbed_text(self.found, self.seed)

    def strength(self, change: Change) -> float:
        """0 without this change."""
        return next((one.strength for one in self.found if one.change == change), 0.0)

    def generator(self, change: Change) -> np.random.Generator:
        """A new generator at its start, for this change of this sample."""
        text = f"{self.seed} {change} {self.sample}"
        digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
        return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))

    @property
    def tag(self) -> str:
        """What digests add; "" without changes."""
        return f" perturbed {self} {self.sample}" if self else ""


# Events.
def stream(plain: Events, changes: Changes, name: str) -> Events:
    """The changed stream; MediaError if nothing is left of it or it becomes too large.

    Drop and jitter are drawn per event of the plain stream; hot pixels fire, and the window is cut,
    between its first and last event.  The rate is lowered last, as at the output of a sensor.
    """
    if not changes:
        return plain
    begin, after = int(plain.t.min()), int(plain.t.max()) + 1
    kept = _arrived(len(plain), changes)
    if deviation := changes.strength("jitter"):
        noise = changes.generator("jitter").standard_normal(len(plain)) * deviation
        moved = replace(plain, t=plain.t + np.rint(noise).astype(np.int64))
        found = _ordered(moved.take(kept))
    else:
        found = plain.take(kept)
    found = _with_hot_pixels(found, changes, begin, after, name)
    if share := changes.strength("window"):
        low, high = middle(begin, after, share)
        found = found.take((found.t >= low) & (found.t < high))
    if share := changes.strength("rate"):
        found = _ordered(found)
        phase = changes.generator("rate").random()
        found = found.take(evenly(len(found), share, phase))
    if not len(found):
        raise MediaError(f"{name} has no event left after {changes}: choose a lower strength.")
    return found


def _arrived(count: int, changes: Changes) -> Mask:
    """Each of `count` things arrives with probability 1 - strength of "drop"."""
    share = changes.strength("drop")
    return changes.generator("drop").random(count) >= share if share else np.ones(count, np.bool_)


def _ordered(events: Events) -> Events:
    """By time; events of one time stay in file order."""
    return events.take(np.argsort(events.t, kind="stable"))


def _with_hot_pixels(events: Events, changes: Changes, begin: int, after: int, name: str) -> Events:
    """With an event every HOT_US at each hot pixel, merged by time."""
    share = changes.strength("hot")
    if not share:
        return events
    generator, pixels = changes.generator("hot"), events.width * events.height
    hot = hot_pixels(generator, pixels, share)
    phases = generator.integers(0, HOT_US, pixels)[hot]
    polarity = generator.integers(0, 2, pixels, dtype=np.uint8)[hot]
    counts = np.maximum(0, -((begin + phases - after) // HOT_US))
    if len(events) + int(counts.sum()) > MAX_EVENTS:
        raise MediaError(
            f"{name} with {len(hot):,} hot pixels has more than {MAX_EVENTS:,} events: choose a "
            "lower strength, or a shorter window as in --window 0s+50ms."
        )
    which = np.repeat(np.arange(len(hot)), counts)
    ticks = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
    x = (hot[which] % events.width).astype(np.uint16)
    y = (hot[which] // events.width).astype(np.uint16)
    t = (begin + phases[which] + ticks * HOT_US).astype(np.int64)
    added = zip("xytp", (x, y, t, polarity[which]), strict=True)
    joined: dict[str, Any] = {
        key: np.concatenate([getattr(events, key), more]) for key, more in added
    }
    return _ordered(replace(events, **joined))


def hot_pixels(generator: np.random.Generator, pixels: int, share: float) -> npt.NDArray[np.int64]:
    """The numbers of the hot pixels, ascending: at least one; more strength adds to them."""
    count = max(1, round(share * pixels))
    order = np.argsort(generator.random(pixels), kind="stable")
    return np.sort(order[:count])


def middle(begin: int, after: int, share: float) -> tuple[int, int]:
    """[low, high) after the share has been cut off, half of it at each end; at least 1 long."""
    left = max(1, round((after - begin) * (1 - share)))
    low = begin + (after - begin - left) // 2
    return low, low + left


def evenly(count: int, share: float, phase: float = 0.0) -> Mask:
    """Which of `count` things in order stay if the share is removed evenly among them."""
    steps = np.floor(np.arange(count + 1) * (1 - share) + phase)
    stays: Mask = steps[1:] > steps[:-1]
    return stays


# Frames.
@dataclass
class FrameChanges:
    """A rule that chooses frames, with the changes that act on the choice.

    `rate`: gives the frames per second of the clip; None for pictures without times.  `what` names
    the source in errors.  After a call `plain` holds what the rule alone chooses.
    """

    rule: Callable[[int], Sequence[int]]
    changes: Changes
    what: str
    rate: Callable[[], float | None] | None = None
    plain: list[int] = field(default_factory=list)

    def __call__(self, count: int) -> list[int]:
        """The indices of the frames that are shown, of a clip of `count` frames."""
        self.plain = list(self.rule(count))
        if not self.changes or not self.plain:
            return self.plain
        asked = [one for one in self.changes.found if one.change != "hot"]
        if count == 1 and asked:
            raise CannotPerturb(
                f"{self.what} is a single picture, and {asked[0]} needs several frames: leave it "
                "out, or pick another sample."
            )
        there = self._available(count)
        wanted = there[self.rule(len(there))]
        return self._received(self._moved(wanted, there), there, count)

    def notes(self, indices: Sequence[int]) -> Iterator[str]:
        """What the changes did to the choice; nothing without changes."""
        if not self.changes:
            return
        others = sum(a != b for a, b in zip_longest(indices, self.plain))
        hot = self.changes.strength("hot")
        white = f", and {hot:.6g} of the pixels are white" if hot else ""
        moved = f"{others:,} of {len(self.plain):,} chosen frames are others"
        yield f"Perturbed by {self.changes}: {moved}{white}."

    def _available(self, count: int) -> npt.NDArray[np.int64]:
        """The frames in the window, thinned to the lower frame rate; at least one."""
        low, high = middle(0, count, self.changes.strength("window"))
        inside = np.arange(low, high, dtype=np.int64)
        share = self.changes.strength("rate")
        if not share:
            return inside
        left = inside[evenly(len(inside), share, self.changes.generator("rate").random())]
        return left if len(left) else inside[:1]

    def _moved(self, wanted: npt.NDArray[np.int64], there: npt.NDArray[np.int64]) -> list[int]:
        """The frames at the moved moments, in order: the last one there at that time."""
        deviation = self.changes.strength("jitter")
        if not deviation:
            return [int(index) for index in wanted]
        rate = self.rate() if self.rate else None
        if not rate:
            raise CannotPerturb(
                f"{self.what} has no frame rate, and jitter moves frames in time: leave jitter "
                "out, or give a clip that has one."
            )
        noise = self.changes.generator("jitter").standard_normal(len(wanted)) * deviation
        moments = np.sort(wanted + np.rint(noise * rate / 1_000_000))
        places = np.searchsorted(there, moments, side="right") - 1
        return [int(there[place]) for place in np.clip(places, 0, len(there) - 1)]

    def _received(self, wanted: list[int], there: npt.NDArray[np.int64], count: int) -> list[int]:
        """Lost frames repeat the one shown before; a first one, its neighbour in the clip."""
        if not self.changes.strength("drop"):
            return wanted
        arrived = _arrived(count, self.changes)
        known = [int(index) for index in there if arrived[index]]
        if not known:
            raise CannotPerturb(
                f"{self.what} has no frame left after {self.changes}: choose a lower strength."
            )
        found: list[int] = []
        for index in wanted:
            before = [one for one in known if one < index] or known[:1]
            found.append(index if arrived[index] else found[-1] if found else before[-1])
        return found


def whitened(pictures: Sequence[Image], changes: Changes) -> tuple[Image, ...]:
    """The pictures with the same white pixels in all of one size."""
    share, found = changes.strength("hot"), list[Image]()
    for picture in pictures if share else ():
        height, width = picture.shape[:2]
        changed: npt.NDArray[Any] = picture.reshape(height * width, 3).copy()
        changed[hot_pixels(changes.generator("hot"), height * width, share)] = WHITE
        found.append(changed.reshape(height, width, 3))
    return tuple(found or pictures)
