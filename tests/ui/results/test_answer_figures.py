"""The badges of an answer on the Results page."""

from __future__ import annotations

from typing import Any

from ui.results import answer_figures

LINE: dict[str, Any] = {
    "batch": 1, "model": "m", "backend": "eager", "pixels": "exact", "standing": "unverified",
    "verified": None, "missing": "", "cached": False, "group": "measured", "mode": "decoupled",
    "window": "", "split": "count:5", "perturb": "",
}  # fmt: skip


def words(**changes: str) -> list[str]:
    return [badge[0] for badge in answer_figures.badges(LINE | changes)][1:]


def test_window_split_and_perturbation_are_badges() -> None:
    assert words() == []  # control: the usual settings
    found = words(window="1.25s+50ms", split="time:8", perturb="drop:0.3 seed 7")
    assert [one.replace("\\", "") for one in found] == [
        "window 1.25s+50ms", "split time:8", "perturbed by drop:0.3 seed 7",
    ]  # fmt: skip


def test_what_a_file_says_is_no_markup() -> None:
    (found,) = words(window="**[x](http://y)**")
    assert "**" not in found and "](" not in found
