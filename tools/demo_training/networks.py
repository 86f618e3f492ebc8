"""The three demo networks: small versions of the real checkpoints' classes, and how to save them.

Boundary: configurations and folders; train.py trains the weights.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers import (
    CLIPImageProcessor,
    CLIPVisionModel,
    GenerationConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
    VideoLlavaConfig,
    VideoLlavaForConditionalGeneration,
    VideoLlavaImageProcessor,
)

from engine.demo.wordings import ASKED, Voice
from engine.models import model_card
from engine.models.eventgpt import EventGPT, EventGPTConfig
from tools.demo_training.corpus import GRID, SIZE
from tools.demo_training.tokenizer import CONTEXT
from tools.demo_training.towers import Sight, tower_config

Family = Literal["eventgpt", "video_llava", "llava"]
FAMILIES: tuple[Family, ...] = ("llava", "video_llava", "eventgpt")
VOICE: dict[Family, Voice] = {"eventgpt": "event", "video_llava": "video", "llava": "image"}
SIGHT: dict[Family, Sight] = {"eventgpt": "events", "video_llava": "frames", "llava": "frames"}
LANGUAGE: dict[str, Any] = {
    "hidden_size": 192,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 6,
    "max_position_embeddings": CONTEXT,
    "tie_word_embeddings": False,
}
SQUARE = {"height": SIZE, "width": SIZE}


@dataclass(frozen=True, eq=False)
class DemoNetwork:
    """A network and the parts that are trained together."""

    family: Family
    model: Any
    tower: CLIPVisionModel
    projector: nn.Module
    language: Any
    head: nn.Module

    def rows(self, features: Tensor) -> Tensor:
        """(B, images, 37, tower width) tower tokens -> (B, visual tokens, width)."""
        if self.family == "eventgpt":
            tokens: Tensor = self.projector(features)
            return torch.cat([tokens.mean(dim=2), tokens.mean(dim=1)], 1)
        shown = features if self.family == "video_llava" else features[:, :, 1:]  # without CLS
        tokens = self.projector(shown)
        return tokens.flatten(1, 2)


def language_config(tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    """Llama's settings, with the tokenizer's special ids."""
    return {
        **LANGUAGE,
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }


def new_network(family: Family, tokenizer: PreTrainedTokenizerFast) -> DemoNetwork:
    """A network with random weights."""
    if family == "eventgpt":
        return _new_eventgpt(tokenizer)
    model = _new_llava(tokenizer) if family == "llava" else _new_video_llava(tokenizer)
    inner = model.model
    tower = inner.vision_tower if family == "llava" else inner.video_tower
    projector = inner.multi_modal_projector
    return DemoNetwork(family, model, tower, projector, inner.language_model, model.lm_head)


def _new_llava(tokenizer: PreTrainedTokenizerFast) -> LlavaForConditionalGeneration:
    config = LlavaConfig(
        vision_config=tower_config("frames"),
        text_config=LlamaConfig(**language_config(tokenizer)),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=GRID * GRID,
        vision_feature_layer=-2,
        vision_feature_select_strategy="default",
        tie_word_embeddings=False,
    )
    return LlavaForConditionalGeneration(config)


def _new_video_llava(tokenizer: PreTrainedTokenizerFast) -> VideoLlavaForConditionalGeneration:
    config = VideoLlavaConfig(
        vision_config=tower_config("frames"),
        text_config=LlamaConfig(**language_config(tokenizer)),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        video_token_index=tokenizer.convert_tokens_to_ids("<video>"),
        image_seq_length=GRID * GRID,
        video_seq_length=8 * (GRID * GRID + 1),
        vision_feature_layer=-2,
        vision_feature_select_strategy="default",
        tie_word_embeddings=False,
    )
    return VideoLlavaForConditionalGeneration(config)


def _new_eventgpt(tokenizer: PreTrainedTokenizerFast) -> DemoNetwork:
    config = EventGPTConfig(
        **language_config(tokenizer),
        vision_config=tower_config("events").to_dict(),
        event_feature_adaptor=True,
        mm_use_im_patch_token=False,
        mm_use_im_start_end=False,
        architectures=["EventGPT"],
    )
    model = EventGPT(config)
    tower = model.model.visual_tower.visual_tower
    projector = nn.Sequential(*model.model.visual_projector, model.model.feature_adaptor)
    return DemoNetwork("eventgpt", model, tower, projector, model.model, model.lm_head)


def save_network(network: DemoNetwork, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """An ordinary `save_pretrained` folder in half precision."""
    folder.mkdir(parents=True, exist_ok=True)
    if network.family == "video_llava":  # it has two towers and uses only the second
        network.model.model.image_tower.load_state_dict(network.tower.state_dict())
    network.model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        do_sample=False,
    )
    network.model.half().save_pretrained(folder)
    network.model.float()
    _save_processor(network.family, tokenizer, folder)
    save_questions(folder)


def save_questions(folder: Path, inputs: Sequence[str] = ()) -> None:
    """The file in which the checkpoint declares the questions it was trained on, and its inputs if
    there are several."""
    wordings = [wording for kind in ASKED.values() for wording in kind]
    content = {"questions": wordings} | ({"inputs": list(inputs)} if inputs else {})
    text = json.dumps(content, indent=1, ensure_ascii=False)
    (folder / model_card.TRAINED).write_text(text + "\n", encoding="utf-8")


def _save_processor(family: Family, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Saves the processor; it scales frames to a square, as a crop would cut off the roadsides."""
    plain: dict[str, Any] = {"size": SQUARE, "do_center_crop": False, "crop_size": SQUARE}
    patches: dict[str, Any] = {
        "patch_size": SIZE // GRID,
        "num_additional_image_tokens": 1,
        "vision_feature_select_strategy": "default",
    }
    if family == "llava":
        LlavaProcessor(CLIPImageProcessor(**plain), tokenizer, **patches).save_pretrained(folder)
        return
    tokenizer.save_pretrained(folder)
    reader = CLIPImageProcessor if family == "eventgpt" else VideoLlavaImageProcessor
    reader(**plain).save_pretrained(folder)
