"""The sizes in config.json of any family, in the forms in which they are published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.models import model_card, registry
from engine.models.model_card import LanguageShape
from engine.types import Tower
from tests.models import published_folders
from tests.models.published_folders import CONFIGS, entry

pytestmark = pytest.mark.usefixtures("cache_dir")
TOWERS = {
    "qwen2_5_vl": Tower(1280, 32, 16, None, 14),
    "qwen2_vl": Tower(1280, 32, 16, None, 14),  # not 1536, the language model's
    "qwen3_vl": Tower(1024, 24, 16, None, 16),
    "internvl": Tower(1024, 24, 16, 448, 14),
    "smolvlm": Tower(768, None, 12, 512, 16),  # its depth is not stated
    "gemma3": Tower(1152, 27, 16, 896, 14),
}
LANGUAGES = {
    "qwen2_5_vl": LanguageShape(2048, 11008, 36, 16, 2, 128, 128000, 151936),
    "qwen2_vl": LanguageShape(2048, 11008, 36, 16, 2, 128, 128000, 151936),
    "qwen3_vl": LanguageShape(2560, 9728, 36, 32, 8, 128, 262144, 151936),
    "internvl": LanguageShape(896, 4864, 24, 14, 2, 64, 32768, 151674),
    "smolvlm": LanguageShape(960, 2560, 32, 15, 5, 64, 8192, 49280),
    "gemma3": LanguageShape(2560, 10240, 34, 8, 4, 256, 131072, 262208),
}


def sizes(config: dict[str, Any]) -> model_card.Shape:
    return model_card.of_config("transformers", "image", config)


@pytest.mark.parametrize("model", CONFIGS)
def test_published_forms(model: str) -> None:
    found = sizes(CONFIGS[model])
    assert found.tower == TOWERS[model] and found.text == LANGUAGES[model]
    assert found.visual_tokens is None
    assert found.stored_dtype == ("float32" if model == "smolvlm" else "bfloat16")


def test_the_language_model_has_several_names() -> None:
    text = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
    for field in ("text_config", "llm_config", "language_config"):
        found = sizes({"model_type": "new", field: text}).text
        assert (found.hidden, found.layers, found.head_dim, found.kv_heads) == (64, 2, 16, 4)


def test_what_is_not_stated_is_not_invented() -> None:
    found = sizes({"model_type": "new", "text_config": {"model_type": "new_text"}})
    assert found.tower is None and found.text.context is None
    assert sizes({"vision_config": {"model_type": "timm_wrapper"}}).tower is None
    several = {"embed_dim": [128, 256], "patch_size": [7, 3, 3, 3], "num_heads": [4, 8]}
    assert sizes({"vision_config": several | {"image_size": 768}}).tower == Tower(
        None, None, None, 768, None
    )


def test_absent_sizes_have_transformers_values() -> None:
    from transformers import CONFIG_MAPPING

    for model_type in model_card.DEFAULTS:
        wanted = CONFIG_MAPPING[model_type]()
        found = sizes({"text_config": {"model_type": model_type}}).text
        head_dim = getattr(wanted, "head_dim", None) or found.hidden // found.heads
        assert found == LanguageShape(
            wanted.hidden_size,
            wanted.intermediate_size,
            wanted.num_hidden_layers,
            wanted.num_attention_heads,
            wanted.num_key_value_heads,
            head_dim,
            wanted.max_position_embeddings,
            wanted.vocab_size,
        ), model_type
        fewer = {"num_attention_heads": 4, "model_type": model_type, "hidden_size": 64}
        narrow = CONFIG_MAPPING[model_type](num_attention_heads=4, hidden_size=64)
        few = sizes({"text_config": fewer}).text
        assert few.kv_heads == narrow.num_key_value_heads, model_type
        assert few.head_dim == (getattr(narrow, "head_dim", None) or 16), model_type


def test_the_card_and_the_memory_say_what_is_unknown(tmp_path: Path) -> None:
    item = entry(published_folders.build(tmp_path, "qwen2_5_vl"))
    card = registry.card(item)
    assert (card.visual_tokens, card.images, card.context_limit) == (None, None, 128000)
    assert card.tower == TOWERS["qwen2_5_vl"] and card.parameters == 8
    need = registry.needed(item, 100)
    assert need.assumed == model_card.PICTURE_TOKENS
    assert need.context == model_card.PROMPT_TOKENS + need.assumed + 100
    # 36 layers, 2 heads of 128 for keys and for values, 2 bytes each
    assert need.kv_cache == 2 * 36 * 2 * 128 * 2 * need.context
    assert need.features == need.assumed * 2048 * 2
    assert "of 1,380 tokens, 1,024 of them assumed for pictures)" in str(need)


def test_control_a_known_number_is_not_assumed(tiny_models: Path) -> None:
    need = registry.needed(registry.entry("tiny-llava"))
    assert need.assumed == 0 and "assumed" not in str(need)
