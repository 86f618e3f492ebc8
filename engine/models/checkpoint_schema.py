"""The types and bounds of the values in a checkpoint's JSON files.

Only keys that this project or transformers acts on are listed; others are free.
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


class TextConfig(Struct):
    """The language model in config.json; None means the class's default."""

    model_type: str | None = None
    hidden_size: Width | None = None
    intermediate_size: Inner | Annotated[list[Inner], Meta(min_length=1)] | None = None
    num_hidden_layers: Depth | None = None
    num_attention_heads: Depth | None = None
    num_key_value_heads: Depth | None = None
    head_dim: Width | None = None
    vocab_size: Tokens | None = None
    max_position_embeddings: Tokens | None = None
    hidden_act: str | None = None
    rms_norm_eps: Above | None = None
    rope_theta: Above | None = None
    attention_dropout: Number | None = None
    attention_bias: bool | None = None
    mlp_bias: bool | None = None
    tie_word_embeddings: bool | None = None
    is_encoder_decoder: bool | None = None


class Vision(Struct):
    """The vision tower in config.json; families have different names for its sizes."""

    model_type: str | None = None
    hidden_size: Width | None = None
    embed_dim: Width | Annotated[list[Width], Meta(min_length=1)] | None = None
    intermediate_size: Inner | None = None
    num_hidden_layers: Depth | None = None
    depth: Depth | Annotated[list[Depth], Meta(min_length=1)] | None = None
    num_attention_heads: Depth | None = None
    num_heads: Depth | Annotated[list[Depth], Meta(min_length=1)] | None = None
    attention_heads: Depth | None = None
    image_size: Sided | None = None
    patch_size: Sided | None = None
    num_channels: Depth | None = None
    projection_dim: Width | None = None
    hidden_act: str | None = None
    layer_norm_eps: Above | None = None
    attention_dropout: Number | None = None


class ModelConfig(TextConfig):
    """config.json as a whole; EventGPT keeps its language model's fields here."""

    architectures: list[str] | None = None
    text_config: TextConfig | None = None
    llm_config: TextConfig | None = None
    language_config: TextConfig | None = None
    quantization_config: dict[str, Any] | None = None
    auto_map: dict[str, Any] | None = None
    vision_config: Vision | None = None
    vision_feature_layer: int | Annotated[list[int], Meta(min_length=1)] | None = None
    vision_feature_select_strategy: str | None = None
    projector_hidden_act: str | None = None
    multimodal_projector_bias: bool | None = None
    image_token_index: TokenId | None = None
    image_token_id: TokenId | None = None
    video_token_index: TokenId | None = None
    video_token_id: TokenId | None = None
    mm_vision_tower: Any = None
    mm_image_tower: Any = None
    mm_video_tower: Any = None


class GenerationSettings(Struct):
    """generation_config.json: the settings for greedy answers and the defaults for sampling."""

    eos_token_id: TokenId | Ids | None = None
    repetition_penalty: Positive | None = None
    no_repeat_ngram_size: Length | None = None
    bad_words_ids: Annotated[list[Ids], Meta(min_length=1)] | None = None
    sequence_bias: list[tuple[Ids, Number]] | None = None
    min_length: Length | None = None
    min_new_tokens: Length | None = None
    forced_bos_token_id: TokenId | None = None
    forced_eos_token_id: TokenId | Ids | None = None
    suppress_tokens: list[TokenId] | None = None
    begin_suppress_tokens: list[TokenId] | None = None
    exponential_decay_length_penalty: tuple[Length, Positive] | None = None
    remove_invalid_values: bool | None = None
    do_sample: bool | None = None
    temperature: Number | None = None
    top_p: Number | None = None
    top_k: int | None = None
    num_beams: Annotated[int, Meta(ge=1, le=2**16)] | None = None
    guidance_scale: Number | None = None
    encoder_repetition_penalty: Number | None = None
    encoder_no_repeat_ngram_size: Length | None = None
    penalty_alpha: Number | None = None
    stop_strings: str | list[str] | None = None
    token_healing: bool | None = None
    watermarking_config: Any = None
    constraints: Any = None
    force_words_ids: Any = None
    dola_layers: Any = None
    custom_generate: Any = None


class TokenizerConfig(Struct):
    """tokenizer_config.json."""

    tokenizer_class: str | None = None
    bos_token: str | dict[str, Any] | None = None
    eos_token: str | dict[str, Any] | None = None
    chat_template: Templates | None = None
    unk_token: str | dict[str, Any] | None = None
    pad_token: str | dict[str, Any] | None = None
    model_max_length: int | float | None = None
    padding_side: str | None = None
    legacy: bool | None = None
    add_bos_token: bool | None = None
    added_tokens_decoder: dict[str, dict[str, Any]] | None = None
    extra_special_tokens: dict[str, Any] | list[Any] | None = None


class ImageProcessor(Struct):
    """preprocessor_config.json, or `image_processor` in processor_config.json."""

    image_processor_type: str | None = None
    feature_extractor_type: str | None = None
    size: Sides | None = None
    crop_size: Sides | None = None
    pad_size: Sides | None = None
    resample: Annotated[int, Meta(ge=0, le=5)] | None = None
    rescale_factor: Annotated[float, Meta(gt=0, le=1e3)] | None = None
    image_mean: Number | Annotated[list[Number], Meta(min_length=3, max_length=3)] | None = None
    image_std: Positive | Annotated[list[Positive], Meta(min_length=3, max_length=3)] | None = None
    do_resize: bool | None = None
    do_center_crop: bool | None = None
    do_rescale: bool | None = None
    do_normalize: bool | None = None
    do_pad: bool | None = None
    do_convert_rgb: bool | None = None


class AreaImageProcessor(ImageProcessor):
    """The settings of a class in AREAS: `size` bounds the pixels of a picture, not its sides."""

    size: dict[str, Area | None] | None = None
    min_pixels: Area | None = None
    max_pixels: Area | None = None


class VideoProcessor(ImageProcessor):
    """video_preprocessor_config.json, which transformers reads if it has a video processor."""

    size: Side | dict[str, Area | None] | None = None


class Processor(Struct):
    """processor_config.json."""

    image_processor: ImageProcessor | None = None
    chat_template: Templates | None = None
    processor_class: str | None = None


class AreaProcessor(Processor):
    """processor_config.json with the settings of a class in AREAS."""

    image_processor: AreaImageProcessor | None = None


class ChatTemplate(Struct):
    """chat_template.json."""

    chat_template: Templates


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
        message = str(error)
        found = _KEY.search(message)
        key = found.group(1) if found else ""
        wanted = message[: found.start()] if found else message
        shown = f"{key} is {_shown(content, key)}" if key else "it holds no such object"
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
