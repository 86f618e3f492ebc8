"""The types and bounds of the values in a checkpoint's JSON files.

Only keys that this project or transformers acts on are listed; others are free.  null means the
class's default.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from engine.errors import ModelUnavailable
from engine.quoting import quoted

_KEY = re.compile(r" - at `\$\.?(.*)`$")

Side = Annotated[int, Meta(ge=1, le=4096)]
Width = Annotated[int, Meta(ge=1, le=2**17)]
Depth = Annotated[int, Meta(ge=1, le=1024)]
Tokens = Annotated[int, Meta(ge=1, le=2**24)]
TokenId = Annotated[int, Meta(ge=0, lt=2**31)]
Length = Annotated[int, Meta(ge=0, le=2**24)]
Number = Annotated[float, Meta(ge=-1e6, le=1e6)]
Positive = Annotated[float, Meta(gt=0, le=1e6)]
Above = Annotated[float, Meta(gt=0, le=1e12)]
Sides = Side | dict[str, Side | None]
# Height and width, in which some configs give a square, or a size for each level.
Sided = Side | Annotated[list[Side], Meta(min_length=1, max_length=8)]
Area = Annotated[int, Meta(ge=1, le=2**26)]
Ids = Annotated[list[TokenId], Meta(min_length=1)]
Inner = Annotated[int, Meta(ge=1, le=2**20)]
Templates = str | list[dict[str, str]] | dict[str, str]  # several have names
Token = str | dict[str, Any]
Mean = Number | Annotated[list[Number], Meta(min_length=3, max_length=3)]
Deviation = Positive | Annotated[list[Positive], Meta(min_length=3, max_length=3)]


def several(kind: Any) -> Any:
    """A value, or one for each layer or level."""
    return kind | Annotated[list[kind], Meta(min_length=1)]


def record(name: str, *rows: tuple[str, Any], base: Any = Struct) -> Any:
    """A struct with the names of each row, which are optional and have the row's type."""
    fields = [(field, kind | None, None) for names, kind in rows for field in names.split()]
    return msgspec.defstruct(name, fields, bases=(base,))


TextConfig = record(
    "TextConfig",
    ("model_type hidden_act", str),
    ("hidden_size head_dim", Width),
    ("intermediate_size", several(Inner)),
    ("num_hidden_layers num_attention_heads num_key_value_heads", Depth),
    ("vocab_size max_position_embeddings", Tokens),
    ("rms_norm_eps rope_theta", Above),
    ("attention_dropout", Number),
    ("attention_bias mlp_bias tie_word_embeddings is_encoder_decoder", bool),
)
# Families have different names for the sizes of their towers.
Vision = record(
    "Vision",
    ("model_type hidden_act", str),
    ("hidden_size projection_dim", Width),
    ("embed_dim", several(Width)),
    ("intermediate_size", Inner),
    ("num_hidden_layers num_attention_heads attention_heads num_channels", Depth),
    ("depth num_heads", several(Depth)),
    ("image_size patch_size", Sided),
    ("layer_norm_eps", Above),
    ("attention_dropout", Number),
)
# The whole file; EventGPT keeps its language model's fields here.
ModelConfig = record(
    "ModelConfig",
    ("architectures", list[str]),
    ("text_config llm_config language_config", TextConfig),
    ("vision_config", Vision),
    ("quantization_config auto_map", dict[str, Any]),
    ("vision_feature_layer", several(int)),
    ("vision_feature_select_strategy projector_hidden_act", str),
    ("multimodal_projector_bias", bool),
    ("image_token_index image_token_id video_token_index video_token_id", TokenId),
    base=TextConfig,
)
# The settings for greedy answers and the defaults for sampling.
GenerationSettings = record(
    "GenerationSettings",
    ("eos_token_id forced_eos_token_id", TokenId | Ids),
    ("forced_bos_token_id", TokenId),
    ("repetition_penalty", Positive),
    ("no_repeat_ngram_size min_length min_new_tokens encoder_no_repeat_ngram_size", Length),
    ("bad_words_ids", Annotated[list[Ids], Meta(min_length=1)]),
    ("sequence_bias", list[tuple[Ids, Number]]),
    ("suppress_tokens begin_suppress_tokens", list[TokenId]),
    ("exponential_decay_length_penalty", tuple[Length, Positive]),
    ("remove_invalid_values do_sample token_healing", bool),
    ("temperature top_p guidance_scale encoder_repetition_penalty penalty_alpha", Number),
    ("top_k", int),
    ("num_beams", Annotated[int, Meta(ge=1, le=2**16)]),
    ("stop_strings", str | list[str]),
)
TokenizerConfig = record(
    "TokenizerConfig",
    ("tokenizer_class padding_side", str),
    ("bos_token eos_token unk_token pad_token", Token),
    ("chat_template", Templates),
    ("model_max_length", int | float),
    ("legacy add_bos_token", bool),
    ("added_tokens_decoder", dict[str, dict[str, Any]]),
    ("extra_special_tokens", dict[str, Any] | list[Any]),
)
# preprocessor_config.json, or `image_processor` in processor_config.json
ImageProcessor = record(
    "ImageProcessor",
    ("image_processor_type feature_extractor_type", str),
    ("size crop_size pad_size", Sides),
    ("resample", Annotated[int, Meta(ge=0, le=5)]),
    ("rescale_factor", Annotated[float, Meta(gt=0, le=1e3)]),
    ("image_mean", Mean),
    ("image_std", Deviation),
    ("do_resize do_center_crop do_rescale do_normalize do_pad do_convert_rgb", bool),
)
# Of a class in AREAS: `size` bounds the pixels of a picture, not its sides.
AreaImageProcessor = record(
    "AreaImageProcessor",
    ("size", dict[str, Area | None]),
    ("min_pixels max_pixels", Area),
    base=ImageProcessor,
)
# transformers reads it if it has a video processor
VideoProcessor = record(
    "VideoProcessor", ("size", Side | dict[str, Area | None]), base=ImageProcessor
)
Processor = record(
    "Processor",
    ("image_processor", ImageProcessor),
    ("chat_template", Templates),
    ("processor_class", str),
)
AreaProcessor = record("AreaProcessor", ("image_processor", AreaImageProcessor), base=Processor)
ChatTemplate = msgspec.defstruct("ChatTemplate", [("chat_template", Templates)])

FILES: dict[str, type[Struct]] = {
    "config.json": ModelConfig,
    "generation_config.json": GenerationSettings,
    "tokenizer_config.json": TokenizerConfig,
    "preprocessor_config.json": ImageProcessor,
    "video_preprocessor_config.json": VideoProcessor,
    "processor_config.json": Processor,
    "chat_template.json": ChatTemplate,
}
_AREA_FILES: dict[str, type[Struct]] = {
    "preprocessor_config.json": AreaImageProcessor,
    "processor_config.json": AreaProcessor,
}
# Image processors that shrink or enlarge a picture until its area is within bounds.
AREAS = tuple(
    f"{name}ImageProcessor"
    for name in (
        *("Qwen2VL", "Glm4v", "Glm46V", "VideoLlama3", "PaddleOCRVL", "Ernie4_5_VLMoe"),
        *("HunYuanVL", "GlmImage", "Cosmos3Edge", "CohereCompass"),
    )
)


def kind_of(file: str, content: dict[str, Any]) -> type[Struct] | None:
    """The record that describes a file with this content."""
    nested = content.get("image_processor") if file == "processor_config.json" else content
    named = nested.get("image_processor_type") if isinstance(nested, dict) else None
    areas = str(named).removesuffix("Fast") in AREAS
    return (_AREA_FILES if areas and file in _AREA_FILES else FILES).get(file)


def check(content: Any, kind: type[Struct], path: Path, name: str) -> None:
    """ModelUnavailable that names file, key and value if a parsed file has an impossible value."""
    try:
        msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        wanted, shown = str(error), "it holds no such object"
        if match := _KEY.search(wanted):
            key, wanted = match.group(1), wanted[: match.start()]
            shown = f"{key} is {_shown(content, key)}" if key else shown
        raise ModelUnavailable(
            f"{name}: {path}: {shown} ({wanted[:1].lower()}{wanted[1:].replace('`', '')}): "
            "correct it, or copy the file again."
        ) from error


def _shown(content: Any, key: str) -> str:
    """The value at a key such as `text_config.hidden_size` or `bad_words_ids[...]`."""
    for part in key.split("."):
        word = part.split("[")[0]
        if not isinstance(content, dict) or word not in content:
            break
        content = content[word]
    return quoted(content)
