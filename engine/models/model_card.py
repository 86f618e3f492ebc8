"""A model's card (identity and size) and the memory that it needs, before its weights are read.

Fields of a card that are only known after loading (unused weights, the exact count in .bin files)
are None here; loading.py fills them in.  A size that config.json leaves out has the default of
transformers' configuration classes (a test compares them).  Where only the checkpoint's processor
knows how many visual tokens a sample gives, a number is assumed, and the sentence says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args

from engine import settings
from engine.decoding import generation_rules
from engine.errors import ModelUnavailable
from engine.models import checkpoint, checkpoint_files
from engine.models.checkpoint import DTYPE_BYTES, ModelEntry
from engine.models.checkpoint_files import read_json
from engine.models.families import FAMILIES, PICTURES
from engine.prompts import plain_question
from engine.quoting import gib
from engine.types import MediaKind, ModelInfo, Tower

# A small checkpoint lists in this file the few questions that it was trained on, and what it was
# shown ("inputs") if that was more than one thing.  Without the file any question is accepted.
TRAINED = "trained_questions.json"

_CLIP = {  # of a vision_config that leaves a field out
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "image_size": 224,
    "patch_size": 32,
}
Config = Mapping[str, Any]
# Where a config.json of any family keeps its language model; it is the whole file in older ones.
_LANGUAGE = ("text_config", "llm_config", "language_config", "decoder")
_TOWER = (
    # names of a tower's sizes; Qwen2-VL's hidden_size is the language model's, so it is second
    ("embed_dim", "hidden_size"),
    ("num_hidden_layers", "depth"),
    ("num_attention_heads", "num_heads", "attention_heads"),
    ("image_size",),
    ("patch_size",),
)
PROMPT_TOKENS = 256  # assumed text tokens of a prompt; the published ones have 20 to 60
NEW_TOKENS = 256  # assumed answer length if none is given
# Assumed if unknown: what a 640 x 480 picture gives at most in the usual models that do not tile.
PICTURE_TOKENS = 1024
# Bytes per weight of a quantized linear layer.  With 4 bits each 64 weights have a float32 scale
# (bitsandbytes, nf4 without double quantization); with 8 bits each row has one, which is
# negligible.
_QUANTIZED = {"8bit": 1.0, "4bit": 0.5 + 4 / 64}


class LanguageShape(NamedTuple):
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


# Their fields in config.json.
_TEXT = (
    *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    *("num_key_value_heads", "head_dim", "max_position_embeddings", "vocab_size"),
)
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
class Shape:
    """A checkpoint's sizes; None is known after loading."""

    tower: Tower | None
    text: LanguageShape
    images: int
    visual_tokens: int | None
    stored_dtype: str | None


def read(entry: ModelEntry, folder: Path) -> Shape:
    """The sizes in the folder's config.json, or ModelUnavailable that names the field."""
    path = folder / "config.json"
    config = read_json(path, entry.name)
    try:
        return of_config(entry.family, entry.kind, config)
    except (TypeError, ValueError, AttributeError, ZeroDivisionError, KeyError) as error:
        raise ModelUnavailable(
            f"{entry.name}: {path} does not describe a model ({error}): copy it again."
        ) from error


def of_config(family: str, kind: MediaKind, config: Config) -> Shape:
    """The sizes in a parsed config.json; ValueError or another error for impossible ones.

    `kind`: what the model is shown, which decides the number of pictures.
    """
    form, images = FAMILIES[family], PICTURES[kind]
    language = next((config[key] for key in _LANGUAGE if isinstance(config.get(key), dict)), config)
    # some files state the dtype of the weights only for the language model
    dtypes = [part.get(key) for part in (config, language) for key in ("dtype", "torch_dtype")]
    stored = next((str(dtype) for dtype in dtypes if dtype), None)
    vision = config.get("vision_config")
    if form.rows is None or form.tower is None:
        part = dict(language)
        if isinstance(inner := part.get("intermediate_size"), list):  # one for each layer
            part["intermediate_size"] = max(inner, default=None)
        text = _text(part, DEFAULTS.get(str(part.get("model_type")), OTHER))
        sizes = [_first(vision, names) for names in _TOWER] if isinstance(vision, dict) else []
        return Shape(Tower(*sizes) if any(sizes) else None, text, images, None, stored)
    tower = form.tower
    if vision is not None:
        tower = Tower(*(_whole(vision, field, value) for field, value in _CLIP.items()))
    text = _text(config.get(form.text) or {} if form.text else config, DEFAULTS["llama"])
    return Shape(tower, text, images, form.rows(tower, images, config), stored)


def _text(part: Config, usual: LanguageShape) -> LanguageShape:
    values = zip(_TEXT, usual, strict=True)
    text = LanguageShape(*(_whole(part, field, absent) for field, absent in values))
    kv_heads, head_dim = text.kv_heads or text.heads, text.head_dim or text.hidden // text.heads
    return text._replace(kv_heads=kv_heads, head_dim=head_dim)


def _first(config: Config, fields: tuple[str, ...]) -> int | None:
    """The first of these fields that holds one size: a whole number, or a list of equal ones."""
    for field in fields:
        value = config.get(field)
        if isinstance(value, list) and len(set(value)) == 1:
            value = value[0]
        if value is not None and not isinstance(value, list):
            size: int = _whole({field: value}, field, 0)
            return size
    return None


def _whole(config: Config, field: str, absent: Any) -> Any:
    """A positive integer; null means absent, as in transformers."""
    value = config.get(field)
    if value is None:
        return absent
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{field} is {value!r}")
    return value


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
    count, size = checkpoint_files.weight_count(folder, entry.name), DTYPE_BYTES[entry.dtype]
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


def card(entry: ModelEntry, folder: Path) -> ModelInfo:
    """The card of the checkpoint in this folder, or ModelUnavailable.

    `digest`, the hash of all bytes, is set only if it is already known; see `full_digest`.
    """
    name, sizes = entry.name, read(entry, folder)
    files = checkpoint_files.weight_files(folder, name)
    exact = all(file.suffix == ".safetensors" for file in files)
    memo = settings.load().hashes_file
    own = checkpoint_files.read_if_there(folder / "generation_config.json", name)
    return ModelInfo(
        name=name,
        family=entry.family,
        checkpoint=entry.checkpoint,
        revision=checkpoint.revision(entry, folder),
        dtype=entry.dtype,
        demo=entry.demo,
        digest=checkpoint_files.digest_if_known(folder, name, memo) or "",
        quantization=entry.quantization,
        source=str(folder) if entry.folder else f"Hugging Face hub: {entry.checkpoint}",
        headers=checkpoint_files.header_digest(folder, name),
        parameters=checkpoint_files.weight_count(folder, name) if exact else None,
        stored_dtype=sizes.stored_dtype,
        tower=sizes.tower,
        visual_tokens=sizes.visual_tokens,
        images=None if sizes.visual_tokens is None else sizes.images,
        context_limit=sizes.text.context,
        questions=trained_questions(folder, name),
        generation=generation_rules.notes(own),
        shows=entry.kind,
    )


def full_digest(entry: ModelEntry, folder: Path) -> str:
    """The hash of all bytes; the first call reads the whole checkpoint, which takes as long as
    loading."""
    return checkpoint_files.digest(folder, entry.name, settings.load().hashes_file)


def trained_questions(folder: Path, name: str) -> frozenset[str] | None:
    """The trained questions as plain_question() gives them, None for a folder without the file.

    Each counts as written and in lower case, because training uses both.
    """
    path = folder / TRAINED
    if not path.exists():
        return None
    listed = read_json(path, name).get("questions")
    if not isinstance(listed, list) or not listed or not all(isinstance(q, str) for q in listed):
        raise ModelUnavailable(
            f"{name}: {path} has no list of texts under 'questions': copy it again."
        )
    return frozenset(plain_question(form) for q in listed for form in (q, q.lower()))


def trained_inputs(folder: Path, name: str) -> frozenset[MediaKind]:
    """The inputs that the file lists; empty if it lists none."""
    listed = checkpoint_files.read_if_there(folder / TRAINED, name).get("inputs", [])
    return frozenset(kind for kind in get_args(MediaKind) if kind in listed)
