"""What the page says has changed since the shown runs."""

from __future__ import annotations

from dataclasses import replace

from engine.types import DecodeConfig, RunRequest, Sample
from ui.compare.input_changes import changes, sentence

SAMPLE, OTHER = Sample("one", "drive"), Sample("two", "drive")
SHOWN = [RunRequest(SAMPLE, name, "Why?") for name in ("a", "b")]


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
    chosen = [replace(one, frames="spread", decode=decode) for one in SHOWN]
    assert changes(SHOWN, SAMPLE, chosen) == ("max new tokens", "temperature", "frames")
    assert changes(SHOWN, SAMPLE, [replace(one, prefix=True) for one in SHOWN]) == (
        "prompt prefix",
    )


def test_the_sentence_names_a_new_sample() -> None:
    assert sentence(("sample", "mode"), OTHER) == (
        "Changed since these runs: sample, mode. The new sample is drive · two. "
        "Press Run to update the answers."
    )
    assert "new sample" not in sentence(("mode",), OTHER)
