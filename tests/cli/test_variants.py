"""--models and --show: which variants they name, and the sentences for what they cannot."""

import argparse
from pathlib import Path

import pytest

from engine.cli import common
from engine.errors import BadInput


def _names(*arguments: str) -> list[str]:
    parser = argparse.ArgumentParser()
    common.add_flags(parser, common.MODELS)
    return common.model_names(parser.parse_args(arguments))


def test_show_is_a_word_of_the_name(tiny_models: Path) -> None:
    both = ("--models", "tiny-llava,tiny-eventgpt@float16")
    assert _names(*both) == ["tiny-llava", "tiny-eventgpt@float16"]
    assert _names(*both, "--show", "events") == ["tiny-llava@events", "tiny-eventgpt@float16"]
    assert _names(
        *both, "--show", "tiny-llava=events", "--show", "tiny-eventgpt@float16=video"
    ) == [
        "tiny-llava@events",
        "tiny-eventgpt@video+float16",
    ]
    assert _names("--models", "nobody", "--show", "events") == ["nobody"]  # its run says so


@pytest.mark.parametrize(
    ("models", "show", "words"),
    [
        ("tiny-llava", "sound", "'sound': write one of events, video, image, or MODEL=events"),
        ("tiny-llava", "tiny-eventgpt=events", "names no model of --models"),
        ("tiny-llava@video", "events", "names two inputs (video and events)"),
        ("tiny-llava,tiny-llava@events", "events", "'tiny-llava@events' is named twice"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    tiny_models: Path, models: str, show: str, words: str
) -> None:
    with pytest.raises(BadInput) as caught:
        _names("--models", models, "--show", show)
    assert words in str(caught.value)
