from __future__ import annotations

from pathlib import Path

import pytest

from ui.benchmark.model_names import labelled


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tiny-llava, measured, sample s1", "Tiny llava, measured, sample s1"),
        ("loading tiny-eventgpt", "loading Tiny eventgpt"),
        ("'tiny-llava' and tiny-video_llava.", "'Tiny llava' and Tiny video_llava."),
        ("tiny-llava@float16: halved", "Tiny llava · float16: halved"),
        ("Run `python -m engine download tiny-llava`.",) * 2,
        ("/data/tiny-llava and tiny-llava/x, tiny-llava-2, tiny-llava.json",) * 2,
    ],
)
def test_a_sentence_has_labels_and_a_command_has_names(
    tiny_models: Path, text: str, words: str
) -> None:
    assert labelled(text, ["tiny-llava@float16"]) == words
