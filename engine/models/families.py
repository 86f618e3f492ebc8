"""The families of models, and what is known of each kind of model that transformers has.  Listing
models imports neither torch nor transformers: the registry imports an adapter at its first use, and
transformers' own tables are read from the text of its module."""

import ast
import importlib.util
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from engine.types import MediaKind, Tower

ANY_FAMILY = "transformers"
SERVED = "served"  # a server answers; nothing is known of its model here
CLIP_L_336 = Tower(hidden=1024, layers=24, heads=16, image_size=336, patch_size=14)
CLIP_L_224 = Tower(hidden=1024, layers=24, heads=16, image_size=224, patch_size=14)
# The usual number of pictures of a sample.
PICTURES: dict[MediaKind, int] = {"events": 5, "video": 8, "image": 1}
Rows = Callable[[Tower, int, Mapping[str, Any]], int]


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
    """Every model_type that AutoModelForImageTextToText can load."""
    return _model_types("IMAGE_TEXT_TO_TEXT")


def reads_text_only(model_type: str) -> bool:
    """Whether transformers has it as a language model without pictures."""
    reads_pictures = {"phi4_multimodal"}  # but not through the auto class
    return model_type in _model_types("CAUSAL_LM") - known() - reads_pictures
