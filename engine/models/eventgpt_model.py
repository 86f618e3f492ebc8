"""The EventGPT network: a LLaMA that reads rows which a CLIP vision tower makes from event images.

Parameter names are those of the released checkpoint.  For each event image the tower's last hidden
state [1 + P, vision hidden] (with CLS) goes through projector and adaptor; T images are then pooled
to T + (1 + P) rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    CLIPVisionConfig,
    CLIPVisionModel,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaModel,
)

EVENT_TOKEN_ID = -200  # represents all visual rows in the prompt; never reaches the embedding
# openai/clip-vit-large-patch14-336, the tower of the released checkpoint
CLIP_L_336: dict[str, Any] = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
    "projection_dim": 768,
}


class EventGPTConfig(LlamaConfig):
    """LLaMA's configuration, plus `vision_config` (absent in the release: CLIP-L/14 at 336)."""

    model_type = "EventChat_llama"
    vision_config: dict[str, Any] | None = None
    event_feature_adaptor: bool = True
    mm_use_im_patch_token: bool = True
    mm_use_im_start_end: bool = False

    def tower_config(self) -> CLIPVisionConfig:
        return CLIPVisionConfig(**(self.vision_config or CLIP_L_336))


class EventTower(nn.Module):
    """Holds the CLIP vision model under the name it has in the checkpoint."""

    def __init__(self, config: CLIPVisionConfig) -> None:
        super().__init__()
        self.visual_tower = CLIPVisionModel(config)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """pixels [T, 3, S, S] -> last hidden state [T, 1 + P, vision hidden]."""
        hidden: torch.Tensor = self.visual_tower(pixels).last_hidden_state
        return hidden


class EventGPTModel(LlamaModel):
    config_class = EventGPTConfig

    def __init__(self, config: EventGPTConfig) -> None:
        super().__init__(config)
        tower = config.tower_config()
        self.visual_tower = EventTower(tower)
        self.visual_projector = nn.Sequential(
            nn.Linear(tower.hidden_size, config.hidden_size),
            nn.GELU(),
            nn.Linear(config.hidden_size, config.hidden_size),
        )
        # the published code checks that event_feature_adaptor exists, not its value
        self.feature_adaptor = nn.Linear(config.hidden_size, config.hidden_size)
        self.post_init()


class EventGPT(LlamaForCausalLM):
    config_class = EventGPTConfig

    def __init__(self, config: EventGPTConfig) -> None:
        super().__init__(config)
        self.model = EventGPTModel(config)
        self.post_init()

    def visval_encode(self, event_tensor: torch.Tensor) -> torch.Tensor:
        """event_tensor [T, 3, S, S] -> [T, 1 + P, hidden]: tower and projector, no adaptor."""
        rows: torch.Tensor = self.model.visual_projector(self.model.visual_tower(event_tensor))
        return rows

    def encode_events(self, event_tensors: torch.Tensor) -> torch.Tensor:
        """event_tensors [T, 3, S, S] -> [T + 1 + P, hidden], the rows the decoder reads.

        First the mean over each image's tokens (T rows), then the mean over images (1 + P rows).
        """
        return self.encode_batch([event_tensors])[0]

    def encode_batch(self, event_tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """encode_events for several samples: tower to adaptor in one pass, pooling per sample."""
        tokens = self.model.feature_adaptor(self.visval_encode(torch.cat(list(event_tensors))))
        samples = tokens.split([len(one) for one in event_tensors])
        return [torch.cat([one.mean(dim=1), one.mean(dim=0)]) for one in samples]

    def embed_prompt(self, input_ids: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """input_ids [1, S] with one EVENT_TOKEN_ID, rows [V, hidden] -> [1, S - 1 + V, hidden]."""
        ids = input_ids[0]
        places = (ids == EVENT_TOKEN_ID).nonzero().flatten().tolist()
        if len(places) != 1:
            raise ValueError(f"the prompt holds {len(places)} event tokens; exactly one is needed")
        embed = self.get_input_embeddings()
        before, after = embed(ids[: places[0]]), embed(ids[places[0] + 1 :])
        return torch.cat([before, rows.to(before.dtype), after])[None]

    @torch.no_grad()
    def generate(
        self,
        input_ids: torch.Tensor | None = None,
        event_tensors: torch.Tensor | None = None,
        event_features: torch.Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """The published entry point.  Takes event_tensors [T, 3, S, S], or event_features
        [V, hidden] that are already projected, adapted and pooled.  Returns new token ids only,
        [1, N].
        """
        if event_tensors is None and event_features is None:
            return super().generate(input_ids, **kwargs)
        if event_features is None:
            event_features = self.encode_events(event_tensors)  # type: ignore[arg-type]
        embeds = self.embed_prompt(input_ids, event_features)  # type: ignore[arg-type]
        mask = torch.ones(embeds.shape[:2], dtype=torch.long, device=embeds.device)
        return super().generate(inputs_embeds=embeds, attention_mask=mask, **kwargs)


AutoConfig.register("EventChat_llama", EventGPTConfig, exist_ok=True)
AutoModelForCausalLM.register(EventGPTConfig, EventGPT, exist_ok=True)
