"""The checkpoint's own processor: what turns pictures and a prompt into a model's inputs.

No network is used, and no code from the checkpoint.  Pictures always go through the Pillow image
processor, so that pixels do not depend on whether torchvision is installed.  AutoProcessor would
refuse most of these folders without torchvision, because their processors take a video processor
too; here they get None for it.
"""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from transformers import (
    AutoTokenizer,
    AutoVideoProcessor,
    PreTrainedTokenizerFast,
    ProcessorMixin,
)
from transformers.models.auto.image_processing_auto import get_image_processor_class_from_name
from transformers.models.auto.processing_auto import (
    PROCESSOR_MAPPING_NAMES,
    processor_class_from_name,
)
from transformers.models.smolvlm import processing_smolvlm
from transformers.video_utils import VideoMetadata

from engine.errors import ModelUnavailable
from engine.models import checkpoint_files, loading, processors
from engine.quoting import cut, first_line
from engine.types import Image, ModelInfo

# Where a checkpoint names its processor's class, in the order in which transformers looks.
_NAMED_IN = ("processor_config.json", "preprocessor_config.json", "tokenizer_config.json")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")
_LOCAL = {"local_files_only": True, "trust_remote_code": False}
_NOT_FOR_PICTURES = ("video_processor", "feature_extractor")
_ABOUT_PARTS = ("image_processor", "video_processor", "feature_extractor", "tokenizer")


@cache
def can_video() -> bool:
    """Whether torchvision can be imported; a build for another torch is installed but fails."""
    try:
        importlib.import_module("torchvision.transforms.v2")
    except Exception:  # noqa: BLE001 - RuntimeError if its operators do not fit this torch
        return False
    return True


def load(info: ModelInfo, folder: Path) -> Any:
    """The folder's processor, or ModelUnavailable; its video_processor is None without torchvision.

    `processor(text=[...], images=[...], return_tensors="pt")` returns the model's inputs.
    """
    loading.refuse_absent(info, folder, processors.FILES)
    loading.refuse_absent(info, folder, _TOKENIZERS)
    kind = _class(info, folder)
    parts = [_part(name, kind, info, folder) for name in kind.get_attributes()]
    stored = checkpoint_files.read_if_there(folder / processors.FILES[0], info.name)
    options = {key: value for key, value in stored.items() if key not in _ABOUT_PARTS}
    try:
        if kind is processing_smolvlm.SmolVLMProcessor and not processing_smolvlm.num2words:
            processing_smolvlm.num2words = str  # its class insists, but only clips' prompts need it
        if None in parts:
            kind = type(kind.__name__, (_ForPictures, kind), {})
        return kind.from_args_and_dict(parts, options)
    except Exception as error:
        raise ModelUnavailable(
            f"{info.name}: its processor {kind.__name__} in {folder} cannot be built "
            f"({first_line(error)}): copy processor and tokenizer files from one checkpoint."
        ) from error


def inputs(processor: Any, prompt: str, images: Sequence[Image]) -> dict[str, Any]:
    """All that generate() takes for pictures and a prompt, which the chat template has made."""
    # Not every class takes arrays: Idefics asks for pictures of Pillow.  One list per prompt:
    # LLaVA-OneVision takes pictures in a flat list as those of several prompts.
    return _inputs(processor, prompt, images=[[PIL.Image.fromarray(one) for one in images]])


def clip_inputs(processor: Any, prompt: str, frames: Sequence[Image], fps: float) -> dict[str, Any]:
    """As `inputs`, for one clip, if the processor has a video_processor; every frame is used."""
    height, width = frames[0].shape[:2]
    shown = VideoMetadata(
        total_num_frames=len(frames),
        fps=fps,  # Qwen3-VL writes the time of each frame into the prompt
        frames_indices=list(range(len(frames))),
        height=height,
        width=width,
    )
    clip = {"videos": [np.stack(frames)], "video_metadata": [shown], "do_sample_frames": False}
    return _inputs(processor, prompt, **clip)


def _inputs(processor: Any, prompt: str, **visual: Any) -> dict[str, Any]:
    """As apply_chat_template(tokenize=True): no second BOS if the template has written one."""
    bos = processor.tokenizer.bos_token
    options = {"add_special_tokens": False} if bos and prompt.startswith(bos) else {}
    with warnings.catch_warnings():
        # PaliGemma's class converts a tensor in a way that numpy has deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        found = dict(processor(text=[prompt], return_tensors="pt", **visual, **options))
    found.pop("labels", None)  # PaliGemma's, for training
    return found


class _ForPictures(ProcessorMixin):
    """Put before a processor's class, it accepts None for the parts that pictures do not need."""

    def check_argument_for_proper_class(self, argument_name: str, argument: Any) -> Any:
        if argument is None and argument_name in _NOT_FOR_PICTURES:
            return type(None)
        return super().check_argument_for_proper_class(argument_name, argument)


def _class(info: ModelInfo, folder: Path) -> Any:
    """The processor's class, named by the folder or found by its model_type."""
    files = [checkpoint_files.read_if_there(folder / file, info.name) for file in _NAMED_IN]
    name = next((one["processor_class"] for one in files if one.get("processor_class")), None)
    if name is None:
        if any("AutoProcessor" in (one.get("auto_map") or {}) for one in files):
            raise ModelUnavailable(
                f"{info.name}: its processor is code in {folder}, and a checkpoint's code is never "
                "run: choose a checkpoint in transformers' own form (its name often ends in -hf)."
            )
        stated = checkpoint_files.read_json(folder / "config.json", info.name)
        name = PROCESSOR_MAPPING_NAMES.get(stated.get("model_type"))
    if name is None:
        raise ModelUnavailable(
            f"{info.name} names no processor_class in {folder}, and transformers has none for its "
            "model_type: choose a checkpoint in transformers' own form."
        )
    name = str(name)
    try:
        kind = processor_class_from_name(name)
        without = getattr(kind, "is_dummy", False)
    except ImportError:  # older transformers: the class's file imports torchvision itself
        kind, without = None, not can_video()
    if without:
        raise _needs_torchvision(info, f"processor {name}")
    if not (inspect.isclass(kind) and issubclass(kind, ProcessorMixin)):
        raise ModelUnavailable(
            f"{info.name}: transformers has no processor {cut(name)}, which {folder} names: "
            "choose a checkpoint in transformers' own form, or correct processor_class."
        )
    return kind


def _part(name: str, kind: Any, info: ModelInfo, folder: Path) -> Any:
    """One argument of the processor; None for what pictures do not need."""
    if name == "image_processor":
        _refuse_torchvision_only(info, folder)
        return processors.load(info, folder)
    if name == "feature_extractor" or (name == "video_processor" and not _takes_videos(kind)):
        return None
    # the question encoder's tokenizer has a folder of its own, as in InstructBLIP
    where = name if name.endswith("_tokenizer") else ""
    checkpoint_files.check_settings(folder / where, info.name)
    # Pixtral's checkpoints name LLaMA's tokenizer, which would split words in another way.
    source = PreTrainedTokenizerFast if "PixtralProcessor" in kind.__name__ else AutoTokenizer
    if name == "video_processor":
        source = AutoVideoProcessor
    try:
        return source.from_pretrained(folder, subfolder=where, **_LOCAL)
    except Exception as error:
        raise loading.unreadable(info, folder, name.replace("_", " "), error) from error


def _takes_videos(kind: Any) -> bool:
    without_words = processing_smolvlm.num2words in (None, str)
    return can_video() and not (kind is processing_smolvlm.SmolVLMProcessor and without_words)


def _refuse_torchvision_only(info: ModelInfo, folder: Path) -> None:
    """ModelUnavailable for an image processor that has no Pillow form, without torchvision."""
    named = (processors.fields(folder, info.name) or {}).get("image_processor_type")
    if not named or can_video():
        return
    kind = get_image_processor_class_from_name(str(named).removesuffix("Fast"))
    if getattr(kind, "is_dummy", False):
        raise _needs_torchvision(info, f"image processor {named}")


def _needs_torchvision(info: ModelInfo, what: str) -> ModelUnavailable:
    return ModelUnavailable(
        f"{info.name}: its {what} needs torchvision, which cannot be imported here: install the "
        "torchvision that belongs to your torch, or choose another model."
    )
