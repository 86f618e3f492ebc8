"""EventGPT: its network, a LLaMA that reads rows which a CLIP vision tower makes from event images,
and its adapter.

Parameter names are those of the released checkpoint.  For each event image the tower's last hidden
state [1 + P, vision hidden] (with CLS) goes through projector and adaptor; T images are then pooled
to T + (1 + P) rows.  As in the published code, the prompt is tokenised in two pieces around
<event>, joined by -200, with one BOS at the start.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    CLIPImageProcessorPil,
    CLIPVisionConfig,
    CLIPVisionModel,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaModel,
)

from engine.models import auto_processor
from engine.models.adapter import Adapter
from engine.models.checkpoint import ModelEntry
from engine.models.loading import info_of, load_tokenizer, load_weights, refuse_larger_tokenizer
from engine.types import Features, Prepared

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
SYSTEM = (
    "A chat between a curious human and an artificial intelligence assistant. "
    "The assistant gives helpful, detailed, and polite answers to the human's questions."
)
PUBLISHED_PROCESSOR = (
    "No preprocessor_config.json: the values of clip-vit-large-patch14-336 are used, at the "
    "tower's size."
)


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

    def encode_batch(self, event_tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """[T, 3, S, S] of each sample -> [T + 1 + P, hidden], the rows the decoder reads.  First
        the mean over each image's tokens (T rows), then the mean over images (1 + P rows)."""
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
            (event_features,) = self.encode_batch([event_tensors])  # type: ignore[list-item]
        embeds = self.embed_prompt(input_ids, event_features)  # type: ignore[arg-type]
        mask = torch.ones(embeds.shape[:2], dtype=torch.long, device=embeds.device)
        return super().generate(inputs_embeds=embeds, attention_mask=mask, **kwargs)


AutoConfig.register("EventChat_llama", EventGPTConfig, exist_ok=True)
AutoModelForCausalLM.register(EventGPTConfig, EventGPT, exist_ok=True)


class EventGPTAdapter(Adapter):
    kind = "events"
    prompt = SYSTEM + " USER: <ev_start><event><ev_end>\n{question} ASSISTANT:"

    @classmethod
    def load(cls, entry: ModelEntry, folder: Path) -> Adapter:
        info = info_of(entry, folder)
        tokenizer = load_tokenizer(info, folder, by_config=True)
        model, info = load_weights(EventGPT, info, folder)
        size = model.config.tower_config().image_size
        if auto_processor.fields(folder, info.name) is None:
            crop, notes = {"height": size, "width": size}, [PUBLISHED_PROCESSOR]
            processor = CLIPImageProcessorPil(size={"shortest_edge": size}, crop_size=crop)
        else:
            processor, notes = auto_processor.load_image(info, folder, CLIPImageProcessorPil), []
        # The markers that the checkpoint's flags ask for.  As in the published code, rows of the
        # embedding beyond the tokenizer's are cut, so that no answer holds an id without text, and
        # missing rows are added.  They are the mean of the others, so that an untrained token is
        # never the best one.
        markers = ["<ev_patch>"] if model.config.mm_use_im_patch_token else []
        markers += ["<ev_start>", "<ev_end>"] if model.config.mm_use_im_start_end else []
        added = tokenizer.add_tokens(markers, special_tokens=True) if markers else 0
        old, wanted = model.get_input_embeddings().num_embeddings, len(tokenizer)
        refuse_larger_tokenizer(info, wanted - added, old)
        if wanted != old:
            model.resize_token_embeddings(wanted, mean_resizing=False)
            with torch.no_grad():
                for layer in (model.get_input_embeddings(), model.get_output_embeddings()):
                    layer.weight[old:] = layer.weight[:old].mean(dim=0, keepdim=True)
        adapter = cls(info, model, tokenizer, processor, notes)
        auto_processor.refuse_other_sizes(info, folder, processor, size)
        return adapter

    @property
    def visual_id(self) -> int:
        return EVENT_TOKEN_ID

    def prompt_ids(self, question: str, images: int) -> tuple[list[int], int]:
        before, after = self.prompt.format(question=question).split("<event>")
        head = self.tokenizer(before, add_special_tokens=False)["input_ids"]
        tail = self.tokenizer(after, add_special_tokens=False)["input_ids"]
        ids = [self.tokenizer.bos_token_id, *head, EVENT_TOKEN_ID, *tail]
        return ids, len(ids) - 1 + self.visual_rows(images)

    def encode_batch(self, prepared: Sequence[Prepared]) -> list[Features]:
        rows: list[torch.Tensor] = self.model.encode_batch([one.pixels for one in prepared])
        return [Features({"rows": one}) for one in rows]

    def embed(self, prepared: Prepared, features: Features) -> torch.Tensor:
        embeds: torch.Tensor = self.model.embed_prompt(prepared.input_ids, features.rows)
        return embeds

    def counted_ids(self, prepared: Prepared) -> list[int]:
        """None: as in the published code, generate() gets embeddings only."""
        return []

    def generate(self, prepared: Prepared, **options: Any) -> torch.Tensor:
        with warnings.catch_warnings():  # penalties count only new tokens, as in the published code
            warnings.filterwarnings("ignore", message="Passing `.*` with `inputs_embeds`")
            if "event_features" not in options:
                options["event_tensors"] = prepared.pixels
            out: torch.Tensor = self.model.generate(prepared.input_ids, **options)
        return out

    def generate_from_features(
        self, prepared: Prepared, features: Features, **options: Any
    ) -> torch.Tensor:
        return self.generate(prepared, event_features=features.rows, **options)

    def vision_modules(self) -> list[torch.nn.Module]:
        model = self.model.model
        return [model.visual_tower, model.visual_projector, model.feature_adaptor]
