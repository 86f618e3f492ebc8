"""8-bit and 4-bit loading: whether it works here, why not, and the options for loading.
bitsandbytes through transformers, only on CUDA.  Only the linear layers of the language model are
quantized: the vision tower, the projector, the adaptor and the head stay in the entry's dtype."""

import logging
from importlib.util import find_spec
from typing import Any

from engine import settings
from engine.errors import ModelUnavailable
from engine.types import ModelInfo

NEEDS = ("bitsandbytes", "accelerate")
KINDS = ("8bit", "4bit")
# Modules that are not quantized, at any depth, by their names in the families.
UNTOUCHED = (
    *("lm_head", "vision_tower", "video_tower", "image_tower", "multi_modal_projector"),
    *("visual_tower", "visual_projector", "feature_adaptor"),  # EventGPT
    *("visual", "vision_model", "vision_encoder", "embed_vision", "connector", "projector"),
    *("vision_projection", "vision_resampler", "qformer", "language_projection"),
)


def offered() -> tuple[str, ...]:
    """The quantizations that this machine supports; () without CUDA."""
    return () if reason() else KINDS


def reason() -> str | None:
    """Why this machine cannot quantize, or None.  Imports torch only if the packages are there."""
    absent = [name for name in NEEDS if find_spec(name) is None]
    if absent:
        return f"{' and '.join(absent)} not installed: `pip install {' '.join(NEEDS)}`"
    wanted = settings.load().device
    import torch

    if not torch.cuda.is_available() or not (wanted == "auto" or wanted.startswith("cuda")):
        return f"it needs CUDA, and the device is {wanted}"
    return None


def check(name: str, wanted: str | None) -> None:
    """ModelUnavailable if this entry asks for a quantization that does not work here."""
    if wanted is not None and (why := reason()):
        raise ModelUnavailable(
            f"{name} asks for {wanted} weights, which do not work here ({why}); or remove "
            "quantization from its entry in models.toml."
        )


def options(info: ModelInfo) -> dict[str, Any]:
    """Options for from_pretrained besides the dtype; none for a model without quantization."""
    if info.quantization is None:
        return {}
    import torch
    from transformers import BitsAndBytesConfig

    # It repeats a warning about float16 in every layer of every token.
    logging.getLogger("bitsandbytes.autograd").setLevel(logging.ERROR)
    # transformers matches a name from the start of a module's full name, or as its end; without
    # the pattern, it would quantize what is inside model.vision_tower.
    skipped = [rf"(?:.*\.)?{name}" for name in UNTOUCHED]
    bits: dict[str, Any] = {"load_in_8bit": True}
    if info.quantization == "4bit":
        bits = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
        bits["bnb_4bit_compute_dtype"] = getattr(torch, info.dtype)
    config = BitsAndBytesConfig(llm_int8_skip_modules=skipped, **bits)
    return {"quantization_config": config, "device_map": {"": torch.device(info.device)}}
