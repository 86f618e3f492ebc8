"""A model's sizes from config.json: its tower, its language model, bytes per token.

Boundary: arithmetic on a parsed config.json; imports neither torch nor transformers.  A missing
field has the default of transformers' configuration classes (a test compares them).  What a tower
of another family does not state is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelUnavailable
from engine.models import text_defaults
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


@dataclass(frozen=True)
class LanguageShape:
    """The shape of a language model; the defaults are LLaMA-7B's.

    `context` is None if neither config.json nor the defaults of its class tell it.
    """

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


@dataclass(frozen=True)
class Form:
    """How a family writes its config.json, and how many visual rows its pictures give.

    `text`: the field of the language model ("" if it is the whole file).  `tower`: the default
    tower.  `images`: the usual number of pictures of a sample, for what the model is shown.
    """

    text: str
    tower: Tower
    images: int
    rows: Rows


@dataclass(frozen=True)
class AnyForm:
    """The form of a family whose models differ: sizes are found by their usual names, and only the
    checkpoint's processor knows how many visual rows a picture gives."""

    images: int = 1


@dataclass(frozen=True)
class Shape:
    """A checkpoint's sizes; None is known after loading."""

    tower: Tower | None
    text: LanguageShape
    images: int
    visual_tokens: int | None
    stored_dtype: str | None


def read(form: Form | AnyForm, folder: Path, name: str) -> Shape:
    """The sizes in the folder's config.json, or ModelUnavailable that names the field."""
    path = folder / "config.json"
    config = read_json(path, name)
    try:
        return _shape(form, config)
    except (TypeError, ValueError, AttributeError, ZeroDivisionError, KeyError) as error:
        raise ModelUnavailable(
            f"{name}: {path} does not describe a model ({error}): copy it again."
        ) from error


def _shape(form: Form | AnyForm, config: Config) -> Shape:
    if isinstance(form, AnyForm):
        return Shape(_any_tower(config), _any_text(config), form.images, None, _stored(config))
    tower = _tower(config.get("vision_config"), form.tower)
    return Shape(
        tower=tower,
        text=_text(config.get(form.text) or {} if form.text else config),
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


def _any_text(config: Config) -> LanguageShape:
    part = language(config)
    usual = text_defaults.of(part.get("model_type"))
    hidden = _whole(part, "hidden_size", usual.hidden)
    heads = _whole(part, "num_attention_heads", usual.heads)
    return LanguageShape(
        hidden=hidden,
        intermediate=_widest(part, "intermediate_size") or usual.intermediate,
        layers=_whole(part, "num_hidden_layers", usual.layers),
        heads=heads,
        kv_heads=_whole(part, "num_key_value_heads", usual.kv_heads or heads),
        head_dim=_whole(part, "head_dim", usual.head_dim or hidden // heads),
        context=_first(part, ("max_position_embeddings",)) or usual.context,
        vocabulary=_whole(part, "vocab_size", usual.vocabulary),
    )


def _any_tower(config: Config) -> Tower | None:
    """What the config.json states of its tower; nothing is assumed."""
    part = config.get("vision_config")
    if not isinstance(part, dict):
        return None
    tower = Tower(
        hidden=_first(part, _WIDTH),
        layers=_first(part, _DEPTH),
        heads=_first(part, _HEADS),
        image_size=_first(part, ("image_size",)),
        patch_size=_first(part, ("patch_size",)),
    )
    return tower if any(vars(tower).values()) else None


def _first(config: Config, fields: tuple[str, ...]) -> int | None:
    """The first of these fields that holds one size: a whole number, or a list of equal ones."""
    for field in fields:
        value = config.get(field)
        if isinstance(value, list) and len(set(value)) == 1:
            value = value[0]
        if value is not None and not isinstance(value, list):
            return _whole({field: value}, field, 0)
    return None


def _widest(config: Config, field: str) -> int | None:
    """The largest of the sizes, which some models state for each layer."""
    value = config.get(field)
    return max(value) if isinstance(value, list) and value else _first(config, (field,))


def _tower(config: Config | None, absent: Tower) -> Tower:
    if config is None:
        return absent
    return Tower(*(_whole(config, field, value) for field, value in _CLIP.items()))


def _text(config: Config) -> LanguageShape:
    hidden = _whole(config, "hidden_size", 4096)
    heads = _whole(config, "num_attention_heads", 32)
    return LanguageShape(
        hidden=hidden,
        intermediate=_whole(config, "intermediate_size", 11008),
        layers=_whole(config, "num_hidden_layers", 32),
        heads=heads,
        kv_heads=_whole(config, "num_key_value_heads", heads),
        head_dim=_whole(config, "head_dim", hidden // heads),
        context=_whole(config, "max_position_embeddings", 2048),
        vocabulary=_whole(config, "vocab_size", 32000),
    )


def _whole(config: Config, field: str, absent: int) -> int:
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
