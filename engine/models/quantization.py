"""8-bit and 4-bit loading: where it works, why not elsewhere, and what loading is told.

Boundary: bitsandbytes through transformers, on CUDA alone; both it and accelerate are an extra
(requirements-cuda.txt).  Only the linear layers of the language model shrink: the vision tower,
the projector, the adaptor and the head stay in the entry's dtype.  Importing this imports nothing.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from engine import settings
from engine.errors import ModelUnavailable
from engine.types import ModelInfo

NEEDS = ("bitsandbytes", "accelerate")
KINDS = ("8bit", "4bit")
# Modules that are left alone, by the names they have in the three families.
UNTOUCHED = (
    "lm_head",
    "vision_tower",
    "video_tower",
    "image_tower",
    "multi_modal_projector",
    "visual_tower",
    "visual_projector",
    "feature_adaptor",
)


def offered() -> tuple[str, ...]:
    """The quantizations that can be used on this machine; () nearly everywhere."""
    return () if reason() else KINDS


def reason() -> str | None:
    """Why nothing can be quantized here, or None.  Imports torch unless the extra is absent."""
    absent = [name for name in NEEDS if find_spec(name) is None]
    if absent:
        return f"{' and '.join(absent)} not installed: `pip install -r requirements-cuda.txt`"
    wanted = settings.load().device
    import torch

    if not torch.cuda.is_available() or not (wanted == "auto" or wanted.startswith("cuda")):
        return f"it works on CUDA alone and the device is {wanted}"
    return None


def check(name: str, wanted: str | None) -> None:
    """ModelUnavailable if this entry asks for what does not work here."""
    if wanted is not None and (why := reason()):
        raise ModelUnavailable(
            f"{name} asks for {wanted} weights, which cannot be had here ({why}); or remove "
            "quantization from its entry in models.toml."
        )


def options(info: ModelInfo) -> dict[str, Any]:
    """What from_pretrained is told beside the dtype; nothing for a model that is not quantized."""
    if info.quantization is None:
        return {}
    import torch
    from transformers import BitsAndBytesConfig

    skipped = list(UNTOUCHED)
    if info.quantization == "8bit":
        config = BitsAndBytesConfig(load_in_8bit=True, llm_int8_skip_modules=skipped)
    else:
        config = BitsAndBytesConfig(
            load_in_4bit=True,
            llm_int8_skip_modules=skipped,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_compute_dtype=getattr(torch, info.dtype),
        )
    return {"quantization_config": config, "device_map": {"": torch.device(info.device)}}
