"""The families of models: the adapter of each, what it is shown, and its form of config.json.

The registry imports an adapter at its first use.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.models import shape
from engine.models.shape import Form
from engine.models.supported import ANY_FAMILY
from engine.types import MediaKind


@dataclass(frozen=True)
class Family:
    """A family's adapter, its kind of media, its model_type, its form of config.json, and whether
    batches and a compiled step are proved to give its own answers (`lean`).

    The family "transformers" has any model_type that transformers knows, and no form of its own.
    """

    adapter: str
    kind: MediaKind
    model_type: str
    form: Form
    lean: bool = True


FAMILIES: dict[str, Family] = {
    "eventgpt": Family(
        "engine.models.eventgpt:EventGPTAdapter",
        "events",
        "EventChat_llama",
        Form(5, "", shape.CLIP_L_336, shape.pooled),
    ),
    "video_llava": Family(
        "engine.models.llava:VideoLlavaAdapter",
        "video",
        "video_llava",
        Form(8, "text_config", shape.CLIP_L_224, shape.all_rows),
    ),
    "llava": Family(
        "engine.models.llava:LlavaAdapter",
        "image",
        "llava",
        Form(1, "text_config", shape.CLIP_L_336, shape.patch_rows),
    ),
    ANY_FAMILY: Family(
        "engine.models.transformers_adapter:TransformersAdapter", "image", "", Form(), False
    ),
}
# The families with an adapter of their own, by model_type.
OWN = {known.model_type: family for family, known in FAMILIES.items() if known.model_type}
