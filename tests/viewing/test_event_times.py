"""When events happen: counts per bin, the spans of slices, windows."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from engine.errors import MediaError
from engine.media import events
from engine.media_options import SPLIT_RULES, Split, SplitRule
from engine.types import Events
from engine.viewing import seen_times
from tests.media.test_events import saved, stream


@pytest.fixture
def fish(real_root: Path) -> Events:
    return events.read(real_root / "event_npy/fish/000000.npy")


def check_density(found: Events) -> None:
    counted = seen_times.density(found)
    assert int(counted.total.sum()) == len(found)
    assert int(counted.on.sum()) == int(found.p.sum())
    assert len(counted.on) == len(counted.total) == seen_times.BINS
    assert counted.bin_us * seen_times.BINS == seen_times.duration_us(found) + 1


def check_spans(found: Events) -> None:
    spans = seen_times.slice_spans(found)
    assert [span.events for span in spans] == [
        part.stop - part.start for part in events.parts(found)
    ]
    assert sum(span.events for span in spans) == len(found)
    assert spans[0].begin_us == 0
    assert spans[-1].end_us == seen_times.duration_us(found)
    times = found.t - found.t.min()
    for before, after in pairwise(spans):
        assert before.end_us <= after.begin_us
        assert not ((times > before.end_us) & (times < after.begin_us)).any()


@pytest.mark.parametrize("n", [5, 6, 99, 1000, 12_345])
def test_bins_and_slices_hold_all_events(n: int) -> None:
    found = replace(stream(n), t=np.cumsum(np.random.default_rng(n).integers(0, 9, n)) + 70_000)
    check_density(found)
    check_spans(found)


def test_bins_and_slices_hold_all_events_of_a_recording(fish: Events) -> None:
    check_density(fish)
    check_spans(fish)
    _, on, off = seen_times.window(fish, 0, seen_times.duration_us(fish) + 1)
    assert on + off == len(fish)


@pytest.mark.parametrize("rule", SPLIT_RULES)
@pytest.mark.parametrize("parts", [1, 3, 8])
def test_the_spans_of_every_split_are_those_of_its_pictures(rule: SplitRule, parts: int) -> None:
    """A recording of 1 s with a burst, in a file order that is not that of time."""
    rng = np.random.default_rng(parts)
    times = np.concatenate([rng.integers(0, 1_000_000, 900), rng.integers(600_000, 620_000, 600)])
    found, split = replace(stream(1500), t=times + 70_000), Split(rule, parts)
    spans = seen_times.slice_spans(found, split)
    inside = [found.t[part] - found.t.min() for part in events.parts(found, split)]
    assert [(one.begin_us, one.end_us, one.events) for one in spans] == [
        (part.min(), part.max(), len(part)) for part in inside
    ]
    others = seen_times.slice_spans(found, Split("count", parts + 1))  # control
    assert [one.events for one in others][:parts] != [one.events for one in spans]
    if rule == "densest":
        assert all(one.end_us - one.begin_us < 25_000 for one in spans)
        assert max(one.events for one in spans) > 600  # the burst


def test_rates_count_every_event_of_a_file_once(tmp_path: Path) -> None:
    found = replace(stream(1000), t=np.arange(1000) * 2_000 + 70_000)
    path = saved(tmp_path, x=found.x, y=found.y, t=found.t, p=found.p)
    rates = seen_times.rates(path, 10)
    assert rates.counts.tolist() == [100] * 10 and rates.duration_us == 1_998_000
    assert rates.per_second == pytest.approx(100 / (1_998_001 / 10) * 1e6)
    assert int(seen_times.rates(path).counts.sum()) == 1000


def test_times_that_step_back_stay_in_the_window() -> None:
    found = replace(stream(10), t=np.array([5, 0, 9, 3, 7, 2, 8, 1, 6, 4]))
    spans = seen_times.slice_spans(found)
    assert min(span.begin_us for span in spans) == 0
    assert max(span.end_us for span in spans) == 9
    assert int(seen_times.density(found, 3).total.sum()) == 10


def test_few_events_have_no_slices() -> None:
    with pytest.raises(MediaError, match="4 events cannot be cut"):
        seen_times.slice_spans(stream(4))


def test_windows_side_by_side_hold_each_event_once(fish: Events) -> None:
    step = 10_000
    found = [seen_times.window(fish, begin, step) for begin in range(0, 50_000, step)]
    assert sum(on + off for _, on, off in found) == len(fish)
    assert sum(on for _, on, _ in found) == int(fish.p.sum())
