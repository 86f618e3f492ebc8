"""The families of models: the adapter of each, what it is shown, and its form of config.json.

Boundary: a table; adapters are named here and imported by the registry at their first use.  A new
family is one line in FAMILIES.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.models import shape
from engine.models.shape import AnyForm, Form
from engine.models.supported_transformers import FAMILY as ANY_FAMILY
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
    form: Form | AnyForm
    lean: bool = True


FAMILIES: dict[str, Family] = {
    "eventgpt": Family(
        "engine.models.eventgpt:EventGPTAdapter",
        "events",
        "EventChat_llama",
        Form("", shape.CLIP_L_336, 5, shape.pooled),
    ),
    "video_llava": Family(
        "engine.models.video_llava:VideoLlavaAdapter",
        "video",
        "video_llava",
        Form("text_config", shape.CLIP_L_224, 8, shape.all_rows),
    ),
    "llava": Family(
        "engine.models.llava:LlavaAdapter",
        "image",
        "llava",
        Form("text_config", shape.CLIP_L_336, 1, shape.patch_rows),
    ),
    ANY_FAMILY: Family(
        "engine.models.transformers_adapter:TransformersAdapter", "image", "", AnyForm(), False
    ),
}
# The families with an adapter of their own, by model_type.
OWN = {known.model_type: family for family, known in FAMILIES.items() if known.model_type}
