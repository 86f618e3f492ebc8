"""The demo checkpoint in the form in which Qwen2.5-VL is published."""

from __future__ import annotations

import torch
from transformers import AutoModelForImageTextToText

from engine.settings import PROJECT

FOLDER = PROJECT / "engine" / "demo" / "checkpoints" / "qwen2_5_vl"


def test_folder_is_in_the_published_form() -> None:
    names = {path.name for path in FOLDER.iterdir()}
    assert names == {
        "chat_template.jinja", "config.json", "generation_config.json", "model.safetensors",
        "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json",
        "trained_questions.json",
    }  # fmt: skip
    assert sum((FOLDER / name).stat().st_size for name in names) < 10_000_000
    _, report = AutoModelForImageTextToText.from_pretrained(
        FOLDER, dtype=torch.float32, output_loading_info=True
    )
    assert not report["missing_keys"] and not report["unexpected_keys"]
