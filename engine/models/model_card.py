"""A model's card (identity and size) and the memory that it needs, before its weights are read.

Fields of a card that are only known after loading (unused weights, the exact count in .bin files)
are None here; loading.py fills them in.  A size that config.json leaves out has the default of
transformers' configuration classes (a test compares them).  Where only the checkpoint's processor
knows how many visual tokens a sample gives, a number is assumed, and the sentence says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct

from engine import plain_files
from engine.decoding import generation_rules
from engine.errors import ModelUnavailable
from engine.models import checkpoint, checkpoint_files
from engine.models.checkpoint import DTYPE_BYTES, ModelEntry
from engine.models.checkpoint_files import JSON_BYTES, read_json
from engine.models.families import FAMILIES, PICTURES
from engine.prompts import plain_question
from engine.quoting import gib
from engine.types import MediaKind, ModelInfo, Tower

# A small checkpoint lists in this file the few questions that it was trained on, and what it was
# shown ("inputs") if that was more than one thing.  Without the file any question is accepted.
TRAINED = "trained_questions.json"

_CLIP = (768, 12, 12, 224, 32)  # of a vision_config that leaves a size of _TOWER out
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
    """`context` is None if neither config.json nor the defaults of its class tell it."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    context: int | None


# Their fields in config.json.
_TEXT = (
    *("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    *("num_key_value_heads", "head_dim", "max_position_embeddings"),
)
# What a config.json means that leaves a size out, by the model_type of its language model: all
# whose published files do.  Zeros: as many kv_heads as heads, a head_dim of hidden // heads.
DEFAULTS = {
    "cohere2": LanguageShape(8192, 22528, 40, 64, 0, 0, 8192),
    "gemma": LanguageShape(3072, 24576, 28, 16, 16, 256, 8192),
    "gemma2": LanguageShape(2304, 9216, 26, 8, 4, 256, 8192),
    "gemma3_text": LanguageShape(2304, 9216, 26, 8, 4, 256, 131_072),
    "llama": LanguageShape(4096, 11008, 32, 32, 0, 0, 2048),
    "mistral": LanguageShape(4096, 14336, 32, 32, 8, 0, 131_072),
    "qwen2": LanguageShape(4096, 22016, 32, 32, 32, 0, 32_768),
    "qwen3": LanguageShape(4096, 22016, 32, 32, 32, 128, 32_768),
}
# Of any other: only estimates of memory use it, and its context is said to be unknown.
OTHER = LanguageShape(4096, 11008, 32, 32, 0, 0, None)


@dataclass(frozen=True)
class Shape:
    """A checkpoint's sizes; None is known after loading."""

    tower: Tower | None
    text: LanguageShape
    visual_tokens: int | None
    stored_dtype: str | None


def read(entry: ModelEntry, folder: Path) -> Shape:
    """The sizes in the folder's config.json, or ModelUnavailable that names the field."""
    return of_config(entry.family, entry.kind, read_json(folder / "config.json", entry.name))


def of_config(family: str, kind: MediaKind, config: Config) -> Shape:
    """The sizes in a parsed config.json, whose values were checked as they were read."""
    form = FAMILIES[family]
    language = next((config[key] for key in _LANGUAGE if isinstance(config.get(key), dict)), config)
    # some files state the dtype of the weights only for the language model
    dtypes = [part.get(key) for part in (config, language) for key in ("dtype", "torch_dtype")]
    tower = form.tower
    if isinstance(vision := config.get("vision_config"), dict):
        usual = _CLIP if form.rows else (None,) * len(_TOWER)
        sizes = [_size(vision, *names) or one for names, one in zip(_TOWER, usual, strict=True)]
        tower = Tower(*sizes) if any(sizes) else None
    usual_text = "llama" if form.rows else str(language.get("model_type"))
    sized = zip(_TEXT, DEFAULTS.get(usual_text, OTHER), strict=True)
    known: list[Any] = [_size(language, name) or absent for name, absent in sized]
    text = LanguageShape(*known)
    kv_heads, head_dim = text.kv_heads or text.heads, text.head_dim or text.hidden // text.heads
    return Shape(
        tower=tower,
        text=text._replace(kv_heads=kv_heads, head_dim=head_dim),
        visual_tokens=form.rows(tower, PICTURES[kind], config) if form.rows and tower else None,
        stored_dtype=next((str(dtype) for dtype in dtypes if dtype), None),
    )


def _size(config: Config, *names: str) -> Any:
    """The first of these fields that holds one size: a whole number, or a list of equal ones; of
    different inner widths the largest."""
    for name in names:
        value = config.get(name)
        if isinstance(value, list):
            value = max(value) if len(set(value)) == 1 or name == "intermediate_size" else None
        if value is not None:
            return value
    return None


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
    text = shape.text
    # the linear layers between embedding and head, which quantization shrinks
    attention = 2 * text.hidden * text.head_dim * (text.heads + text.kv_heads)
    shrunk = min(count, text.layers * (attention + 3 * text.hidden * text.intermediate))
    held = int(shrunk * _QUANTIZED[entry.quantization]) + (count - shrunk) * size
    return of_run(entry, shape, new_tokens, held)


def of_run(entry: ModelEntry, shape: Shape, new_tokens: int, weights: int = 0) -> Need:
    """The memory for an answer if the weights are already loaded."""
    size, text = DTYPE_BYTES[entry.dtype], shape.text
    assumed = 0 if shape.visual_tokens else PICTURES[entry.kind] * PICTURE_TOKENS
    rows = shape.visual_tokens or assumed
    wanted = PROMPT_TOKENS + rows + new_tokens
    context = min(wanted, text.context or wanted)
    return Need(
        weights=weights,
        features=rows * text.hidden * size,
        kv_cache=2 * text.layers * text.kv_heads * text.head_dim * context * size,
        context=context,
        assumed=min(assumed, context),
    )


def card(entry: ModelEntry, folder: Path) -> ModelInfo:
    """The card of the checkpoint in this folder, or ModelUnavailable."""
    name, sizes, known = entry.name, read(entry, folder), trained(folder, entry.name)
    files = checkpoint_files.weight_files(folder, name)
    exact = all(file.suffix == ".safetensors" for file in files)
    # as written and in lower case, because training uses both
    forms = (form for q in (known.questions if known else ()) for form in (q, q.lower()))
    own = checkpoint_files.read_if_there(folder / "generation_config.json", name)
    return ModelInfo(
        name=name,
        family=entry.family,
        checkpoint=entry.checkpoint,
        revision=checkpoint.revision(entry, folder),
        dtype=entry.dtype,
        demo=entry.demo,
        digest=checkpoint_files.digest(folder, name, read=False),
        quantization=entry.quantization,
        source=str(folder) if entry.folder else f"Hugging Face hub: {entry.checkpoint}",
        headers=checkpoint_files.header_digest(folder, name),
        parameters=checkpoint_files.weight_count(folder, name) if exact else None,
        stored_dtype=sizes.stored_dtype,
        tower=sizes.tower,
        visual_tokens=sizes.visual_tokens,
        images=None if sizes.visual_tokens is None else PICTURES[entry.kind],
        context_limit=sizes.text.context,
        questions=frozenset(map(plain_question, forms)) if known else None,
        generation=generation_rules.notes(own),
        shows=entry.kind,
    )


class Trained(Struct):
    questions: Annotated[list[str], Meta(min_length=1)]
    inputs: list[str] = []


def trained(folder: Path, name: str) -> Trained | None:
    """What the file TRAINED lists; None for a folder without it."""
    path = folder / TRAINED
    what = f"{name}: the list of trained questions"
    if not path.exists():
        return None
    return plain_files.read_json(path, JSON_BYTES, what, Trained, error=ModelUnavailable)
