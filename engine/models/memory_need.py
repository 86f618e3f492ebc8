"""Estimates how much memory a model needs before its weights are read.

Boundary: arithmetic on a checkpoint's headers and config.json.  device.py knows the free memory;
registry.py decides which models to unload.  Where only the checkpoint's processor knows how many
visual tokens a sample gives, a number is assumed, and the sentence says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.machine.memory import gib
from engine.models import weights
from engine.models.checkpoint import DTYPE_BYTES, ModelEntry
from engine.models.shape import Shape

PROMPT_TOKENS = 256  # assumed text tokens of a prompt; the published ones have 20 to 60
NEW_TOKENS = 256  # assumed answer length if none is given
# Assumed if unknown: what a 640 x 480 picture gives at most in the usual models that do not tile.
PICTURE_TOKENS = 1024
# Bytes per weight of a quantized linear layer.  With 4 bits each 64 weights have a float32 scale
# (bitsandbytes, nf4 without double quantization); with 8 bits each row has one, which is
# negligible.
_QUANTIZED = {"8bit": 1.0, "4bit": 0.5 + 4 / 64}


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
    return of_run(entry, shape, new_tokens, _weights(entry, folder, shape))


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


def _weights(entry: ModelEntry, folder: Path, shape: Shape) -> int:
    count, size = weights.weight_count(folder, entry.name), DTYPE_BYTES[entry.dtype]
    if entry.quantization is None:
        return count * size
    shrunk = min(count, shape.text.linear_weights)
    return int(shrunk * _QUANTIZED[entry.quantization]) + (count - shrunk) * size
