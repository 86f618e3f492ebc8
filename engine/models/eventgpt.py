"""EventGPT: five event images, pooled to one row per image and one row per patch.

As in the published code, the prompt is tokenised in two pieces around <event>, joined by -200, with
one BOS at the start.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import CLIPImageProcessorPil

from engine.models import auto_processor
from engine.models.adapter import Adapter
from engine.models.checkpoint import ModelEntry
from engine.models.eventgpt_model import EVENT_TOKEN_ID, EventGPT
from engine.models.loading import info_of, load_tokenizer, load_weights, refuse_larger_tokenizer
from engine.types import Features, ModelInfo, Prepared

SYSTEM = (
    "A chat between a curious human and an artificial intelligence assistant. "
    "The assistant gives helpful, detailed, and polite answers to the human's questions."
)
PUBLISHED_PROCESSOR = (
    "No preprocessor_config.json: the values of clip-vit-large-patch14-336 are used, at the "
    "tower's size."
)


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
        _add_markers(info, model, tokenizer)
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
        tower = self.model.config.tower_config()
        patches = int(tower.image_size // tower.patch_size) ** 2
        return ids, len(ids) - 1 + images + patches + 1

    def encode(self, prepared: Prepared) -> Features:
        return Features({"rows": self.model.encode_events(prepared.pixels)})

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


def _add_markers(info: ModelInfo, model: Any, tokenizer: Any) -> None:
    """Adds the markers that the checkpoint's flags ask for, and resizes the embedding to match.

    As in the published code, rows beyond the tokenizer's are cut, so that no answer holds an id
    without text, and missing rows are added.  New rows are the mean of the others, so that an
    untrained token is never the best one.
    """
    config = model.config
    markers = ["<ev_patch>"] if config.mm_use_im_patch_token else []
    markers += ["<ev_start>", "<ev_end>"] if config.mm_use_im_start_end else []
    added = tokenizer.add_tokens(markers, special_tokens=True) if markers else 0
    old, wanted = model.get_input_embeddings().num_embeddings, len(tokenizer)
    refuse_larger_tokenizer(info, wanted - added, old)
    if wanted == old:
        return
    model.resize_token_embeddings(wanted, mean_resizing=False)
    with torch.no_grad():
        for layer in (model.get_input_embeddings(), model.get_output_embeddings()):
            layer.weight[old:] = layer.weight[:old].mean(dim=0, keepdim=True)
