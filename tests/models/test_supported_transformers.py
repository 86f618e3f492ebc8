"""Which checkpoints of transformers are run by the family "transformers", and what is refused."""

import json
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.errors import ModelUnavailable
from engine.models import families, registry
from tests.models import published_folders
from tests.models.published_folders import TEMPLATE, change, entry

pytestmark = pytest.mark.usefixtures("cache_dir")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return published_folders.build(tmp_path / "chosen")


def reason(folder: Path, family: str = "transformers") -> str:
    return registry.unavailable(entry(folder, family)) or ""


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("chat_template.jinja", TEMPLATE),
        ("chat_template.json", json.dumps({"chat_template": TEMPLATE})),
        (
            "tokenizer_config.json",
            json.dumps({"chat_template": [{"name": "default", "template": TEMPLATE}]}),
        ),
    ],
)
def test_a_chat_template_may_be_in_any_of_its_places(place: str, text: str, folder: Path) -> None:
    change(folder, "tokenizer_config.json", chat_template=...)
    assert "its chat template is missing" in reason(folder)
    (folder / place).write_text(text)
    assert reason(folder) == ""


@pytest.mark.parametrize(
    ("checkpoint", "advice"),
    [
        ("OpenGVLab/InternVL3-8B", "OpenGVLab/InternVL3-8B-hf"),
        ("OpenGVLab/InternVL3_5-2B", "OpenGVLab/InternVL3_5-2B-HF"),
        ("somebody/InternVL-tuned", "OpenGVLab/InternVL3-1B-hf"),
    ],
)
def test_the_converted_repository_is_named(checkpoint: str, advice: str) -> None:
    config = {"model_type": "internvl_chat", "auto_map": {"AutoModel": "x.Y"}}
    with pytest.raises(ModelUnavailable, match=f"use {advice} instead"):
        families.refuse_type("m", checkpoint, "config.json", config)


def test_another_familys_name_is_refused_only_where_it_is_wrong(folder: Path) -> None:
    named = registry.unavailable(entry(folder, name="eventgpt-7b")) or ""
    assert "has the name of eventgpt" in named
    change(folder, "config.json", model_type="video_llava")
    assert registry.unavailable(entry(folder, name="video-llava-any")) is None


def test_the_card_says_where_only_the_hooked_mode_runs(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = folder.parent / "models.toml"
    rows.write_text('[[model]]\nname = "one"\ncheckpoint = "./chosen"\n')
    monkeypatch.setenv("STAGESCOPE_MODELS", str(rows))
    assert main(["models", "one"]) == 0 and "modes:" not in capsys.readouterr().out
    change(folder, "config.json", model_type="mllama")
    said = "modes: hooked mode only: transformers' mllama takes no features"
    assert main(["models", "one"]) == 0 and said in capsys.readouterr().out
    assert registry.hooked_only(entry(folder)) and not registry.hooked_only(entry(folder, "llava"))
