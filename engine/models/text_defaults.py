"""What a config.json means if it leaves out a size of its language model.

Boundary: a table; a test compares it with transformers' configuration classes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TextDefaults:
    """The sizes of one model_type.  `kv_heads` None: as many as heads.  `head_dim` None: the width
    divided by the heads.  `context` None: unknown."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int | None
    head_dim: int | None
    context: int | None
    vocabulary: int


# The language models whose published files leave sizes out.
DEFAULTS = {
    "cohere2": TextDefaults(8192, 22528, 40, 64, None, None, 8192, 256_000),
    "gemma": TextDefaults(3072, 24576, 28, 16, 16, 256, 8192, 256_000),
    "gemma2": TextDefaults(2304, 9216, 26, 8, 4, 256, 8192, 256_000),
    "gemma3_text": TextDefaults(2304, 9216, 26, 8, 4, 256, 131_072, 262_208),
    "llama": TextDefaults(4096, 11008, 32, 32, None, None, 2048, 32_000),
    "mistral": TextDefaults(4096, 14336, 32, 32, 8, None, 131_072, 32_000),
    "qwen2": TextDefaults(4096, 22016, 32, 32, 32, None, 32_768, 151_936),
    "qwen3": TextDefaults(4096, 22016, 32, 32, 32, 128, 32_768, 151_936),
}
# Of any other: only estimates of memory use it, and its context is said to be unknown.
OTHER = TextDefaults(4096, 11008, 32, 32, None, None, None, 32_000)


def of(model_type: object) -> TextDefaults:
    """The sizes that a model of this type has where its file is silent."""
    return DEFAULTS.get(str(model_type), OTHER)
