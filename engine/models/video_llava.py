"""Video-LLaVA: eight frames, with one row per patch and one for CLS per frame.

Boundary: the family's classes, prompt and encoding; the rest is in hf_llava.py.  transformers'
video processor needs torchvision; the image processor gives the same pixels frame by frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import VideoLlavaForConditionalGeneration

from engine.models.hf_llava import PlaceholderAdapter
from engine.types import Features, Prepared


class VideoLlavaAdapter(PlaceholderAdapter):
    kind = "video"
    prompt = "USER: <video>\n{question} ASSISTANT:"
    placeholder = "<video>"
    markers = ("<image>", "<video>")
    model_class = VideoLlavaForConditionalGeneration

    @property
    def placeholder_id(self) -> int:
        return int(self.model.config.video_token_id)

    @property
    def rows_per_image(self) -> int:
        return self.patches + 1

    def encode(self, prepared: Prepared) -> Features:
        return self.encode_batch([prepared])[0]

    def encode_batch(self, prepared: Sequence[Prepared]) -> list[Features]:
        if len({len(one.pixels) for one in prepared}) > 1:  # lengths must be equal
            return super().encode_batch(prepared)
        pixels = torch.stack([one.pixels for one in prepared])
        rows = self.model.model.get_video_features(pixels).pooler_output
        return [Features({"rows": one.flatten(0, 1)}) for one in rows.chunk(len(prepared))]

    def generate(self, prepared: Prepared, **options: Any) -> torch.Tensor:
        out: torch.Tensor = self.model.generate(
            input_ids=prepared.input_ids,
            attention_mask=torch.ones_like(prepared.input_ids),
            pixel_values_videos=prepared.pixels[None],
            **options,
        )
        return out

    def vision_modules(self) -> list[torch.nn.Module]:
        return [self.model.model.video_tower, self.model.model.multi_modal_projector]
