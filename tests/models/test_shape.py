"""The sizes in config.json of any family, in the forms in which they are published."""

from typing import Any

import pytest

from engine.models import model_card
from engine.models.model_card import LanguageShape
from engine.types import Tower
from tests.models.published_folders import CONFIGS

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
    "qwen2_5_vl": LanguageShape(2048, 11008, 36, 16, 2, 128, 128000),
    "qwen2_vl": LanguageShape(2048, 11008, 36, 16, 2, 128, 128000),
    "qwen3_vl": LanguageShape(2560, 9728, 36, 32, 8, 128, 262144),
    "internvl": LanguageShape(896, 4864, 24, 14, 2, 64, 32768),
    "smolvlm": LanguageShape(960, 2560, 32, 15, 5, 64, 8192),
    "gemma3": LanguageShape(2560, 10240, 34, 8, 4, 256, 131072),
}


def sizes(config: dict[str, Any]) -> model_card.Shape:
    return model_card.of_config("transformers", "image", config)


@pytest.mark.parametrize("model", CONFIGS)
def test_published_forms(model: str) -> None:
    found = sizes(CONFIGS[model])
    assert found.tower == TOWERS[model] and found.text == LANGUAGES[model]
    assert found.visual_tokens is None
    assert found.stored_dtype == ("float32" if model == "smolvlm" else "bfloat16")
