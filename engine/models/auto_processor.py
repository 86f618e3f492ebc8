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
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image as Pillow
from transformers import (
    AutoImageProcessor,
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
from engine.models import checkpoint_files, loading
from engine.quoting import cut
from engine.types import Image, ModelInfo

# Where a checkpoint names its processor's class, in the order in which transformers looks.
_NAMED_IN = ("processor_config.json", "preprocessor_config.json", "tokenizer_config.json")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")
LOCAL = {"local_files_only": True, "trust_remote_code": False}
_NOT_FOR_PICTURES = ("video_processor", "feature_extractor")
_ABOUT_PARTS = ("image_processor", "video_processor", "feature_extractor", "tokenizer")
FILES = ("processor_config.json", "preprocessor_config.json")
_TRIED = ((60, 80), (80, 60))  # height and width of the test pictures


@cache
def can_video() -> bool:
    """Whether torchvision can be imported; a build for another torch is installed but fails."""
    try:
        importlib.import_module("torchvision.transforms.v2")
    except Exception:  # noqa: BLE001 - RuntimeError if its operators do not fit this torch
        return False
    return True


def load(info: ModelInfo, folder: Path) -> Any:
    """The folder's processor; its video_processor is None without torchvision."""
    loading.refuse_absent(info, folder, FILES)
    loading.refuse_absent(info, folder, _TOKENIZERS)
    form = "choose a checkpoint in transformers' own form (its name often ends in -hf)"
    files = [checkpoint_files.read_if_there(folder / file, info.name) for file in _NAMED_IN]
    name = next((one["processor_class"] for one in files if one.get("processor_class")), None)
    if name is None and any("AutoProcessor" in (one.get("auto_map") or {}) for one in files):
        raise ModelUnavailable(
            f"{info.name}: its processor is code in {folder}, and a checkpoint's code is never "
            f"run: {form}."
        )
    config = checkpoint_files.read_json(folder / "config.json", info.name)
    name = str(name or PROCESSOR_MAPPING_NAMES.get(config.get("model_type")))
    with loading.reading(info, folder, f"processor {name}"):
        kind = processor_class_from_name(name)
        _refuse_dummy(kind)
    known = inspect.isclass(kind) and issubclass(kind, ProcessorMixin)
    if not known:
        raise ModelUnavailable(
            f"{info.name}: transformers has no processor {cut(name)}, which {folder} needs: "
            f"{form}, or correct processor_class."
        )
    parts = [_part(name, kind, info, folder) for name in kind.get_attributes()]
    stored = files[0]  # processor_config.json
    options = {key: value for key, value in stored.items() if key not in _ABOUT_PARTS}
    with loading.reading(info, folder, f"processor {kind.__name__}"):
        if kind is processing_smolvlm.SmolVLMProcessor and not processing_smolvlm.num2words:
            processing_smolvlm.num2words = str  # its class insists, but only clips' prompts need it
        if None in parts:
            kind = type(kind.__name__, (_ForPictures, kind), {})
        return kind.from_args_and_dict(parts, options)


def inputs(
    processor: Any, prompt: str, images: Sequence[Image], rate: float | None = None
) -> dict[str, Any]:
    """All that generate() takes for a prompt, which the chat template has made, and pictures, or
    one clip of `rate` frames per second, of which every frame is used."""
    options: dict[str, Any]
    if rate:
        height, width = images[0].shape[:2]
        shown = VideoMetadata(
            total_num_frames=len(images),
            fps=rate,  # Qwen3-VL writes the time of each frame into the prompt
            frames_indices=list(range(len(images))),
            height=height,
            width=width,
        )
        clip = [np.stack(images)]
        options = {"videos": clip, "video_metadata": [shown], "do_sample_frames": False}
    else:
        # Not every class takes arrays: Idefics asks for pictures of Pillow.  One list per prompt:
        # LLaVA-OneVision takes pictures in a flat list as those of several prompts.
        options = {"images": [[Pillow.fromarray(one) for one in images]]}
    bos = processor.tokenizer.bos_token
    if bos and prompt.startswith(bos):  # no second one, as in apply_chat_template(tokenize=True)
        options["add_special_tokens"] = False
    with warnings.catch_warnings():
        # PaliGemma's class converts a tensor in a way that numpy has deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        found = dict(processor(text=[prompt], return_tensors="pt", **options))
    found.pop("labels", None)  # PaliGemma's, for training
    return found


class _ForPictures(ProcessorMixin):
    """Put before a processor's class, it accepts None for the parts that pictures do not need."""

    def check_argument_for_proper_class(self, argument_name: str, argument: Any) -> Any:
        if argument is None and argument_name in _NOT_FOR_PICTURES:
            return type(None)
        return super().check_argument_for_proper_class(argument_name, argument)


def _part(name: str, kind: Any, info: ModelInfo, folder: Path) -> Any:
    """One argument of the processor; None for what pictures do not need."""
    if name == "image_processor":
        return load_image(info, folder)
    without_words = processing_smolvlm.num2words in (None, str)
    no_videos = not can_video() or (kind is processing_smolvlm.SmolVLMProcessor and without_words)
    if name == "feature_extractor" or (name == "video_processor" and no_videos):
        return None
    # the question encoder's tokenizer has a folder of its own, as in InstructBLIP
    where = name if name.endswith("_tokenizer") else ""
    checkpoint_files.check_settings(folder / where, info.name)
    # Pixtral's checkpoints name LLaMA's tokenizer, which would split words in another way.
    source = PreTrainedTokenizerFast if "PixtralProcessor" in kind.__name__ else AutoTokenizer
    if name == "video_processor":
        source = AutoVideoProcessor
    with loading.reading(info, folder, name.replace("_", " ")):
        return source.from_pretrained(folder, subfolder=where, **LOCAL)


def _refuse_dummy(kind: Any) -> None:
    """ImportError for a class that stands in for one whose library is absent."""
    if getattr(kind, "is_dummy", False):
        raise ImportError("it needs torchvision, which cannot be imported beside this torch")


def fields(folder: Path, name: str) -> Mapping[str, Any] | None:
    """The image processor's settings, the nested form first as in transformers; None if absent."""
    nested = checkpoint_files.read_if_there(folder / FILES[0], name).get("image_processor")
    return nested or checkpoint_files.read_if_there(folder / FILES[1], name) or None


def load_image(info: ModelInfo, folder: Path, unnamed: Any = None) -> Any:
    """The image processor that the folder names, with its Pillow backend, or ModelUnavailable.
    `unnamed` is the class for settings without a class name; with None transformers chooses it by
    the model_type in config.json."""
    loading.refuse_absent(info, folder, FILES)
    stated = fields(folder, info.name) or {}
    named = stated.get("image_processor_type") or stated.get("feature_extractor_type")
    with loading.reading(info, folder, f"image processor {named or ''}"):
        if named and not can_video():  # some have no Pillow form
            _refuse_dummy(get_image_processor_class_from_name(str(named).removesuffix("Fast")))
        if named is None and unnamed is not None:
            return unnamed.from_pretrained(folder, local_files_only=True)
        return AutoImageProcessor.from_pretrained(folder, backend="pil", **LOCAL)


def values(processor: Any, images: Sequence[Image]) -> torch.Tensor:
    """T images [H, W, 3] -> the processor's own pixels, [T, 3, S, S] float32."""
    out = processor(images=list(images), return_tensors="pt", input_data_format="channels_last")
    # transformers is about to drop the second name, which is only Video-LLaVA's
    pixels: torch.Tensor = out["pixel_values" if "pixel_values" in out else "pixel_values_images"]
    return pixels


def refuse_other_sizes(info: ModelInfo, folder: Path, processor: Any, size: int) -> None:
    """ModelUnavailable unless the pixels of pictures of any shape are [T, 3, size, size]."""
    for height, width in _TRIED:
        picture = np.full((height, width, 3), 127, np.uint8)
        with loading.reading(info, folder, "image processor"), np.errstate(all="raise"):
            found = tuple(values(processor, [picture]).shape)
        what = f"its image processor {type(processor).__name__} makes pixels of {found}"
        wanted = (1, 3, size, size)
        loading.require(info, found == wanted, f"{what}, but its vision tower takes {wanted}")
