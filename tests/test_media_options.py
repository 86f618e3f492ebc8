"""Windows, splits and perturbations as texts."""

import pytest

from engine.errors import BadInput
from engine.media_options import (
    Perturbation,
    Split,
    Window,
    perturbations,
    split,
    sweep,
    window,
)


def test_the_text_of_a_window_is_read_as_the_same_window() -> None:
    assert str(window("1.25s+50ms")) == "1.25s+50ms"
    assert str(window("50ms")) == "0s+50ms" and window(" ") is None
    assert window("1250 ms + 50000us") == Window(1_250_000, 50_000)


def test_a_window_without_a_length_says_so() -> None:
    with pytest.raises(BadInput, match="lasts 0 us"):
        Window(500_000, 0)
    assert window("9h+1s") == Window(32_400_000_000, 1_000_000)


def test_splits_and_perturbations_are_read_back() -> None:
    assert split("densest:8") == Split("densest", 8) and str(split("time")) == "time:5"
    found = perturbations("jitter:500us, drop:0.3")
    assert found == (Perturbation("drop", 0.3), Perturbation("jitter", 500.0))
    assert perturbations(",".join(map(str, found))) == found


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
    with pytest.raises(BadInput, match="only the command `bench` sweeps"):
        perturbations("drop:0/0.3")
