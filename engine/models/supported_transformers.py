"""Decides from a folder's JSON files whether transformers itself can run its checkpoint.

Boundary: as supported.py, for `family = "transformers"`: the model_type, the processor's files, the
tokenizer and the chat template; raises ModelUnavailable.  Imports neither torch nor transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import ModelUnavailable
from engine.models import (
    checkpoint_files,
    checkpoint_schema,
    image_text_models,
    supported,
    templates,
)
from engine.quoting import quoted

FAMILY = "transformers"
_EXAMPLE = "HuggingFaceTB/SmolVLM2-500M-Video-Instruct"
_PROCESSOR = ("preprocessor_config.json", "processor_config.json")
_TOKENIZER = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model")
# model_types of code in a repository, and where the same weights are for transformers itself.
_CONVERTED = {
    "internvl_chat": "OpenGVLab/InternVL3-1B-hf",
    "llava_qwen": "llava-hf/llava-onevision-qwen2-0.5b-ov-hf",
    "multi_modality": "deepseek-community/Janus-Pro-1B",
}
_INTERNVL = ("OpenGVLab/InternVL3-", "OpenGVLab/InternVL3_5-")


def refuse(name: str, checkpoint: str, folder: Path, own: Mapping[str, str]) -> None:
    """ModelUnavailable unless transformers has the folder's model and can build its processor.

    `checkpoint` is as models.toml states it; `own`: the family of each model_type that this project
    reads by an adapter of its own.
    """
    path = folder / "config.json"
    config = checkpoint_files.read_json(path, name)
    if config.get("model_type") not in _CONVERTED:
        record = checkpoint_schema.checked(config, checkpoint_schema.ModelConfig, path, name)
        supported.refuse_original(name, path, record)
    refuse_type(name, checkpoint, str(path), config, own)
    _refuse_missing(name, folder)
    settings = checkpoint_files.read_if_there(folder / "generation_config.json", name)
    supported.refuse_generation(name, settings)


def refuse_type(
    name: str, checkpoint: str, where: str, config: Mapping[str, Any], own: Mapping[str, str]
) -> None:
    """ModelUnavailable unless AutoModelForImageTextToText knows the model_type in `config`."""
    model_type = str(config.get("model_type"))
    if model_type in image_text_models.known():
        return
    says = f"{name}: {where} says its model_type is {quoted(config.get('model_type'))}"
    if model_type in own:
        raise ModelUnavailable(f'{says}: write family = "{own[model_type]}" in models.toml.')
    if config.get("auto_map") or model_type in _CONVERTED:
        raise ModelUnavailable(
            f"{says}, whose code is in its repository and not in transformers, and StageScope runs "
            f"no code from repositories: use {_converted(model_type, checkpoint)} instead."
        )
    if image_text_models.reads_text_only(model_type):
        raise ModelUnavailable(
            f"{says}, a language model that answers text only: use a checkpoint that also reads "
            f"pictures, such as {_EXAMPLE}."
        )
    raise ModelUnavailable(
        f"{says}, which is no image-text-to-text model of this version of transformers: use "
        f"another checkpoint, such as {_EXAMPLE}, or a newer transformers if the model is newer."
    )


def _converted(model_type: str, checkpoint: str) -> str:
    """The repository with the same weights for transformers itself, as far as it is known."""
    if model_type == "internvl_chat":
        for start, end in zip(_INTERNVL, ("-hf", "-HF"), strict=True):
            if checkpoint.startswith(start):
                return f"{checkpoint}{end}"
    return _CONVERTED.get(model_type, f"a checkpoint in transformers' own form, such as {_EXAMPLE}")


def hooked_only(name: str, folder: Path) -> str | None:
    """Why only the hooked mode can run the folder's model, or None."""
    model_type = str(checkpoint_files.read_json(folder / "config.json", name).get("model_type"))
    if model_type not in image_text_models.known() or image_text_models.facts(model_type).seam:
        return None
    return f"hooked mode only: transformers' {model_type} takes no features"


def family_of(config: Mapping[str, Any], own: Mapping[str, str]) -> str:
    """The family of a config.json that models.toml does not name.

    One of `own` if its adapter reads exactly this form, else transformers.
    """
    family = own.get(str(config.get("model_type")), FAMILY)
    return family if supported.has_known_parts(config) else FAMILY


def _refuse_missing(name: str, folder: Path) -> None:
    """ModelUnavailable if there is no image processor, tokenizer or chat template."""
    nested = checkpoint_files.read_if_there(folder / _PROCESSOR[1], name).get("image_processor")
    if not nested and not checkpoint_files.read_if_there(folder / _PROCESSOR[0], name):
        raise ModelUnavailable(
            f"{name}: its image processor is missing ({folder} has no {_PROCESSOR[0]}, and no "
            f"{_PROCESSOR[1]} with an image_processor): copy it from the checkpoint's repository."
        )
    if not any((folder / file).is_file() for file in _TOKENIZER):
        raise ModelUnavailable(
            f"{name}: its tokenizer is missing ({folder} has no tokenizer.json and no "
            "tokenizer.model): copy it from the checkpoint's repository."
        )
    if templates.find(folder, name) is None:
        raise ModelUnavailable(
            f"{name}: its chat template is missing ({folder} has no chat_template.jinja and no "
            "chat_template in its JSON files): copy it from the checkpoint's repository, or use "
            "an instruction-tuned version if this is a base model."
        )
