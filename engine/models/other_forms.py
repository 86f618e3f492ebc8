"""What a folder or repository holds in place of a checkpoint: GGUF, a LoRA adapter, packed weights.

Boundary: names of files and parsed JSON in, a ModelUnavailable with what to do out; reads no weight
and imports neither torch nor transformers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from engine.errors import ModelUnavailable
from engine.models import checkpoint_files
from engine.quoting import quoted, shown

_LORA = "adapter_config.json"
# Fields of config.json that say how the stored weights are packed.
_PACKED = ("quantization_config", "compression_config")


def refuse_gguf_file(name: str, path: Path) -> None:
    """ModelUnavailable if the checkpoint is one file of llama.cpp and no folder."""
    if path.suffix.lower() == ".gguf":
        raise ModelUnavailable(
            f"{name}: {shown(path)} is a GGUF file, which StageScope does not read: use the folder "
            "or repository with safetensors that it was made from."
        )


def refuse_without_weights(name: str, folder: Path) -> None:
    """ModelUnavailable if a folder without weights holds one of the other forms."""
    files = {path.name for path in folder.iterdir()}
    base = None
    if _LORA in files:
        base = checkpoint_files.read_json(folder / _LORA, name).get("base_model_name_or_path")
    refuse_listed(name, shown(folder), files, base)


def refuse_listed(name: str, where: str, files: Collection[str], base: object = None) -> None:
    """ModelUnavailable if files without a checkpoint's weights are an adapter or GGUF."""
    if _LORA in files:
        of = f" of {quoted(base)}" if base else ""
        raise ModelUnavailable(
            f"{name}: {where} holds only a LoRA adapter{of}, not a whole model: merge it into its "
            "base model (peft's merge_and_unload) and use the folder that this writes."
        )
    if any(file.lower().endswith(".gguf") for file in files):
        raise ModelUnavailable(
            f"{name}: {where} holds only GGUF files, which StageScope does not read: use the "
            "repository with safetensors that they were made from."
        )


def refuse_packed(name: str, where: object, config: Mapping[str, Any]) -> None:
    """ModelUnavailable if the weights are stored quantized, by GPTQ, AWQ or another method."""
    parts = [config, *(part for part in config.values() if isinstance(part, dict))]
    found = next((part[key] for part in parts for key in _PACKED if part.get(key)), None)
    if found is None:
        return
    method = found.get("quant_method") if isinstance(found, dict) else None
    how = f"quantized ({quoted(method)})" if method else "quantized"
    raise ModelUnavailable(
        f"{name}: {where} says that its weights are stored {how}, which is not supported: use the "
        "checkpoint that was not quantized, on CUDA with quantization in models.toml."
    )
