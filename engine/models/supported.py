"""Decides from a folder's files, without torch and transformers, whether its checkpoint can run.

The families with an adapter of their own need one exact form of config.json and tokenizer.  The
family "transformers" needs a model_type that transformers knows, a processor, a tokenizer and a
chat template.  Whatever cannot run is a ModelUnavailable that says what to do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from engine.decoding import generation_rules
from engine.errors import ModelUnavailable
from engine.models import checkpoint_files, families, templates
from engine.models.families import ANY_FAMILY, FAMILIES, OWN
from engine.quoting import quoted, shown

# The repository or folder whose format each family's adapter reads.
USE = {
    "llava": "llava-hf/llava-1.5-7b-hf",
    "video_llava": "LanguageBind/Video-LLaVA-7B-hf",
    "eventgpt": "the EventGPT-7b folder of its authors",
}
# The parts of config.json, and the only model_type of each that these families support.
_PARTS = (
    ("vision tower", "vision_config", "clip_vision_model"),
    ("language model", "text_config", "llama"),
)
_ORIGINAL = ("LlavaLlamaForCausalLM", "LlavaLlama", "VideoLlavaLlamaForCausalLM")
_PICTURE_IDS = ("image_token_id", "image_token_index", "video_token_id", "video_token_index")
# Of the tokenizer that the built-in prompts were published with.
_TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
_EXAMPLE = "HuggingFaceTB/SmolVLM2-500M-Video-Instruct"
_TOKENIZER = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model")
# model_types of code in a repository, and where the same weights are for transformers itself.
_CONVERTED = {
    "internvl_chat": "OpenGVLab/InternVL3-1B-hf",
    "llava_qwen": "llava-hf/llava-onevision-qwen2-0.5b-ov-hf",
    "multi_modality": "deepseek-community/Janus-Pro-1B",
}
_INTERNVL = {"OpenGVLab/InternVL3-": "-hf", "OpenGVLab/InternVL3_5-": "-HF"}
_LORA = "adapter_config.json"


def refuse(name: str, family: str, checkpoint: str, folder: Path) -> None:
    """ModelUnavailable unless the family's adapter can read the folder.

    `checkpoint` is as models.toml states it.
    """
    config = checkpoint_files.read_json(folder / "config.json", name)
    if family == ANY_FAMILY:
        _refuse_unknown(name, checkpoint, folder, config)
    else:
        _refuse_other(name, family, folder / "config.json", config)
    refuse_generation(name, checkpoint_files.read_if_there(folder / "generation_config.json", name))
    if family in ("llava", "video_llava") and templates.find(folder, name) is None:
        _refuse_unknown_prompt(name, family, folder / "tokenizer_config.json")


def _refuse_other(name: str, family: str, path: Path, config: Mapping[str, Any]) -> None:
    """ModelUnavailable for a config.json of another form than the family's adapter reads."""
    model_type, wanted_type = config.get("model_type"), FAMILIES[family].model_type
    if family != "eventgpt":
        _refuse_original(name, path, config)
    other = ""
    if str(model_type) in families.known():
        other = f', or write family = "{ANY_FAMILY}" in models.toml'
    if model_type != wanted_type:
        meant = "video_llava" if "video" in str(model_type) else family
        fix = f"use {USE[meant]} instead{other}"
        if model_type in OWN:
            fix = "correct its entry in models.toml"
        raise ModelUnavailable(
            f"{name} is entered as {family}, but {path} says its model_type is "
            f"{quoted(model_type)} (not {wanted_type!r}): {fix}."
        )
    for what, field, wanted in _PARTS:
        stated = (config.get(field) or {}).get("model_type")
        if stated not in (None, wanted):
            raise ModelUnavailable(
                f"{name}: the {what} in {path} is {quoted(stated)}, and only "
                f"{wanted!r} is supported: use {USE[family]} instead{other}."
            )
    if family != "eventgpt":
        _refuse_odd_values(name, path, config)


def _refuse_original(name: str, path: Path, config: Mapping[str, Any]) -> None:
    """LLaVA's and Video-LLaVA's first releases, whose folders transformers cannot read."""
    of_video = config.get("mm_video_tower") or config.get("mm_image_tower")
    named = any(one in _ORIGINAL for one in config.get("architectures") or ())
    if named or of_video or config.get("mm_vision_tower"):
        video = of_video or "languagebind" in str(path).lower()
        raise ModelUnavailable(
            f"{name}: {path} describes a checkpoint in its authors' own format, which transformers "
            f"cannot read: use {USE['video_llava' if video else 'llava']} instead."
        )


def _refuse_odd_values(name: str, path: Path, config: Mapping[str, Any]) -> None:
    """ModelUnavailable for values that transformers fails on, such as layer 0 or no image id."""
    layers = config.get("vision_feature_layer")
    layers = layers if isinstance(layers, list) else [layers]
    odd = ["vision_feature_layer"] if 0 in layers else []
    odd += ["is_encoder_decoder"] if config.get("is_encoder_decoder") else []
    odd += [key for key in _PICTURE_IDS if key in config and config[key] is None]
    if odd:
        raise ModelUnavailable(
            f"{name}: {path}: {odd[0]} is {quoted(config[odd[0]])}, which no model "
            "can use: correct it, or copy the file again."
        )


def _refuse_unknown_prompt(name: str, family: str, path: Path) -> None:
    """ModelUnavailable if the tokenizer is not LLaMA's, for which the built-in prompt is made."""
    stated = checkpoint_files.read_if_there(path, name)
    for key, wanted in _TOKENS.items():
        token = stated.get(key)
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


def _refuse_unknown(name: str, checkpoint: str, folder: Path, config: Mapping[str, Any]) -> None:
    """ModelUnavailable unless transformers has the folder's model and can build its processor."""
    if config.get("model_type") not in _CONVERTED:
        _refuse_original(name, folder / "config.json", config)
    refuse_type(name, checkpoint, str(folder / "config.json"), config)
    stated = [
        checkpoint_files.read_if_there(folder / file, name)
        for file in ("processor_config.json", "preprocessor_config.json")
    ]
    parts = (
        (
            stated[0].get("image_processor") or stated[1],
            "image processor",
            "no preprocessor_config.json, and no processor_config.json with an image_processor",
        ),
        (
            any((folder / file).is_file() for file in _TOKENIZER),
            "tokenizer",
            "no tokenizer.json and no tokenizer.model",
        ),
        (
            templates.find(folder, name),
            "chat template",
            "no chat_template.jinja and no chat_template in its JSON files",
        ),
    )
    for there, what, lacking in parts:
        if not there:
            base = ", or use an instruction-tuned version if this is a base model"
            raise ModelUnavailable(
                f"{name}: its {what} is missing ({folder} has {lacking}): copy it from the "
                f"checkpoint's repository{base if what == 'chat template' else ''}."
            )


def refuse_type(name: str, checkpoint: str, where: str, config: Mapping[str, Any]) -> None:
    """ModelUnavailable unless AutoModelForImageTextToText knows the model_type in `config`."""
    model_type = str(config.get("model_type"))
    if model_type in families.known():
        return
    says = f"{name}: {where} says its model_type is {quoted(config.get('model_type'))}"
    if model_type in OWN:
        raise ModelUnavailable(f'{says}: write family = "{OWN[model_type]}" in models.toml.')
    if config.get("auto_map") or model_type in _CONVERTED:
        any_form = f"a checkpoint in transformers' own form, such as {_EXAMPLE}"
        instead = _CONVERTED.get(model_type, any_form)
        for start, end in _INTERNVL.items():
            if model_type == "internvl_chat" and checkpoint.startswith(start):
                instead = f"{checkpoint}{end}"
        raise ModelUnavailable(
            f"{says}, whose code is in its repository and not in transformers, and StageScope runs "
            f"no code from repositories: use {instead} instead."
        )
    if families.reads_text_only(model_type):
        raise ModelUnavailable(
            f"{says}, a language model that answers text only: use a checkpoint that also reads "
            f"pictures, such as {_EXAMPLE}."
        )
    raise ModelUnavailable(
        f"{says}, which is no image-text-to-text model of this version of transformers: use "
        f"another checkpoint, such as {_EXAMPLE}, or a newer transformers if the model is newer."
    )


def family_of(config: Mapping[str, Any]) -> str:
    """The family of a config.json that models.toml does not name: the one whose adapter reads
    exactly this form, else transformers."""
    stated = [((config.get(field) or {}).get("model_type"), wanted) for _, field, wanted in _PARTS]
    known = all(part in (None, wanted) for part, wanted in stated)
    return OWN.get(str(config.get("model_type")), ANY_FAMILY) if known else ANY_FAMILY


def refuse_gguf_file(name: str, path: Path) -> None:
    """ModelUnavailable if the checkpoint is one file of llama.cpp and no folder."""
    if path.suffix.lower() == ".gguf":
        raise ModelUnavailable(
            f"{name}: {shown(path)} is a GGUF file, which StageScope does not read: use the folder "
            "or repository with safetensors that it was made from."
        )


def refuse_without_weights(name: str, folder: Path) -> None:
    """ModelUnavailable if a folder without weights holds one of the other forms."""
    base = checkpoint_files.read_if_there(folder / _LORA, name).get("base_model_name_or_path")
    refuse_listed(name, shown(folder), {path.name for path in folder.iterdir()}, base)


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
    fields = ("quantization_config", "compression_config")
    packed = next((part[key] for part in parts for key in fields if part.get(key)), None)
    if packed is None:
        return
    method = packed.get("quant_method") if isinstance(packed, dict) else None
    how = f"quantized ({quoted(method)})" if method else "quantized"
    raise ModelUnavailable(
        f"{name}: {where} says that its weights are stored {how}, which is not supported: use the "
        "checkpoint that was not quantized, on CUDA with quantization in models.toml."
    )
