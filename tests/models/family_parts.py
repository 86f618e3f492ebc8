"""What the rows of family_rows.py are made of: parts of configs, pixels, tokens and prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SIZE, PATCH, HIDDEN, HEADS = 28, 7, 32, 4
MERGED = 2 * PATCH  # side of the square that becomes one token where towers merge 2 x 2 patches
PAD, BOS, EOS = 0, 1, 2
SQUARE = {"height": SIZE, "width": SIZE}
NORMAL = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}


@dataclass(frozen=True)
class Id:
    """Stands in a config for the id of a special token."""

    token: str


@dataclass(frozen=True)
class Vocabulary:
    """Stands in a config for the number of tokens."""

    more: int = 0  # tokens that the processor adds when it loads


@dataclass(frozen=True)
class Family:
    """How one family is published: config.json, processor settings, special tokens, template."""

    config: Mapping[str, Any]
    processor: str
    image_processor: Mapping[str, Any]
    # What the template writes before a question, for a picture, after a question.
    template: tuple[str, str, str]
    tokens: tuple[str, ...]  # beside pad, bos and eos
    named: Mapping[str, str] = field(default_factory=dict)  # such as image_token
    options: Mapping[str, Any] = field(default_factory=dict)  # the rest of processor_config.json
    video_processor: str = ""
    clip: str = ""  # what the template writes for a clip
    nested: bool = False  # image_processor inside processor_config.json, as newer releases do
    bos: str = "<s>"
    eos: str = "</s>"
    pad: str = "<pad>"
    adds_bos: bool = True
    generation: Mapping[str, Any] = field(default_factory=dict)
    embeddings: float = 0.1  # their spread; some would repeat one token
    images: int | None = None  # the most pictures in one prompt; None: any number


def text(kind: str, **more: Any) -> dict[str, Any]:
    return {
        "model_type": kind,
        "vocab_size": Vocabulary(),
        "hidden_size": HIDDEN,
        "intermediate_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": HEADS,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 1024,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        **more,
    }


def mrope(kind: str, **more: Any) -> dict[str, Any]:
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
    rope |= more.pop("rope", {})
    return text(kind, rope_parameters=rope, **more)


def tower(kind: str | None = None, **more: Any) -> dict[str, Any]:
    named = {"model_type": kind} if kind else {}
    return named | {
        "hidden_size": HIDDEN,
        "intermediate_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": HEADS,
        "image_size": SIZE,
        "patch_size": PATCH,
        **more,
    }


def merging(**more: Any) -> dict[str, Any]:
    """A tower of the Qwen kind: any resolution, 2 x 2 patches merged, two frames per patch."""
    return {
        "depth": 3,
        "hidden_size": HIDDEN,
        "intermediate_size": 64,
        "num_heads": HEADS,
        "in_channels": 3,
        "patch_size": PATCH,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        **more,
    }


CLIP = tower("clip_vision_model", projection_dim=HIDDEN)
SIGLIP = tower("siglip_vision_model", vision_use_head=False)
CLIP_PIXELS = {
    "image_processor_type": "CLIPImageProcessor",
    "size": {"shortest_edge": SIZE},
    "crop_size": SQUARE,
}
PINPOINTS = [[SIZE, 2 * SIZE], [2 * SIZE, SIZE], [2 * SIZE, 2 * SIZE]]
SPLIT_PIXELS = {"size": {"longest_edge": 2 * SIZE}, "max_image_size": {"longest_edge": SIZE}}
QWEN_PIXELS = {
    "image_processor_type": "Qwen2VLImageProcessor",
    "min_pixels": MERGED**2,
    "max_pixels": 12 * MERGED**2,
    "patch_size": PATCH,
    "temporal_patch_size": 2,
    "merge_size": 2,
}
QWEN_TOKENS = (
    "<|im_start|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
QWEN_IDS = {
    "image_token_id": Id("<|image_pad|>"),
    "video_token_id": Id("<|video_pad|>"),
    "vision_start_token_id": Id("<|vision_start|>"),
    "vision_end_token_id": Id("<|vision_end|>"),
}
CHATML = ("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n")
QWEN = {
    "template": (CHATML[0], "<|vision_start|><|image_pad|><|vision_end|>", CHATML[1]),
    "clip": "<|vision_start|><|video_pad|><|vision_end|>",
    "tokens": QWEN_TOKENS,
    "bos": "<|endoftext|>",
    "pad": "<|pad|>",
    "eos": "<|im_end|>",
    "adds_bos": False,
}
GLM_IDS = {
    "image_token_id": Id("<|image|>"),
    "video_token_id": Id("<|video|>"),
    "image_start_token_id": Id("<|begin_of_image|>"),
    "image_end_token_id": Id("<|end_of_image|>"),
    "video_start_token_id": Id("<|begin_of_video|>"),
    "video_end_token_id": Id("<|end_of_video|>"),
}
GLM_PIXELS = {
    "size": {"shortest_edge": MERGED**2, "longest_edge": 24 * MERGED**2},
    "patch_size": PATCH,
    "temporal_patch_size": 2,
    "merge_size": 2,
}
GLM = {
    "template": (
        "[gMASK]<sop><|user|>\n",
        "<|begin_of_image|><|image|><|end_of_image|>",
        "<|assistant|>\n",
    ),
    "clip": "<|begin_of_video|><|video|><|end_of_video|>",
    "tokens": (
        *("[gMASK]", "<sop>", "<|assistant|>", "<|image|>", "<|video|>"),
        *("<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>"),
    ),
    "bos": "<|endoftext|>",
    "pad": "<|pad|>",
    "eos": "<|user|>",
    "adds_bos": False,
}
PIXTRAL_PIXELS = {
    "image_processor_type": "PixtralImageProcessor",
    "size": {"longest_edge": SIZE},
    "patch_size": PATCH,
}
INDEXED = {"image_token_index": Id("<image>")}
BOTH_INDEXED = {**INDEXED, "video_token_index": Id("<video>")}
LLAVA_COUNTS = {
    "patch_size": PATCH,
    "vision_feature_select_strategy": "default",
    "num_additional_image_tokens": 1,
}
QFORMER = {
    "vocab_size": Vocabulary(),
    "hidden_size": HIDDEN,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "intermediate_size": 64,
    "encoder_hidden_size": HIDDEN,
    "cross_attention_frequency": 1,
}
OPT = text("opt", ffn_dim=64, word_embed_proj_dim=HIDDEN)
BLIP_PIXELS = {"image_processor_type": "BlipImageProcessor", "size": SQUARE}
