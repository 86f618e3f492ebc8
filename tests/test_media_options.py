"""Windows, splits and perturbations as texts."""

from __future__ import annotations

import pytest

from engine.errors import BadInput
from engine.media_options import (
    MAX_US,
    Perturbation,
    Split,
    Window,
    microseconds,
    perturbations,
    split,
    sweep,
    sweep_text,
    swept_change,
    time_text,
    window,
)


@pytest.mark.parametrize(
    ("us", "text"),
    [(0, "0s"), (1, "1us"), (999, "999us"), (1_000, "1ms"), (1_500, "1.5ms"), (50_001, "50.001ms"),
     (100_000, "100ms"), (1_250_000, "1.25s"), (10_000_000, "10s"), (3_600_000_000, "3600s")],
)  # fmt: skip
def test_times_are_exact(us: int, text: str) -> None:
    assert time_text(us) == text and microseconds(text) == us


def test_no_two_windows_have_one_text() -> None:
    lengths = [digit * 10**zeros for zeros in range(10) for digit in (1, 5, 12)]
    windows = [Window(start, length) for start in (0, 5_000, 50_000) for length in lengths]
    windows += [Window(MAX_US, MAX_US)]
    assert len({str(one) for one in windows}) == len(set(windows))
    assert all(window(str(one)) == one for one in windows)


def test_the_text_of_a_window_is_read_as_the_same_window() -> None:
    assert str(window("1.25s+50ms")) == "1.25s+50ms"
    assert str(window("50ms")) == "0s+50ms" and window(" ") is None
    assert window("1250 ms + 50000us") == Window(1_250_000, 50_000)


@pytest.mark.parametrize("text", ["50", "1s+", "1s+50", "1s-50ms", "-1s+1s", "1s+0.5us"])
def test_a_text_that_is_no_window_is_named(text: str) -> None:
    with pytest.raises(BadInput, match=r"write START\+LENGTH in whole microseconds"):
        window(text)


def test_a_window_without_a_length_says_so() -> None:
    with pytest.raises(BadInput, match="lasts 0 us"):
        Window(500_000, 0)
    assert window("9h+1s") == Window(32_400_000_000, 1_000_000)


def test_strengths_keep_all_the_digits_that_are_read() -> None:
    texts = ["drop:0.1234567", "drop:0.12345671", "hot:0.9999999", "drop:0.0000001", "drop:0"]
    assert [str(perturbations(text)[0]) for text in texts] == texts


def test_splits_and_perturbations_are_read_back() -> None:
    assert split("densest:8") == Split("densest", 8) and str(split("time")) == "time:5"
    found = perturbations("jitter:500us, drop:0.3")
    assert found == (Perturbation("drop", 0.3), Perturbation("jitter", 500.0))
    assert perturbations(",".join(map(str, found))) == found


def test_a_sweep_is_a_run_per_strength_ascending() -> None:
    runs = sweep("drop:0.6/0/0.3,jitter:1ms")
    assert [",".join(map(str, run)) for run in runs] == [
        f"drop:{one},jitter:1ms" for one in ("0", "0.3", "0.6")
    ]
    assert sweep(sweep_text(runs)) == runs and swept_change(runs) == "drop"
    assert sweep("drop:.3") == sweep("drop:0.3") == (perturbations("drop:0.3"),) and sweep("") == (
        (),
    )
    assert sweep_text(sweep("jitter:0/500us")) == "jitter:0us/500us"
    assert sweep_text(sweep("")) == ""
    assert swept_change(sweep("drop:0.3")) is None
    assert swept_change([*sweep("drop:0.3"), *sweep("hot:0.3")]) is None
    assert swept_change([(), *sweep("hot:0.3")]) == "hot"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("drop:0/0.3,hot:0/0.1", "is no sweep: give"),
        ("drop:0.3/0.3", "different strengths"),
        ("jitter:0/0us", "different strengths"),
        ("drop:0/1", "give a share from 0 to below 1"),
        ("drop:/0.3", "is not a perturbation"),
        ("drop:0/0.3,drop:0.1", "drop is given twice"),
        ("drop:" + "/".join(f"0.{n:03d}" for n in range(33)), "give at most 32 different"),
    ],
)
def test_a_text_that_is_no_sweep_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        sweep(text)


def test_only_a_sweep_has_several_strengths() -> None:
    with pytest.raises(BadInput, match="only bench runs a sweep"):
        perturbations("drop:0/0.3")
