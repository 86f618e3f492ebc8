"""Seeded changes of an event stream (docs/results.md).

The random numbers of a change depend on the seed, the change and the sample's id alone.  So changes
do not depend on one another, and with one seed the events that are lost at strength 0.3 are also
lost at 0.6.  Without a change of strength above 0 nothing here is called.  Times are whole
microseconds.
"""

import hashlib
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media_options import Change
from engine.types import Events, MediaOptions

HOT_US = 1_000  # between two events of a hot pixel: 1,000 a second
MAX_EVENTS = 1 << 24  # with those of hot pixels: about 1 GB while they are merged

Mask = npt.NDArray[np.bool_]


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


def stream(plain: Events, how: MediaOptions, sample: str, name: str) -> Events:
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
        draw = generator(how, "hot", sample)
        found = _with_hot_pixels(found, share, draw, begin, after, name)
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
