"""Which settings of the shown runs are chips."""

from __future__ import annotations

from dataclasses import replace

from engine.types import DecodeConfig, RunRequest
from tests.ui.answers import SAMPLE
from ui.compare import setting_chips

USUAL = RunRequest(SAMPLE, "one", "Why?")


def test_default_settings_have_no_chips() -> None:
    assert setting_chips.changed(USUAL) == ()


def test_each_changed_setting_is_a_chip() -> None:
    decode = DecodeConfig(20, temperature=0.7, top_p=0.9, seed=3, backend="eager")
    changed = replace(USUAL, decode=decode, frames="spread", cache="off", mode="hooked")
    changed = replace(changed, pixels="fast", extent="stream")
    assert setting_chips.changed(changed) == (
        "sampled (temperature 0.7, top p 0.9, seed 3)",
        "at most 20 new tokens",
        "eager token steps",
        "8 first-to-last frames",
        "cache off",
        "hooked",
        "fast pixels",
        "event pictures sized by stream",
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
