"""How much memory a model needs, before a byte of its weights is read.

Boundary: arithmetic on a checkpoint's headers and config.json.  What a device has is device.py's
to say; who must make room is the registry's to decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.machine.memory import gib
from engine.models import weights
from engine.models.checkpoint import DTYPE_BYTES, ModelEntry
from engine.models.shape import Shape

PROMPT_TOKENS = 256  # room for the words of a prompt; the published ones have 20 to 60
NEW_TOKENS = 256  # where nobody has said how long an answer may get
# Bytes per weight of a quantized linear layer.  4 bits carry a float32 scale for each 64 weights
# (bitsandbytes, nf4 without double quantization); 8 bits one for each row, which is next to none.
_QUANTIZED = {"8bit": 1.0, "4bit": 0.5 + 4 / 64}


@dataclass(frozen=True)
class Need:
    """Bytes that one run of a model takes on its device, for a context of so many tokens."""

    weights: int
    features: int
    kv_cache: int
    context: int

    @property
    def run(self) -> int:
        """What a run takes beside the weights."""
        return self.features + self.kv_cache

    @property
    def total(self) -> int:
        return self.weights + self.run

    def __str__(self) -> str:
        return (
            f"{gib(self.total)} ({gib(self.weights)} for its weights, {gib(self.features)} for "
            f"features, {gib(self.kv_cache)} for the KV cache of {self.context:,} tokens)"
        )


def needed(entry: ModelEntry, folder: Path, shape: Shape, new_tokens: int = NEW_TOKENS) -> Need:
    """The need of an answer of `new_tokens`, within the model's context."""
    return of_run(entry, shape, new_tokens, _weights(entry, folder, shape))


def of_run(entry: ModelEntry, shape: Shape, new_tokens: int, weights: int = 0) -> Need:
    """The need of an answer alone, where the weights are loaded."""
    size, text = DTYPE_BYTES[entry.dtype], shape.text
    context = min(PROMPT_TOKENS + shape.visual_tokens + new_tokens, text.context)
    return Need(
        weights=weights,
        features=shape.visual_tokens * text.hidden * size,
        kv_cache=text.kv_bytes(context, size),
        context=context,
    )


def _weights(entry: ModelEntry, folder: Path, shape: Shape) -> int:
    count, size = weights.weight_count(folder, entry.name), DTYPE_BYTES[entry.dtype]
    if entry.quantization is None:
        return count * size
    shrunk = min(count, shape.text.linear_weights)
    return int(shrunk * _QUANTIZED[entry.quantization]) + (count - shrunk) * size
