"""Which checkpoints of transformers are run by the family "transformers", and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.errors import ModelUnavailable
from engine.models import model_card, registry, supported
from tests.models import family_checkpoints, published_folders
from tests.models.published_folders import CONFIGS, TEMPLATE, change, entry

pytestmark = pytest.mark.usefixtures("cache_dir")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return published_folders.build(tmp_path / "chosen")


def reason(folder: Path, family: str = "transformers") -> str:
    return registry.unavailable(entry(folder, family)) or ""


@pytest.mark.parametrize("model", CONFIGS)
def test_published_forms_are_accepted(model: str, tmp_path: Path) -> None:
    assert reason(published_folders.build(tmp_path / model, model)) == ""


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


def test_a_processor_may_be_in_either_file(folder: Path) -> None:
    nested = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").unlink()
    assert "its image processor is missing" in reason(folder)
    change(folder, "processor_config.json", image_processor=nested)
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
        supported.refuse_type("m", checkpoint, "config.json", config)


@pytest.mark.parametrize(
    ("config", "family"),
    [
        ({"model_type": "llava", "text_config": {"model_type": "llama"}}, "llava"),
        ({"model_type": "llava", "text_config": {"model_type": "qwen2"}}, "transformers"),
        ({"model_type": "llava", "vision_config": {"model_type": "pixtral"}}, "transformers"),
        ({"model_type": "EventChat_llama"}, "eventgpt"),
        ({"model_type": "qwen2_5_vl"}, "transformers"),
        ({}, "transformers"),
    ],
)
def test_the_family_follows_from_the_config(config: dict[str, object], family: str) -> None:
    assert supported.family_of(config) == family


def test_a_llava_may_run_as_transformers(tiny_copy: Callable[..., Path]) -> None:
    copy = tiny_copy("llava")
    assert reason(copy, "llava") == "" and "its chat template is missing" in reason(copy)
    (copy / "chat_template.jinja").write_text(TEMPLATE)
    assert reason(copy) == ""


def test_another_familys_name_is_refused_only_where_it_is_wrong(folder: Path) -> None:
    named = registry.unavailable(entry(folder, name="eventgpt-7b")) or ""
    assert "has the name of eventgpt" in named
    change(folder, "config.json", model_type="video_llava")
    assert registry.unavailable(entry(folder, name="video-llava-any")) is None


@pytest.mark.loads
@pytest.mark.parametrize("family", family_checkpoints.each(family_checkpoints.FAMILIES))
def test_every_small_checkpoint_is_accepted_and_described(
    family: str, family_folder: Callable[[str], Path]
) -> None:
    from transformers import AutoConfig

    item = entry(family_folder(family))
    assert registry.unavailable(item) is None
    card, text = registry.card(item), AutoConfig.from_pretrained(item.folder).get_text_config()
    found = model_card.read(item, family_folder(family)).text
    assert card.parameters and card.context_limit == text.max_position_embeddings
    assert (found.hidden, found.heads) == (text.hidden_size, text.num_attention_heads)
    kv_heads = getattr(text, "num_key_value_heads", None) or found.heads
    assert (found.layers, found.kv_heads) == (text.num_hidden_layers, kv_heads)


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
