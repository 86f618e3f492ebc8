"""The families of models, what is known of each kind of model that transformers has, and whether a
checkpoint can run.

Listing models imports neither torch nor transformers: the registry imports an adapter at its first
use, and transformers' own tables are read from the text of its module.

A folder's files decide.  The families with an adapter of their own need one exact form of
config.json and tokenizer.  The family "transformers" needs a model_type that transformers knows, a
processor, a tokenizer and a chat template.  Whatever cannot run is a ModelUnavailable that says
what to do.

8-bit and 4-bit loading is that of bitsandbytes through transformers, only on CUDA.  Only the linear
layers of the language model are quantized: the vision tower, the projector, the adaptor and the
head stay in the entry's dtype.
"""

import ast
import importlib.util
import logging
from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from engine import settings
from engine.decoding import generation_rules
from engine.errors import ModelUnavailable
from engine.models import checkpoint_files, templates
from engine.quoting import quoted
from engine.types import MediaKind, ModelInfo, Tower

ANY_FAMILY = "transformers"
SERVED = "served"  # a server answers; nothing is known of its model here
CLIP_L_336 = Tower(hidden=1024, layers=24, heads=16, image_size=336, patch_size=14)
CLIP_L_224 = Tower(hidden=1024, layers=24, heads=16, image_size=224, patch_size=14)
# The usual number of pictures of a sample.
PICTURES: dict[MediaKind, int] = {"events": 5, "video": 8, "image": 1}
Rows = Callable[[Tower, int, Mapping[str, Any]], int]
# The parts of config.json, and the only model_type of each that the own families support.
_PARTS = {"vision_config": "clip_vision_model", "text_config": "llama"}
_ORIGINAL = ("LlavaLlamaForCausalLM", "LlavaLlama", "VideoLlavaLlamaForCausalLM")
# Of the tokenizer that the built-in prompts were published with.
_TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
_EXAMPLE = "HuggingFaceTB/SmolVLM2-500M-Video-Instruct"
# model_types of code in a repository, and where the same weights are for transformers itself.
_CONVERTED = {
    "internvl_chat": "OpenGVLab/InternVL3-1B-hf",
    "llava_qwen": "llava-hf/llava-onevision-qwen2-0.5b-ov-hf",
    "multi_modality": "deepseek-community/Janus-Pro-1B",
}
_INTERNVL = {"OpenGVLab/InternVL3-": "-hf", "OpenGVLab/InternVL3_5-": "-HF"}
LORA = "adapter_config.json"
_NEEDED = {  # of a checkpoint of transformers: the files that may hold each part
    "image processor": ("preprocessor_config.json", "processor_config.json"),
    "tokenizer": ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model"),
    "chat template": (templates.FILE, *templates.JSON_FILES),
}
QUANTIZERS = ("bitsandbytes", "accelerate")
QUANTIZATIONS = ("8bit", "4bit")
# Modules that are not quantized, at any depth, by their names in the families.
UNTOUCHED = (
    *("lm_head", "vision_tower", "video_tower", "image_tower", "multi_modal_projector"),
    *("visual_tower", "visual_projector", "feature_adaptor"),  # EventGPT
    *("visual", "vision_model", "vision_encoder", "embed_vision", "connector", "projector"),
    *("vision_projection", "vision_resampler", "qformer", "language_projection"),
)


class Family(NamedTuple):
    """A family's adapter, its kind of media, and how it writes its config.json.

    `tower`: the default tower.  `rows` gives the number of visual rows from the tower, the number
    of pictures and config.json.  `use`: the repository or folder whose form its adapter reads.  The
    family "transformers" has any model_type that transformers knows; only the checkpoint's
    processor knows the number of rows.  `lean`: batches and a compiled step are proved to give its
    own answers.
    """

    adapter: str
    kind: MediaKind
    model_type: str = ""
    tower: Tower | None = None
    rows: Rows | None = None
    use: str = ""
    lean: bool = True


FAMILIES: dict[str, Family] = {
    "eventgpt": Family(
        "engine.models.eventgpt:EventGPTAdapter",
        "events",
        "EventChat_llama",
        CLIP_L_336,
        # one row per picture, then one per patch and one for CLS, averaged over pictures
        lambda tower, images, _: images + tower.patches + 1,
        "the EventGPT-7b folder of its authors",
    ),
    "video_llava": Family(
        "engine.models.llava:VideoLlavaAdapter",
        "video",
        "video_llava",
        CLIP_L_224,
        lambda tower, images, _: images * (tower.patches + 1),
        "LanguageBind/Video-LLaVA-7B-hf",
    ),
    "llava": Family(
        "engine.models.llava:LlavaAdapter",
        "image",
        "llava",
        CLIP_L_336,
        lambda tower, images, config: (
            images * (tower.patches + (config.get("vision_feature_select_strategy") == "full"))
        ),
        "llava-hf/llava-1.5-7b-hf",
    ),
    ANY_FAMILY: Family(
        "engine.models.transformers_adapter:TransformersAdapter", "image", lean=False
    ),
    SERVED: Family("", "image", lean=False),
}
# The families with an adapter of their own, by model_type.
OWN = {known.model_type: family for family, known in FAMILIES.items() if known.model_type}

# Models that generate() cannot give what an encoder made (mm_encoder_outputs) instead of pixels:
# forward() does not take it, or generate() cannot be called without pixels.  Hooked mode only.
HOOKED_ONLY = {
    *("blip", "blip-2", "evolla", "florence2", "git", "idefics", "instructblip"),
    *("instructblipvideo", "kosmos-2", "kosmos-2.5", "mistral4", "mllama", "pi0", "pix2struct"),
    *("pp_formulanet", "t5gemma2", "udop", "vision-encoder-decoder"),
}
# Their processors take several pictures without an error, and their prompts have room for one.
ONE_PICTURE = {"blip", "blip-2", "git", "instructblip"}


@cache
def _model_types(task: str) -> frozenset[str]:
    """The model_types in one of transformers' tables of auto classes."""
    package = importlib.util.find_spec("transformers")
    assert package is not None and package.origin is not None
    path = Path(package.origin).parent / "models" / "auto" / "modeling_auto.py"
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        named = isinstance(node, ast.Assign) and ast.unparse(node.targets[0])
        if named == f"MODEL_FOR_{task}_MAPPING_NAMES":
            assert isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            return frozenset(dict(ast.literal_eval(node.value.args[0])))  # OrderedDict([...])
    raise LookupError(f"{path} has no models for {task}")


def known() -> frozenset[str]:
    return _model_types("IMAGE_TEXT_TO_TEXT")


def reads_text_only(model_type: str) -> bool:
    """Whether transformers has it as a language model without pictures."""
    reads_pictures = {"phi4_multimodal"}  # but not through the auto class
    return model_type in _model_types("CAUSAL_LM") - known() - reads_pictures


def refuse(name: str, family: str, checkpoint: str, folder: Path) -> None:
    """ModelUnavailable unless the family's adapter can read the folder."""
    path, read = folder / "config.json", checkpoint_files.read_if_there
    config = checkpoint_files.read_json(path, name)
    if family != "eventgpt" and config.get("model_type") not in _CONVERTED:
        # LLaVA's and Video-LLaVA's first releases, whose folders transformers cannot read.
        of_video = config.get("mm_video_tower") or config.get("mm_image_tower")
        named = any(one in _ORIGINAL for one in config.get("architectures") or ())
        if named or of_video or config.get("mm_vision_tower"):
            video = of_video or "languagebind" in str(path).lower()
            raise ModelUnavailable(
                f"{name}: {path} describes a checkpoint in its authors' own format, which "
                "transformers cannot read: use "
                f"{FAMILIES['video_llava' if video else 'llava'].use} instead."
            )
    if family == ANY_FAMILY:
        refuse_type(name, checkpoint, str(path), config)
        processor, nested = (read(folder / file, name) for file in _NEEDED["image processor"])
        there = {
            "image processor": processor or nested.get("image_processor"),
            "tokenizer": any((folder / file).is_file() for file in _NEEDED["tokenizer"]),
            "chat template": templates.find(folder, name),
        }
        if lacking := next((what for what, part in there.items() if not part), None):
            base = ", or use an instruction-tuned version if this is a base model"
            raise ModelUnavailable(
                f"{name}: its {lacking} is missing ({folder} has it in none of "
                f"{', '.join(_NEEDED[lacking])}): copy it from the checkpoint's repository"
                f"{base if lacking == 'chat template' else ''}."
            )
    else:
        _refuse_other(name, family, folder, config)
    refuse_generation(name, read(folder / "generation_config.json", name))


def _refuse_other(name: str, family: str, folder: Path, config: Mapping[str, Any]) -> None:
    """ModelUnavailable for a config.json or tokenizer that the family's adapter cannot read."""
    path = folder / "config.json"
    model_type, wanted = config.get("model_type"), FAMILIES[family].model_type
    other = f', or write family = "{ANY_FAMILY}" in models.toml' if model_type in known() else ""
    if model_type != wanted:
        meant = "video_llava" if "video" in str(model_type) else family
        fix = f"use {FAMILIES[meant].use} instead{other}"
        raise ModelUnavailable(
            f"{name} is entered as {family}, but {path} says its model_type is "
            f"{quoted(model_type)} (not {wanted!r}): "
            f"{'correct its entry in models.toml' if model_type in OWN else fix}."
        )
    for part, wanted in _PARTS.items():
        if (stated := (config.get(part) or {}).get("model_type")) not in (None, wanted):
            raise ModelUnavailable(
                f"{name}: the model_type of {part} in {path} is {quoted(stated)}, and only "
                f"{wanted!r} is supported: use {FAMILIES[family].use} instead{other}."
            )
    if family == "eventgpt" or templates.find(folder, name) is not None:
        return
    # Without a template the built-in prompt is used, which is made for LLaMA's tokenizer.
    path = folder / "tokenizer_config.json"
    stated = checkpoint_files.read_if_there(path, name)
    for key, wanted in _TOKENS.items():
        token = stated.get(key)
        text = token.get("content") if isinstance(token, dict) else token
        if text not in (None, wanted):
            raise ModelUnavailable(
                f"{name}: {path}: {key} is {quoted(text)}, so its tokenizer is not "
                "LLaMA's, and there is no chat template for the prompt: add chat_template.jinja "
                f"or use {FAMILIES[family].use}."
            )


def refuse_generation(name: str, settings: Mapping[str, Any]) -> None:
    """ModelUnavailable for a setting that changes greedy answers and is not supported."""
    if (key := generation_rules.refused(settings)) is not None:
        raise ModelUnavailable(
            f"{name}: its generation_config.json sets {key} to {quoted(settings[key])}, which "
            "StageScope does not support: remove it there to run the model without it."
        )


def refuse_type(name: str, checkpoint: str, where: str, config: Mapping[str, Any]) -> None:
    """ModelUnavailable unless AutoModelForImageTextToText knows the model_type in `config`."""
    model_type = str(config.get("model_type"))
    if model_type in known():
        return
    if model_type in OWN:
        why, fix = "", f'write family = "{OWN[model_type]}" in models.toml'
    elif config.get("auto_map") or model_type in _CONVERTED:
        any_form = f"a checkpoint in transformers' own form, such as {_EXAMPLE}"
        instead = _CONVERTED.get(model_type, any_form)
        for start, end in _INTERNVL.items():
            if model_type == "internvl_chat" and checkpoint.startswith(start):
                instead = f"{checkpoint}{end}"
        why = ", whose code is in its repository, and StageScope runs no code from repositories"
        fix = f"use {instead} instead"
    elif reads_text_only(model_type):
        why = ", a language model that answers text only"
        fix = f"use a checkpoint that also reads pictures, such as {_EXAMPLE}"
    else:
        why = ", which is no image-text-to-text model of this version of transformers"
        fix = f"use another checkpoint, such as {_EXAMPLE}, or a newer transformers"
    stated = quoted(config.get("model_type"))
    raise ModelUnavailable(f"{name}: {where} says its model_type is {stated}{why}: {fix}.")


def family_of(config: Mapping[str, Any]) -> str:
    """The family of a config.json that models.toml does not name: the one whose adapter reads
    exactly this form, else transformers."""
    parts = ((config.get(part) or {}).get("model_type") in (None, wanted)
             for part, wanted in _PARTS.items())  # fmt: skip
    return OWN.get(str(config.get("model_type")), ANY_FAMILY) if all(parts) else ANY_FAMILY


def refuse_listed(name: str, where: str, files: Collection[str], base: object = None) -> None:
    """ModelUnavailable if files without a checkpoint's weights are an adapter or GGUF."""
    if LORA in files:
        of = f" of {quoted(base)}" if base else ""
        raise ModelUnavailable(
            f"{name}: {where} holds only a LoRA adapter{of}, not a whole model: merge it into its "
            "base model (peft's merge_and_unload) and use the folder that this writes."
        )
    if any(file.lower().endswith(".gguf") for file in files):
        what = "is a GGUF file" if where.lower().endswith(".gguf") else "holds only GGUF files"
        raise ModelUnavailable(
            f"{name}: {where} {what}, which StageScope does not read: use the folder or repository "
            "with safetensors that it was made from."
        )


def refuse_packed(name: str, where: object, config: Mapping[str, Any]) -> None:
    """ModelUnavailable if the weights are stored quantized, by GPTQ, AWQ or another method."""
    parts = [config, *(part for part in config.values() if isinstance(part, dict))]
    fields = ("quantization_config", "compression_config")
    packed = next((part[key] for part in parts for key in fields if part.get(key)), None)
    if packed is not None:
        method = packed.get("quant_method") if isinstance(packed, dict) else packed
        raise ModelUnavailable(
            f"{name}: {where} says that its weights are stored quantized ({quoted(method)}), which "
            "is not supported: use the checkpoint that was not quantized, on CUDA with "
            "quantization in models.toml."
        )


def quantizations() -> tuple[str, ...]:
    """The quantizations that this machine supports; () without CUDA."""
    return () if cannot_quantize() else QUANTIZATIONS


def cannot_quantize() -> str | None:
    """Why this machine cannot quantize, or None.  Imports torch only if the packages are there."""
    absent = [name for name in QUANTIZERS if find_spec(name) is None]
    if absent:
        return f"{' and '.join(absent)} not installed: `pip install {' '.join(QUANTIZERS)}`"
    wanted = settings.load().device
    import torch

    if not torch.cuda.is_available() or not (wanted == "auto" or wanted.startswith("cuda")):
        return f"it needs CUDA, and the device is {wanted}"
    return None


def refuse_quantization(name: str, wanted: str | None) -> None:
    """ModelUnavailable if this entry asks for a quantization that does not work here."""
    if wanted is not None and (why := cannot_quantize()):
        raise ModelUnavailable(
            f"{name} asks for {wanted} weights, which do not work here ({why}); or remove "
            "quantization from its entry in models.toml."
        )


def quantization_options(info: ModelInfo) -> dict[str, Any]:
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
