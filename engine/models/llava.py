"""LLaVA-1.5: one image or several, one row per patch.

Boundary: the family's classes, prompt and encoding; the rest is in hf_llava.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import torch
from transformers import LlavaForConditionalGeneration

from engine.models.hf_llava import PlaceholderAdapter
from engine.types import Features, Prepared


class LlavaAdapter(PlaceholderAdapter):
    kind = "image"
    prompt = "USER: <image>\n{question} ASSISTANT:"
    placeholder = "<image>"
    markers = ("<image>",)
    one_each = True
    model_class = LlavaForConditionalGeneration

    @property
    def placeholder_id(self) -> int:
        return int(self.model.config.image_token_id)

    @property
    def rows_per_image(self) -> int:
        keeps_cls = self.model.config.vision_feature_select_strategy == "full"
        return self.patches + int(keeps_cls)

    def encode(self, prepared: Prepared) -> Features:
        return self.encode_batch([prepared])[0]

    def encode_batch(self, prepared: Sequence[Prepared]) -> list[Features]:
        pixels = torch.cat([one.pixels for one in prepared])
        rows = iter(self.model.model.get_image_features(pixels).pooler_output)
        return [
            Features({"rows": torch.cat(list(islice(rows, len(one.pixels))))}) for one in prepared
        ]

    def generate(self, prepared: Prepared, **options: Any) -> torch.Tensor:
        out: torch.Tensor = self.model.generate(
            input_ids=prepared.input_ids,
            attention_mask=torch.ones_like(prepared.input_ids),
            pixel_values=prepared.pixels,
            **options,
        )
        return out

    def vision_modules(self) -> list[torch.nn.Module]:
        return [self.model.model.vision_tower, self.model.model.multi_modal_projector]
