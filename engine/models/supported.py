"""Decides from a folder's JSON files whether the adapters can run its checkpoint.

Boundary: reads config.json, the tokenizer's settings and the chat template; raises
ModelUnavailable.  Imports neither torch nor transformers, so that a list of models can use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.decoding import generation_rules
from engine.errors import ModelUnavailable
from engine.models import checkpoint_files, checkpoint_schema, image_text_models, templates
from engine.quoting import quoted

TOWER, TEXT = "clip_vision_model", "llama"
# The repository or folder whose format each family's adapter reads.
USE = {
    "llava": "llava-hf/llava-1.5-7b-hf",
    "video_llava": "LanguageBind/Video-LLaVA-7B-hf",
    "eventgpt": "the EventGPT-7b folder of its authors",
}
_ANY = 'write family = "transformers" in models.toml'
_ORIGINAL = ("LlavaLlamaForCausalLM", "LlavaLlama", "VideoLlavaLlamaForCausalLM")
_PICTURE_IDS = ("image_token_id", "image_token_index", "video_token_id", "video_token_index")
_BOS, _EOS = "<s>", "</s>"  # of the tokenizer that the built-in prompts were published with


def refuse_other(name: str, family: str, folder: Path, model_types: dict[str, str]) -> None:
    """ModelUnavailable unless the folder has the format that the family's adapter reads.

    `model_types`: the model_type of each family.
    """
    path = folder / "config.json"
    config = checkpoint_files.read_record(path, checkpoint_schema.ModelConfig, name)
    stated = checkpoint_files.read_json(path, name)
    model_type = stated.get("model_type")
    if family != "eventgpt":
        refuse_original(name, path, config)
    if model_type != model_types[family]:
        known = model_type in model_types.values()
        meant = "video_llava" if "video" in str(model_type) else family
        fix = "correct its entry in models.toml" if known else f"use {USE[meant]} instead"
        if not known and str(model_type) in image_text_models.known():
            fix += f", or {_ANY}"
        raise ModelUnavailable(
            f"{name} is entered as {family}, but {path} says its model_type is "
            f"{quoted(model_type)} (not {model_types[family]!r}): {fix}."
        )
    other = f", or {_ANY}" if str(model_type) in image_text_models.known() else ""
    for what, found, wanted in _parts(stated):
        if found not in (None, wanted):
            raise ModelUnavailable(
                f"{name}: the {what} in {path} is {quoted(found)}, and only "
                f"{wanted!r} is supported: use {USE[family]} instead{other}."
            )
    if family != "eventgpt":
        _refuse_odd_values(name, path, stated)
    refuse_generation(name, checkpoint_files.read_if_there(folder / "generation_config.json", name))
    if family != "eventgpt":
        _refuse_unknown_prompt(name, family, folder)


def has_known_parts(config: Mapping[str, Any]) -> bool:
    """Whether the tower and the language model are those that the adapters here read."""
    return all(found in (None, wanted) for _, found, wanted in _parts(config))


def _parts(config: Mapping[str, Any]) -> list[tuple[str, Any, str]]:
    """Each part's name, its model_type in config.json, and the only one that is supported."""
    tower, text = config.get("vision_config") or {}, config.get("text_config") or {}
    return [
        ("vision tower", tower.get("model_type"), TOWER),
        ("language model", text.get("model_type"), TEXT),
    ]


def refuse_original(name: str, path: Path, config: checkpoint_schema.ModelConfig) -> None:
    """LLaVA's and Video-LLaVA's first releases, whose folders transformers cannot read."""
    towers = (config.mm_vision_tower, config.mm_image_tower, config.mm_video_tower)
    named = any(one in _ORIGINAL for one in config.architectures or ())
    if not named and not any(towers):
        return
    video = config.mm_video_tower or config.mm_image_tower or "languagebind" in str(path).lower()
    raise ModelUnavailable(
        f"{name}: {path} describes a checkpoint in its authors' own format, which transformers "
        f"cannot read: use {USE['video_llava' if video else 'llava']} instead."
    )


def _refuse_odd_values(name: str, path: Path, stated: Mapping[str, Any]) -> None:
    """ModelUnavailable for values that transformers fails on, such as layer 0 or no image id."""
    layers = stated.get("vision_feature_layer")
    odd = (
        ["vision_feature_layer"] if 0 in (layers if isinstance(layers, list) else [layers]) else []
    )
    odd += ["is_encoder_decoder"] if stated.get("is_encoder_decoder") else []
    odd += [key for key in _PICTURE_IDS if key in stated and stated[key] is None]
    if odd:
        raise ModelUnavailable(
            f"{name}: {path}: {odd[0]} is {quoted(stated[odd[0]])}, which no model "
            "can use: correct it, or copy the file again."
        )


def _refuse_unknown_prompt(name: str, family: str, folder: Path) -> None:
    """ModelUnavailable if there is no chat template and the tokenizer is not LLaMA's, for which the
    built-in prompt is made."""
    if templates.find(folder, name) is not None:
        return
    path = folder / "tokenizer_config.json"
    stated = checkpoint_files.read_record(path, checkpoint_schema.TokenizerConfig, name)
    for key, token, wanted in (
        ("bos_token", stated.bos_token, _BOS),
        ("eos_token", stated.eos_token, _EOS),
    ):
        text = token.get("content") if isinstance(token, dict) else token
        if text not in (None, wanted):
            raise ModelUnavailable(
                f"{name}: {path}: {key} is {quoted(text)}, so its tokenizer is not "
                "LLaMA's, and there is no chat template for the prompt: add chat_template.jinja "
                f"or use {USE[family]}."
            )


def refuse_generation(name: str, settings: Mapping[str, Any]) -> None:
    """ModelUnavailable for a setting that changes greedy answers and is not supported."""
    if (key := generation_rules.refused(settings)) is not None:
        raise ModelUnavailable(
            f"{name}: its generation_config.json sets {key} to "
            f"{quoted(settings[key])}, which StageScope does not support: remove it "
            "there to run the model without it."
        )
