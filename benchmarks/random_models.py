"""The three families from their published sizes, with random weights, behind their adapters.

Boundary: configurations and a stand-in tokenizer; nothing is read from disk or network.  The
tokenizer knows one token per word, so prompts are about as long as with the real one.
"""

import importlib
from collections.abc import Callable
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    CLIPImageProcessorPil,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    PreTrainedTokenizerFast,
    VideoLlavaConfig,
    VideoLlavaForConditionalGeneration,
    VideoLlavaImageProcessor,
)

from engine.models import registry
from engine.models.adapter import Adapter
from engine.models.eventgpt import CLIP_L_336, EventGPT, EventGPTConfig
from engine.models.families import PICTURES
from engine.types import ModelInfo, Tower

WORDS = 32_000  # LLaMA's vocabulary
IMAGE, VIDEO = 32_000, 32_001
PADDED = 32_064  # rows of the embedding in LLaVA's and Video-LLaVA's releases
HEAD_DIM = 64  # of a model made small; the real one has 128
DTYPES = {"eventgpt": "bfloat16", "video_llava": "float16", "llava": "float16"}
FAMILIES = tuple(DTYPES)


def build(
    family: str, dtype: str | None, on: torch.device, layers: int | None, hidden: int | None
) -> Adapter:
    """The family's adapter on the device; real sizes unless layers or hidden are given."""
    chosen = dtype or DTYPES[family]
    tower = _tower(layers, hidden)
    model_class, config, processor = _PARTS[family](_text(layers, hidden), tower)
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, chosen))
    try:
        with on:
            model = model_class(config)
    finally:
        torch.set_default_dtype(before)
    adapter = _adapter_class(family)
    info = _info(family, chosen, on, model, tower)
    built: Adapter = adapter(info, model, tokenizer(), processor, ())
    return built


def tokenizer(pictures: bool = True) -> PreTrainedTokenizerFast:
    """A token per word or sign; LLaMA's special ids, and those of the picture placeholders."""
    special = ["<unk>", "<s>", "</s>"]
    table = {word: number for number, word in enumerate(special)}
    table |= {f"w{number}": number for number in range(len(special), WORDS)}
    raw = Tokenizer(models.WordLevel(table, unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    raw.add_special_tokens([*special, *(("<image>", "<video>") if pictures else ())])
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


def _text(layers: int | None, hidden: int | None) -> dict[str, Any]:
    """LLaMA-7B, whose sizes are LlamaConfig's defaults, or a smaller one of its proportions."""
    fields: dict[str, Any] = {"max_position_embeddings": 4096, "rms_norm_eps": 1e-5}
    if layers is not None:
        fields["num_hidden_layers"] = layers
    if hidden is not None:
        heads = max(1, hidden // HEAD_DIM)
        fields |= {"hidden_size": hidden, "intermediate_size": hidden * 43 // 16}
        fields |= {"num_attention_heads": heads, "num_key_value_heads": heads}
    return fields


def _tower(layers: int | None, hidden: int | None) -> dict[str, Any]:
    fields = dict(CLIP_L_336)
    if layers is not None:
        fields["num_hidden_layers"] = layers
    if hidden is not None:
        fields |= {"hidden_size": hidden, "intermediate_size": 4 * hidden}
        fields["num_attention_heads"] = max(1, hidden // HEAD_DIM)
    return fields


def _eventgpt(text: dict[str, Any], tower: dict[str, Any]) -> tuple[Any, Any, Any]:
    config = EventGPTConfig(**text, vocab_size=WORDS, vision_config=tower)
    return EventGPT, config, CLIPImageProcessorPil(**_square(tower))


def _video_llava(text: dict[str, Any], tower: dict[str, Any]) -> tuple[Any, Any, Any]:
    tower["image_size"] = 224
    config = VideoLlavaConfig(
        vision_config=CLIPVisionConfig(**tower),
        text_config=LlamaConfig(**text, vocab_size=PADDED),
        image_token_index=IMAGE,
        video_token_index=VIDEO,
    )
    processor = VideoLlavaImageProcessor(**_square(tower))
    return VideoLlavaForConditionalGeneration, config, processor


def _llava(text: dict[str, Any], tower: dict[str, Any]) -> tuple[Any, Any, Any]:
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**tower),
        text_config=LlamaConfig(**text, vocab_size=PADDED),
        image_token_index=IMAGE,
    )
    return LlavaForConditionalGeneration, config, CLIPImageProcessorPil(**_square(tower))


_PARTS: dict[str, Callable[[dict[str, Any], dict[str, Any]], tuple[Any, Any, Any]]] = {
    "eventgpt": _eventgpt,
    "video_llava": _video_llava,
    "llava": _llava,
}


def _square(tower: dict[str, Any]) -> dict[str, Any]:
    side = tower["image_size"]
    return {"size": {"shortest_edge": side}, "crop_size": {"height": side, "width": side}}


def _adapter_class(family: str) -> Any:
    module, name = registry.FAMILIES[family].adapter.split(":")
    return getattr(importlib.import_module(module), name)


def _info(
    family: str, dtype: str, on: torch.device, model: Any, tower: dict[str, Any]
) -> ModelInfo:
    return ModelInfo(
        name=f"{family} with random weights",
        family=family,
        checkpoint="random weights",
        revision=None,
        dtype=dtype,
        demo=False,
        digest="random",
        device=str(on),
        source="random weights",
        parameters=sum(weight.numel() for weight in model.parameters()),
        tower=Tower(
            tower["hidden_size"],
            tower["num_hidden_layers"],
            tower["num_attention_heads"],
            tower["image_size"],
            tower["patch_size"],
        ),
        images=PICTURES[registry.FAMILIES[family].kind],
    )
