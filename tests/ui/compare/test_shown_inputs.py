"""Which settings of the shown runs are chips, and what has changed since them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from engine.media_options import perturbations, split, window
from engine.types import DecodeConfig, RunOptions, RunRequest, Sample
from tests.ui.answers import SAMPLE
from ui.compare import shown_inputs
from ui.compare.shown_inputs import changes

USUAL = RunRequest(SAMPLE, "one", "Why?")
SAMPLE, OTHER = Sample("one", "drive"), Sample("two", "drive")
SHOWN = [RunRequest(SAMPLE, name, "Why?") for name in ("a", "b")]


def test_default_settings_have_no_chips() -> None:
    assert shown_inputs.changed(USUAL) == ()


def test_each_changed_setting_is_a_chip() -> None:
    decode = DecodeConfig(20, temperature=0.7, top_p=0.9, seed=3, backend="eager")
    changed = RunOptions(decode=decode, frames="spread", cache="off", mode="hooked")
    changed = replace(changed, extent="stream", window=window("1.25s+50ms"))
    changed = replace(changed, split=split("time:8"), perturb=perturbations("drop:0.3"))
    assert shown_inputs.changed(replace(USUAL, how=changed)) == (
        "at most 20 new tokens",
        "sampled (temperature 0.7, top p 0.9, seed 3)",
        "eager token steps",
        "8 first-to-last frames",
        "event pictures sized by stream",
        "window 1.25s+50ms",
        "split into 8 parts by equal times",
        "perturbed by drop:0.3 seed 0",
        "cache off",
        "hooked",
    )


def test_settings_that_only_some_runs_have_are_not_shared() -> None:
    short = replace(USUAL, how=RunOptions(decode=DecodeConfig(20)))
    other = replace(short, how=replace(short.how, cache="off"))
    assert shown_inputs.shared([short, short]) == ("at most 20 new tokens",)
    assert shown_inputs.shared([short, other]) == ("at most 20 new tokens",)
    assert shown_inputs.shared([USUAL, other]) == ()


def test_the_table_shows_every_value_beside_the_default() -> None:
    found = shown_inputs.table([USUAL, replace(USUAL, how=RunOptions(cache="off"))])
    assert ("Feature cache", "cache on<br>cache off", "cache on") in found.rows
    assert len(found.rows) == len(shown_inputs.DEFAULTS)


def test_every_setting_changes_a_chip() -> None:
    """Each field of RunOptions, by a value that is not its default."""
    others: dict[str, Any] = {
        "frames": "spread", "extent": "stream", "window": window("50ms"), "split": split("time"),
        "perturb": perturbations("drop:0.3"), "decode": DecodeConfig(7), "cache": "off",
        "mode": "hooked",
    }  # fmt: skip
    names = {field.name for field in fields(RunOptions)} - {"perturb_seed"}  # part of perturb
    assert names == set(others)
    for name, value in others.items():
        assert len(shown_inputs.changed(replace(USUAL, how=RunOptions(**{name: value})))) == 1, name


def test_the_same_choice_has_no_changes_in_any_order() -> None:
    assert changes(SHOWN, SAMPLE, SHOWN[::-1]) == ()
    assert changes([], SAMPLE, SHOWN) == ()  # nothing is shown


def test_each_input_is_named() -> None:
    assert changes(SHOWN, OTHER, [replace(one, sample=OTHER) for one in SHOWN]) == ("sample",)
    assert changes(SHOWN, SAMPLE, [replace(one, prompt="When?") for one in SHOWN]) == ("question",)
    assert changes(SHOWN, SAMPLE, SHOWN[:1]) == ("models",)
    assert changes(SHOWN, None, []) == ("sample", "models")


def test_each_setting_is_named_once() -> None:
    decode = DecodeConfig(max_new_tokens=9, temperature=0.5)
    chosen = [replace(one, how=RunOptions(frames="spread", decode=decode)) for one in SHOWN]
    assert changes(SHOWN, SAMPLE, chosen) == ("max new tokens", "temperature", "frames")
