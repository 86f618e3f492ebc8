"""A model's sizes from config.json, and the memory that it needs, before its weights are read.

A missing field has the default of transformers' configuration classes (a test compares them).
Where only the checkpoint's processor knows how many visual tokens a sample gives, a number is
assumed, and the sentence says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from engine.errors import ModelUnavailable
from engine.machine.memory import gib
from engine.models import weights
from engine.models.checkpoint import DTYPE_BYTES, ModelEntry
from engine.models.checkpoint_files import read_json
from engine.types import Tower

CLIP_L_336 = Tower(hidden=1024, layers=24, heads=16, image_size=336, patch_size=14)
CLIP_L_224 = Tower(hidden=1024, layers=24, heads=16, image_size=224, patch_size=14)
_CLIP = {  # of a vision_config that leaves a field out
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 224,
    "patch_size": 32,
}
Config = Mapping[str, Any]
Rows = Callable[[Tower, int, Config], int]
# Where a config.json of any family keeps its language model; it is the whole file in older ones.
_LANGUAGE = ("text_config", "llm_config", "language_config", "decoder")
# The names of a tower's sizes: Qwen2-VL's hidden_size is the language model's, so it comes second.
_WIDTH = ("embed_dim", "hidden_size")
_DEPTH = ("num_hidden_layers", "depth")
_HEADS = ("num_attention_heads", "num_heads", "attention_heads")
Absent = TypeVar("Absent", int, int | None)
PROMPT_TOKENS = 256  # assumed text tokens of a prompt; the published ones have 20 to 60
NEW_TOKENS = 256  # assumed answer length if none is given
# Assumed if unknown: what a 640 x 480 picture gives at most in the usual models that do not tile.
PICTURE_TOKENS = 1024
# Bytes per weight of a quantized linear layer.  With 4 bits each 64 weights have a float32 scale
# (bitsandbytes, nf4 without double quantization); with 8 bits each row has one, which is
# negligible.
_QUANTIZED = {"8bit": 1.0, "4bit": 0.5 + 4 / 64}


@dataclass(frozen=True)
class LanguageShape:
    """The shape of a language model.  `context` is None if neither config.json nor the defaults of
    its class tell it."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    context: int | None
    vocabulary: int

    def kv_bytes(self, tokens: int, dtype_bytes: int) -> int:
        """Bytes of the keys and values of `tokens` tokens in all layers."""
        return 2 * self.layers * self.kv_heads * self.head_dim * tokens * dtype_bytes

    @property
    def linear_weights(self) -> int:
        """Weights in the linear layers between embedding and head, which quantization shrinks."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        return self.layers * (attention + 3 * self.hidden * self.intermediate)


# What a config.json means that leaves a size out, by the model_type of its language model: all
# whose published files do.  Zeros: as many kv_heads as heads, a head_dim of hidden // heads.
DEFAULTS = {
    "cohere2": LanguageShape(8192, 22528, 40, 64, 0, 0, 8192, 256_000),
    "gemma": LanguageShape(3072, 24576, 28, 16, 16, 256, 8192, 256_000),
    "gemma2": LanguageShape(2304, 9216, 26, 8, 4, 256, 8192, 256_000),
    "gemma3_text": LanguageShape(2304, 9216, 26, 8, 4, 256, 131_072, 262_208),
    "llama": LanguageShape(4096, 11008, 32, 32, 0, 0, 2048, 32_000),
    "mistral": LanguageShape(4096, 14336, 32, 32, 8, 0, 131_072, 32_000),
    "qwen2": LanguageShape(4096, 22016, 32, 32, 32, 0, 32_768, 151_936),
    "qwen3": LanguageShape(4096, 22016, 32, 32, 32, 128, 32_768, 151_936),
}
# Of any other: only estimates of memory use it, and its context is said to be unknown.
OTHER = LanguageShape(4096, 11008, 32, 32, 0, 0, None, 32_000)


@dataclass(frozen=True)
class Form:
    """How a family writes its config.json, and how many visual rows its pictures give.

    `images`: the usual number of pictures of a sample, for what the model is shown.  `text`: the
    field of the language model ("" if it is the whole file).  `tower`: the default tower.  Without
    `rows` the models of the family differ: sizes are found by their usual names, and only the
    checkpoint's processor knows the number of rows.
    """

    images: int = 1
    text: str = ""
    tower: Tower | None = None
    rows: Rows | None = None


@dataclass(frozen=True)
class Shape:
    """A checkpoint's sizes; None is known after loading."""

    tower: Tower | None
    text: LanguageShape
    images: int
    visual_tokens: int | None
    stored_dtype: str | None


def read(form: Form, folder: Path, name: str) -> Shape:
    """The sizes in the folder's config.json, or ModelUnavailable that names the field."""
    path = folder / "config.json"
    config = read_json(path, name)
    try:
        return of_config(form, config)
    except (TypeError, ValueError, AttributeError, ZeroDivisionError, KeyError) as error:
        raise ModelUnavailable(
            f"{name}: {path} does not describe a model ({error}): copy it again."
        ) from error


def of_config(form: Form, config: Config) -> Shape:
    """The sizes in a parsed config.json; ValueError or another error for impossible ones."""
    if form.rows is None or form.tower is None:
        part = dict(language(config))
        if isinstance(inner := part.get("intermediate_size"), list):  # one for each layer
            part["intermediate_size"] = max(inner, default=None)
        text = _text(part, DEFAULTS.get(str(part.get("model_type")), OTHER))
        return Shape(_stated_tower(config), text, form.images, None, _stored(config))
    vision, tower = config.get("vision_config"), form.tower
    if vision is not None:
        tower = Tower(*(_whole(vision, field, value) for field, value in _CLIP.items()))
    return Shape(
        tower=tower,
        text=_text(config.get(form.text) or {} if form.text else config, DEFAULTS["llama"]),
        images=form.images,
        visual_tokens=form.rows(tower, form.images, config),
        stored_dtype=_stored(config),
    )


def _stored(config: Config) -> str | None:
    """The dtype of the weights; some files state it only for the language model."""
    for part in (config, language(config)):
        if stored := part.get("dtype") or part.get("torch_dtype"):
            return str(stored)
    return None


def language(config: Config) -> Config:
    """The part of a config.json that describes the language model."""
    nested = next((config[key] for key in _LANGUAGE if isinstance(config.get(key), dict)), None)
    return config if nested is None else nested


def _text(part: Config, usual: LanguageShape) -> LanguageShape:
    hidden = _whole(part, "hidden_size", usual.hidden)
    heads = _whole(part, "num_attention_heads", usual.heads)
    return LanguageShape(
        hidden=hidden,
        intermediate=_whole(part, "intermediate_size", usual.intermediate),
        layers=_whole(part, "num_hidden_layers", usual.layers),
        heads=heads,
        kv_heads=_whole(part, "num_key_value_heads", usual.kv_heads or heads),
        head_dim=_whole(part, "head_dim", usual.head_dim or hidden // heads),
        context=_whole(part, "max_position_embeddings", usual.context),
        vocabulary=_whole(part, "vocab_size", usual.vocabulary),
    )


def _stated_tower(config: Config) -> Tower | None:
    """What the config.json states of its tower; nothing is assumed."""
    part = config.get("vision_config")
    if not isinstance(part, dict):
        return None
    names = (_WIDTH, _DEPTH, _HEADS, ("image_size",), ("patch_size",))
    sizes = [_first(part, fields) for fields in names]
    return Tower(*sizes) if any(sizes) else None


def _first(config: Config, fields: tuple[str, ...]) -> int | None:
    """The first of these fields that holds one size: a whole number, or a list of equal ones."""
    for field in fields:
        value = config.get(field)
        if isinstance(value, list) and len(set(value)) == 1:
            value = value[0]
        if value is not None and not isinstance(value, list):
            return _whole({field: value}, field, 0)
    return None


def _whole(config: Config, field: str, absent: Absent) -> int | Absent:
    """A positive integer; null means absent, as in transformers."""
    value = config.get(field)
    if value is None:
        return absent
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{field} is {value!r}")
    return value


def pooled(tower: Tower, images: int, config: Config) -> int:
    """EventGPT: one row per picture, then one per patch and one for CLS, averaged over
    pictures."""
    return images + tower.patches + 1


def all_rows(tower: Tower, images: int, config: Config) -> int:
    """Video-LLaVA: every patch and the CLS of every frame."""
    return images * (tower.patches + 1)


def patch_rows(tower: Tower, images: int, config: Config) -> int:
    """LLaVA: every patch; also CLS if the config says "full"."""
    return images * (tower.patches + (config.get("vision_feature_select_strategy") == "full"))


@dataclass(frozen=True)
class Need:
    """Bytes that one run of a model needs on its device, for a context of `context` tokens, of
    which `assumed` are visual tokens that are not known before loading."""

    weights: int
    features: int
    kv_cache: int
    context: int
    assumed: int = 0

    @property
    def run(self) -> int:
        """What a run needs besides the weights."""
        return self.features + self.kv_cache

    @property
    def total(self) -> int:
        return self.weights + self.run

    def __str__(self) -> str:
        part = f", {self.assumed:,} of them assumed for pictures" if self.assumed else ""
        return (
            f"{gib(self.total)} ({gib(self.weights)} for its weights, {gib(self.features)} for "
            f"features, {gib(self.kv_cache)} for the KV cache of {self.context:,} tokens{part})"
        )


def needed(entry: ModelEntry, folder: Path, shape: Shape, new_tokens: int = NEW_TOKENS) -> Need:
    """The memory for an answer of `new_tokens`, limited by the model's context."""
    count, size = weights.weight_count(folder, entry.name), DTYPE_BYTES[entry.dtype]
    if entry.quantization is None:
        return of_run(entry, shape, new_tokens, count * size)
    shrunk = min(count, shape.text.linear_weights)
    held = int(shrunk * _QUANTIZED[entry.quantization]) + (count - shrunk) * size
    return of_run(entry, shape, new_tokens, held)


def of_run(entry: ModelEntry, shape: Shape, new_tokens: int, weights: int = 0) -> Need:
    """The memory for an answer if the weights are already loaded."""
    size, text = DTYPE_BYTES[entry.dtype], shape.text
    assumed = 0 if shape.visual_tokens else shape.images * PICTURE_TOKENS
    rows = shape.visual_tokens or assumed
    wanted = PROMPT_TOKENS + rows + new_tokens
    context = min(wanted, text.context or wanted)
    return Need(
        weights=weights,
        features=rows * text.hidden * size,
        kv_cache=text.kv_bytes(context, size),
        context=context,
        assumed=min(assumed, context),
    )
