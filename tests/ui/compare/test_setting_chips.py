"""Which settings of the shown runs are chips."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from engine.media_options import perturbations, split, window
from engine.types import DecodeConfig, RunOptions, RunRequest
from tests.ui.answers import SAMPLE
from ui.compare import setting_chips

USUAL = RunRequest(SAMPLE, "one", "Why?")


def test_default_settings_have_no_chips() -> None:
    assert setting_chips.changed(USUAL) == ()


def test_each_changed_setting_is_a_chip() -> None:
    decode = DecodeConfig(20, temperature=0.7, top_p=0.9, seed=3, backend="eager")
    changed = replace(USUAL, decode=decode, frames="spread", cache="off", mode="hooked")
    changed = replace(changed, pixels="fast", extent="stream", window=window("1.25s+50ms"))
    changed = replace(changed, split=split("time:8"), perturb=perturbations("drop:0.3"))
    assert setting_chips.changed(changed) == (
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
        "fast pixels",
    )
    assert setting_chips.changed(replace(USUAL, prefix=True)) == ("prompt prefix reuse on",)


def test_settings_that_only_some_runs_have_are_not_shared() -> None:
    short = replace(USUAL, decode=DecodeConfig(20))
    other = replace(short, cache="off")
    assert setting_chips.shared([short, short]) == ("at most 20 new tokens",)
    assert setting_chips.shared([short, other]) == ("at most 20 new tokens",)
    assert setting_chips.shared([USUAL, other]) == ()


def test_the_table_shows_every_value_beside_the_default() -> None:
    html = setting_chips.table([USUAL, replace(USUAL, cache="off")])
    assert "<td>cache on<br>cache off</td><td>cache on</td>" in html
    assert html.count("<tr>") == 1 + len(setting_chips.DEFAULTS)


def test_every_setting_changes_a_chip() -> None:
    """Each field of RunOptions, by a value that is not its default."""
    others: dict[str, Any] = {
        "frames": "spread", "extent": "stream", "window": window("50ms"), "split": split("time"),
        "perturb": perturbations("drop:0.3"), "decode": DecodeConfig(7), "cache": "off",
        "mode": "hooked", "pixels": "fast",
    }  # fmt: skip
    names = {field.name for field in fields(RunOptions)} - {"perturb_seed"}  # part of perturb
    assert names == set(others)
    for name, value in others.items():
        assert len(setting_chips.changed(replace(USUAL, **{name: value}))) == 1, name
