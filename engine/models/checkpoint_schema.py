"""What the values in a checkpoint's JSON files may be: types and bounds by name, in any object.

Listed is what this project reads and what decides how much is allocated; transformers checks the
rest when it loads a model.  null means the
class's default.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from engine.errors import ModelUnavailable
from engine.quoting import quoted

FILES = (
    *("config.json", "generation_config.json", "tokenizer_config.json", "processor_config.json"),
    *("preprocessor_config.json", "video_preprocessor_config.json", "chat_template.json"),
)
Side = Annotated[int, Meta(ge=1, le=4096)]
Area = Annotated[int, Meta(ge=1, le=2**26)]
Width = Annotated[int, Meta(ge=1, le=2**17)]
Inner = Annotated[int, Meta(ge=1, le=2**20)]
Depth = Annotated[int, Meta(ge=1, le=1024)]
Tokens = Annotated[int, Meta(ge=1, le=2**24)]
TokenId = Annotated[int, Meta(ge=0, lt=2**31)]
Length = Annotated[int, Meta(ge=0, le=2**24)]
Number = Annotated[float, Meta(ge=-1e6, le=1e6)]
Above = Annotated[float, Meta(gt=0, le=1e6)]
Ids = Annotated[list[TokenId], Meta(min_length=1)]


def several(kind: Any) -> Any:
    """A value, or one for each layer or level."""
    return kind | Annotated[list[kind], Meta(min_length=1)]


_RULES = (
    ("model_type processor_class image_processor_type feature_extractor_type", str),
    ("text_config llm_config language_config vision_config image_processor", dict[str, Any]),
    ("auto_map added_tokens_decoder", dict[str, Any]),
    ("architectures", list[str]),
    ("hidden_size head_dim", Width),
    ("embed_dim", several(Width)),
    ("intermediate_size", several(Inner)),
    ("num_hidden_layers num_attention_heads num_key_value_heads attention_heads", Depth),
    ("depth num_heads", several(Depth)),
    ("image_size patch_size", several(Side)),
    ("vocab_size max_position_embeddings", Tokens),
    ("image_token_index image_token_id video_token_index video_token_id", TokenId),
    ("tie_word_embeddings is_encoder_decoder legacy add_bos_token", bool),
    ("do_sample token_healing remove_invalid_values", bool),
    ("eos_token_id forced_eos_token_id", TokenId | Ids),
    ("forced_bos_token_id", TokenId),
    ("repetition_penalty", Above),
    ("no_repeat_ngram_size min_length min_new_tokens encoder_no_repeat_ngram_size", Length),
    ("bad_words_ids", Annotated[list[Ids], Meta(min_length=1)]),
    ("sequence_bias", list[tuple[Ids, Number]]),
    ("suppress_tokens begin_suppress_tokens", list[TokenId]),
    ("exponential_decay_length_penalty", tuple[Length, Above]),
    ("temperature top_p guidance_scale encoder_repetition_penalty penalty_alpha", Number),
    ("top_k num_beams", int),
    ("chat_template", str | list[dict[str, str]] | dict[str, str]),  # several have names
    ("crop_size pad_size", Side | dict[str, Side | None]),
)
RULES: dict[str, Any] = {name: kind | None for names, kind in _RULES for name in names.split()}
_SIZE, _AREA_SIZE = Side | dict[str, Side | None] | None, Side | dict[str, Area | None] | None
# Processors that shrink or enlarge a picture until its area, not its sides, is within bounds.
AREAS = (
    *("Qwen2VL", "Qwen3VL", "Glm4v", "Glm46V", "VideoLlama3", "PaddleOCRVL", "Ernie4_5_VLMoe"),
    *("HunYuanVL", "GlmImage", "Cosmos3Edge", "CohereCompass"),
)


def check(content: dict[str, Any], path: Path, name: str) -> None:
    """ModelUnavailable that names file, key and value if a parsed file has an impossible value."""
    if path.name in FILES:
        for key, value, kind in _ruled(content, "video" in path.name):
            try:
                msgspec.convert(value, kind)
            except msgspec.ValidationError as error:
                why = str(error).replace("`", "").partition(" - at ")[0]
                raise ModelUnavailable(
                    f"{name}: {path}: {key} is {quoted(value)} ({why[:1].lower()}{why[1:]}): "
                    "correct it, or copy the file again."
                ) from error


def _ruled(content: dict[str, Any], video: bool) -> Iterator[tuple[str, Any, Any]]:
    """Key, value and type of everything that a rule is about, in the objects inside too."""
    areas = video or str(content.get("image_processor_type")).startswith(AREAS)
    sizes = {"size": _AREA_SIZE if areas else _SIZE}
    if areas:
        sizes |= dict.fromkeys(("min_pixels", "max_pixels"), Area | None)
    for key, value in content.items():
        kind = RULES.get(key) or sizes.get(key)
        if kind is not None:
            yield key, value, kind
        if isinstance(value, dict):
            yield from _ruled(value, video)
