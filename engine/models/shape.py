"""A model's sizes from config.json: its tower, its language model, bytes per token.

Boundary: arithmetic on a parsed config.json; imports neither torch nor transformers.  A missing
field has the default of transformers' configuration classes (a test compares them).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import ModelUnavailable
from engine.models.checkpoint_files import read_json
from engine.types import Tower

CLIP_L_336 = Tower(hidden=1024, layers=24, heads=16, image_size=336, patch_size=14)
CLIP_L_224 = Tower(hidden=1024, layers=24, heads=16, image_size=224, patch_size=14)
_CLIP = Tower(hidden=768, layers=12, heads=12, image_size=224, patch_size=32)
Config = Mapping[str, Any]
Rows = Callable[[Tower, int, Config], int]


@dataclass(frozen=True)
class LanguageShape:
    """The shape of a LLaMA; the defaults are LLaMA-7B's."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    context: int
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
class Shape:
    """A checkpoint's sizes."""

    tower: Tower
    text: LanguageShape
    images: int
    visual_tokens: int
    stored_dtype: str | None


def read(form: Form, folder: Path, name: str) -> Shape:
    """The sizes in the folder's config.json, or ModelUnavailable that names the field."""
    path = folder / "config.json"
    config = read_json(path, name)
    try:
        return _shape(form, config)
    except (TypeError, ValueError, AttributeError, ZeroDivisionError, KeyError) as error:
        raise ModelUnavailable(
            f"{name}: {path} does not describe a model ({error}): copy it again."
        ) from error


def _shape(form: Form, config: Config) -> Shape:
    tower = _tower(config.get("vision_config"), form.tower)
    stored = config.get("dtype") or config.get("torch_dtype")
    return Shape(
        tower=tower,
        text=_text(config.get(form.text) or {} if form.text else config),
        images=form.images,
        visual_tokens=form.rows(tower, form.images, config),
        stored_dtype=str(stored) if stored else None,
    )


def _tower(config: Config | None, absent: Tower) -> Tower:
    if config is None:
        return absent
    return Tower(
        hidden=_whole(config, "hidden_size", _CLIP.hidden),
        layers=_whole(config, "num_hidden_layers", _CLIP.layers),
        heads=_whole(config, "num_attention_heads", _CLIP.heads),
        image_size=_whole(config, "image_size", _CLIP.image_size),
        patch_size=_whole(config, "patch_size", _CLIP.patch_size),
    )


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
