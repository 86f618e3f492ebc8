"""The families of transformers' image-text-to-text models: a row says how one is published."""

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
QWEN: dict[str, Any] = {
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
GLM: dict[str, Any] = {
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
CHATML_ENDS: dict[str, Any] = {"bos": "<|endoftext|>", "eos": "<|im_end|>", "adds_bos": False}


def llava(kind: str, *, indexed: Any = INDEXED, **more: Any) -> dict[str, Any]:
    return {"text_config": text(kind), "vision_config": CLIP, **indexed, **more}


NEXT_PIXELS = {
    **CLIP_PIXELS,
    "image_processor_type": "LlavaNextImageProcessor",
    "image_grid_pinpoints": PINPOINTS,
}
BLIP = {
    "text_config": OPT,
    "vision_config": tower(),
    "qformer_config": QFORMER,
    "num_query_tokens": 6,
    "image_token_index": Id("<image>"),
}


def counted(
    config: dict[str, Any],
    processor: str,
    pixels: dict[str, Any],
    template: tuple[str, str, str] = ("USER: ", "<image>\n", " ASSISTANT:"),
    video_processor: str = "",
) -> Family:
    """Of the LLaVA kind, whose processor counts patches."""
    return Family(
        config,
        processor,
        pixels,
        template,
        ("<image>", "<video>") if video_processor else ("<image>",),
        options=LLAVA_COUNTS,
        video_processor=video_processor,
        clip="<video>\n" if video_processor else "",
    )


def qwen(
    text_config: dict[str, Any],
    vision_config: dict[str, Any],
    processor: str,
    pixels: dict[str, Any] | None = None,
    **more: Any,
) -> Family:
    config = {"text_config": text_config, "vision_config": vision_config, **QWEN_IDS}
    return Family(config, processor, QWEN_PIXELS | (pixels or {}), **QWEN, **more)


def glm(name: str, **vision: Any) -> Family:
    text_config = mrope("glm4v_text", rope={"partial_rotary_factor": 1.0})
    vision_config = merging(out_hidden_size=HIDDEN, image_size=SIZE, **vision)
    return Family(
        {"text_config": text_config, "vision_config": vision_config, **GLM_IDS},
        f"{name}Processor",
        GLM_PIXELS | {"image_processor_type": f"{name}ImageProcessor"},
        video_processor=f"{name}VideoProcessor",
        **GLM,
    )


def blip(processor: str, template: tuple[str, str, str], **more: Any) -> Family:
    """Published without a template."""
    return Family(
        BLIP,
        processor,
        BLIP_PIXELS,
        template,
        ("<image>",),
        options={"num_query_tokens": 6},
        images=1,
        **more,
    )


ROWS: dict[str, Family] = {
    "llava": counted(llava("llama"), "LlavaProcessor", CLIP_PIXELS),
    "vipllava": counted(
        llava("llama", vision_feature_layers=[-1, -2]),
        "LlavaProcessor",
        CLIP_PIXELS,
        ("###Human: ", "<image>\n", "###Assistant:"),
    ),
    "llava_next": counted(
        llava("mistral", image_grid_pinpoints=PINPOINTS),
        "LlavaNextProcessor",
        NEXT_PIXELS,
        ("[INST] ", "<image>\n", " [/INST]"),
    ),
    "llava_next_video": counted(
        llava("llama", indexed=BOTH_INDEXED, image_grid_pinpoints=PINPOINTS),
        "LlavaNextVideoProcessor",
        NEXT_PIXELS,
        video_processor="LlavaNextVideoVideoProcessor",
    ),
    "llava_onevision": Family(
        {
            "text_config": text("qwen2"),
            "vision_config": SIGLIP,
            "image_grid_pinpoints": PINPOINTS,
            **BOTH_INDEXED,
        },
        "LlavaOnevisionProcessor",
        NORMAL
        | {
            "image_processor_type": "LlavaOnevisionImageProcessor",
            "size": SQUARE,
            "image_grid_pinpoints": PINPOINTS,
        },
        ("<|im_start|>user ", "<image>\n", "<|im_end|><|im_start|>assistant\n"),
        ("<|im_start|>", "<image>", "<video>"),
        options={"num_image_tokens": 16, "vision_feature_select_strategy": "full"},
        **CHATML_ENDS,
        video_processor="LlavaOnevisionVideoProcessor",
        clip="<video>\n",
    ),
    "video_llava": counted(
        llava("llama", indexed=BOTH_INDEXED),
        "VideoLlavaProcessor",
        CLIP_PIXELS | {"image_processor_type": "VideoLlavaImageProcessor"},
        video_processor="VideoLlavaVideoProcessor",
    ),
    "internvl": Family(
        {
            "text_config": text("qwen2"),
            "vision_config": tower(
                "internvl_vision", image_size=[SIZE, SIZE], patch_size=[PATCH, PATCH]
            ),
            "image_token_id": Id("<IMG_CONTEXT>"),
            "image_seq_length": 4,
        },
        "InternVLProcessor",
        {
            "image_processor_type": "GotOcr2ImageProcessor",
            "size": SQUARE,
            "crop_to_patches": False,
            "min_patches": 1,
            "max_patches": 2,
        },
        (CHATML[0], "<IMG_CONTEXT>\n", CHATML[1]),
        ("<|im_start|>", "<IMG_CONTEXT>", "<img>", "</img>", "<video>"),
        {
            "context_image_token": "<IMG_CONTEXT>",
            "start_image_token": "<img>",
            "end_image_token": "</img>",
            "video_token": "<video>",
        },
        {"image_seq_length": 4},
        **CHATML_ENDS,
        video_processor="InternVLVideoProcessor",
        clip="<video>\n",
    ),
    "qwen2_vl": qwen(
        mrope("qwen2_vl_text"),
        merging(embed_dim=HIDDEN, mlp_ratio=2),
        "Qwen2VLProcessor",
    ),
    "qwen2_5_vl": qwen(
        mrope("qwen2_5_vl_text"),
        merging(out_hidden_size=HIDDEN, window_size=SIZE, fullatt_block_indexes=[1]),
        "Qwen2_5_VLProcessor",
        generation={"do_sample": True, "temperature": 1e-6, "repetition_penalty": 1.05},
    ),
    "qwen3_vl": qwen(
        mrope("qwen3_vl_text"),
        merging(
            out_hidden_size=HIDDEN, num_position_embeddings=16, deepstack_visual_indexes=[0, 1]
        ),
        "Qwen3VLProcessor",
        NORMAL | {"image_processor_type": "Qwen2VLImageProcessorFast"},
        generation={"do_sample": True, "top_k": 20, "top_p": 0.8, "temperature": 0.7},
        embeddings=0.03,
        video_processor="Qwen3VLVideoProcessor",
    ),
    "qwen3_5": qwen(
        mrope(
            "qwen3_5_text",
            rope={"partial_rotary_factor": 1.0},
            linear_key_head_dim=8,
            linear_value_head_dim=8,
            linear_num_key_heads=4,
            linear_num_value_heads=4,
            layer_types=["linear_attention", "linear_attention", "full_attention"],
        ),
        merging(out_hidden_size=HIDDEN, num_position_embeddings=16),
        "Qwen3VLProcessor",
        NORMAL,
        nested=True,
        video_processor="Qwen3VLVideoProcessor",
    ),
    "glm4v": glm("Glm4v"),
    "smolvlm": Family(
        {
            "text_config": text("llama"),
            "vision_config": tower("smolvlm_vision", image_size=32, patch_size=4),
            "image_token_id": Id("<image>"),
            "scale_factor": 4,
        },
        "SmolVLMProcessor",
        NORMAL
        | {
            "image_processor_type": "SmolVLMImageProcessor",
            "size": {"longest_edge": 64},
            "max_image_size": {"longest_edge": 32},
        },
        ("<|im_start|>User:", "<image>", "<end_of_utterance>\nAssistant:"),
        (
            *("<|im_start|>", "<image>", "<fake_token_around_image>", "<global-img>"),
            *(f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2)),
        ),
        {
            "image_token": "<image>",
            "fake_image_token": "<fake_token_around_image>",
            "global_image_token": "<global-img>",
            "end_of_utterance_token": "<end_of_utterance>",
        },
        {"image_seq_len": 4},
        bos="<|endoftext|>",
        eos="<end_of_utterance>",
        adds_bos=False,
        video_processor="SmolVLMVideoProcessor",
    ),
    "idefics2": Family(
        {
            "text_config": text("mistral"),
            "vision_config": tower("idefics2_vision"),
            "image_token_id": Id("<image>"),
            "perceiver_config": {
                "hidden_size": HIDDEN,
                "resampler_n_latents": 4,
                "resampler_depth": 2,
                "resampler_n_heads": HEADS,
                "resampler_head_dim": 8,
                "num_key_value_heads": 2,
                "intermediate_size": 64,
            },
        },
        "Idefics2Processor",
        NORMAL
        | {
            "image_processor_type": "Idefics2ImageProcessor",
            "size": {"shortest_edge": MERGED, "longest_edge": SIZE},
            "do_image_splitting": False,
        },
        ("User:", "<image>", "<end_of_utterance>\nAssistant:"),
        ("<image>", "<fake_token_around_image>"),
        {},
        {"image_seq_len": 4},
        eos="<end_of_utterance>",
    ),
    "idefics3": Family(
        {
            "text_config": text("llama"),
            "vision_config": tower("idefics3_vision"),
            "image_token_id": Id("<image>"),
            "scale_factor": 2,
        },
        "Idefics3Processor",
        NORMAL | SPLIT_PIXELS | {"image_processor_type": "Idefics3ImageProcessor"},
        ("<|begin_of_text|>User:", "<image>", "<end_of_utterance>\nAssistant:"),
        (
            *("<image>", "<fake_token_around_image>", "<global-img>"),
            *(f"<row_{row}_col_{column}>" for row in (1, 2) for column in (1, 2)),
        ),
        {},
        {"image_seq_len": 4},
        bos="<|begin_of_text|>",
        eos="<end_of_utterance>",
    ),
    "gemma3": Family(
        {
            "text_config": text(
                "gemma3_text",
                sliding_window=16,
                query_pre_attn_scalar=8,
                layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            ),
            "vision_config": SIGLIP,
            "mm_tokens_per_image": 4,
            "image_token_index": Id("<image_soft_token>"),
            "boi_token_index": Id("<start_of_image>"),
            "eoi_token_index": Id("<end_of_image>"),
        },
        "Gemma3Processor",
        NORMAL | {"image_processor_type": "Gemma3ImageProcessor", "size": SQUARE},
        (
            "<bos><start_of_turn>user\n",
            "<start_of_image>",
            "<end_of_turn>\n<start_of_turn>model\n",
        ),
        ("<start_of_turn>", "<start_of_image>", "<end_of_image>", "<image_soft_token>"),
        {
            "image_token": "<image_soft_token>",
            "boi_token": "<start_of_image>",
            "eoi_token": "<end_of_image>",
        },
        {"image_seq_length": 4},
        bos="<bos>",
        eos="<end_of_turn>",
        embeddings=0.03,
    ),
    "gemma4": Family(
        {
            "text_config": text(
                "gemma4_text",
                sliding_window=16,
                hidden_size_per_layer_input=8,
                vocab_size_per_layer_input=Vocabulary(),
                global_head_dim=8,
                num_kv_shared_layers=0,
                layer_types=["sliding_attention", "sliding_attention", "full_attention"],
            ),
            "vision_config": {
                "model_type": "gemma4_vision",
                "hidden_size": HIDDEN,
                "intermediate_size": 64,
                "num_hidden_layers": 2,
                "num_attention_heads": HEADS,
                "num_key_value_heads": HEADS,
                "head_dim": 8,
                "patch_size": PATCH,
                "pooling_kernel_size": 2,
                "position_embedding_size": 64,
            },
            "audio_config": None,
            "image_token_id": Id("<|image|>"),
            "video_token_id": Id("<|video|>"),
            "boi_token_id": Id("<|image>"),
            "eoi_token_id": Id("<image|>"),
        },
        "Gemma4Processor",
        {
            "image_processor_type": "Gemma4ImageProcessor",
            "patch_size": PATCH,
            "pooling_kernel_size": 2,
            "max_soft_tokens": 70,
        },
        ("<bos><|turn>user\n", "<|image|>", "<turn|>\n<|turn>model\n"),
        (
            *("<|turn>", "<|image>", "<|image|>", "<image|>", "<|video|>"),
            *("<|audio>", "<|audio|>", "<audio|>"),
        ),
        {
            **{"image_token": "<|image|>", "boi_token": "<|image>", "eoi_token": "<image|>"},
            **{"audio_token": "<|audio|>", "boa_token": "<|audio>", "eoa_token": "<audio|>"},
        },
        {
            "image_seq_length": 70,
            "feature_extractor": {"feature_extractor_type": "Gemma4AudioFeatureExtractor"},
        },
        nested=True,
        bos="<bos>",
        eos="<turn|>",
        video_processor="Gemma4VideoProcessor",
        clip="<|video|>",
    ),
    "paligemma": Family(
        {
            "text_config": text("gemma", vocab_size=Vocabulary(1024 + 128)),  # places and shapes
            "vision_config": SIGLIP | {"projection_dim": HIDDEN},
            "projection_dim": HIDDEN,
            "hidden_size": HIDDEN,
            **INDEXED,
        },
        "PaliGemmaProcessor",
        NORMAL
        | {
            "image_processor_type": "SiglipImageProcessor",
            "size": SQUARE,
            "image_seq_length": 16,
        },
        ("", "<image>", ""),  # published without a template
        ("<image>",),
        bos="<bos>",
        eos="<eos>",
    ),
    "mistral3": Family(
        {
            "text_config": text("mistral"),
            "vision_config": tower("pixtral", head_dim=8),
            "image_token_index": Id("[IMG]"),
            "spatial_merge_size": 2,
        },
        "PixtralProcessor",
        PIXTRAL_PIXELS,
        ("<s>[INST]", "[IMG]", "[/INST]"),
        ("[INST]", "[/INST]", "[IMG]", "[IMG_BREAK]", "[IMG_END]"),
        {},
        {"patch_size": PATCH, "spatial_merge_size": 2},
    ),
    "video_llama_3": Family(
        {
            "text_config": text("qwen2"),
            "vision_config": {
                "model_type": "video_llama_3_vision",
                "hidden_size": HIDDEN,
                "intermediate_size": 64,
                "num_hidden_layers": 2,
                "num_attention_heads": HEADS,
                "patch_size": PATCH,
            },
            "image_token_id": Id("<image>"),
            "video_token_id": Id("<video>"),
        },
        "VideoLlama3Processor",
        QWEN_PIXELS
        | NORMAL
        | {"image_processor_type": "VideoLlama3ImageProcessor", "temporal_patch_size": 1},
        (CHATML[0], "<image>\n", CHATML[1]),
        ("<|im_start|>", "<image>", "<video>"),
        {"image_token": "<image>", "video_token": "<video>"},
        **CHATML_ENDS,
        video_processor="VideoLlama3VideoProcessor",
        clip="<video>\n",
    ),
    "aya_vision": Family(
        {
            "text_config": text(
                "cohere2",
                layer_types=["sliding_attention", "full_attention", "full_attention"],
            ),
            "vision_config": SIGLIP,
            "downsample_factor": 2,
            "image_token_index": Id("<|IMG_PATCH|>"),
        },
        "AyaVisionProcessor",
        {
            "image_processor_type": "GotOcr2ImageProcessor",
            "size": SQUARE,
            "crop_to_patches": True,
            "min_patches": 1,
            "max_patches": 2,
        },
        (
            "<BOS_TOKEN><|START_OF_TURN_TOKEN|><|USER_TOKEN|>",
            "<image>",
            "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
        ),
        (
            *("<|START_OF_TURN_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>", "<image>"),
            *("<|START_OF_IMG|>", "<|END_OF_IMG|>", "<|IMG_PATCH|>", "<|IMG_LINE_BREAK|>"),
            *("TILE", "TILE_GLOBAL"),
        ),
        {},
        {"patch_size": PATCH, "img_size": SIZE, "downsample_factor": 2},
        bos="<BOS_TOKEN>",
        eos="<|END_OF_TURN_TOKEN|>",
    ),
    "lfm2_vl": Family(
        {
            "text_config": text(
                "lfm2",
                layer_types=["conv", "full_attention", "conv"],
                conv_L_cache=3,
                block_multiple_of=8,
            ),
            "vision_config": {
                "model_type": "siglip2_vision_model",
                "hidden_size": HIDDEN,
                "intermediate_size": 64,
                "num_hidden_layers": 2,
                "num_attention_heads": HEADS,
                "patch_size": PATCH,
                "num_patches": 16,
                "vision_use_head": False,
            },
            "image_token_id": Id("<image>"),
            "downsample_factor": 2,
            "projector_hidden_size": HIDDEN,
        },
        "Lfm2VlProcessor",
        NORMAL
        | {
            "image_processor_type": "Lfm2VlImageProcessorFast",
            "size": SQUARE,
            "encoder_patch_size": PATCH,
            "downsample_factor": 2,
            "do_image_splitting": False,
            "min_image_tokens": 1,
            "max_image_tokens": 12,
            "max_num_patches": 48,
            "tile_size": SIZE,
        },
        ("<|startoftext|><|im_start|>user\n", "<image>", CHATML[1]),
        (
            *("<|im_start|>", "<image>", "<|image_start|>", "<|image_end|>"),
            *("<|img_thumbnail|>",),
        ),
        bos="<|startoftext|>",
        eos="<|im_end|>",
    ),
    "lighton_ocr": Family(
        {
            "text_config": text("qwen3"),
            "vision_config": tower("pixtral", head_dim=8),
            "image_token_id": Id("<|image_pad|>"),
            "spatial_merge_size": 2,
        },
        "LightOnOcrProcessor",
        PIXTRAL_PIXELS,
        (CHATML[0], "<|image_pad|>", CHATML[1]),
        ("<|im_start|>", "<|image_pad|>", "<|vision_pad|>", "<|vision_end|>"),
        {
            "image_token": "<|image_pad|>",
            "image_break_token": "<|vision_pad|>",
            "image_end_token": "<|vision_end|>",
        },
        {"patch_size": PATCH, "spatial_merge_size": 2},
        **CHATML_ENDS,
    ),
    "glm46v": glm("Glm46V", model_type="glm4v_vision"),
    "mllama": Family(
        {
            "text_config": text(
                "mllama_text_model",
                cross_attention_layers=[1],
                rope_parameters={"rope_type": "default", "rope_theta": 1e4},
            ),
            "vision_config": {
                "model_type": "mllama_vision_model",
                "hidden_size": 16,
                "intermediate_size": 32,
                "num_hidden_layers": 2,
                "num_global_layers": 1,
                "attention_heads": HEADS,
                "image_size": SIZE,
                "patch_size": PATCH,
                "max_num_tiles": 4,
                "vision_output_dim": HIDDEN,
                "intermediate_layers_indices": [0],
                "supported_aspect_ratios": [
                    *([1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1])
                ],
            },
            "image_token_index": Id("<|image|>"),
        },
        "MllamaProcessor",
        {
            "image_processor_type": "MllamaImageProcessor",
            "size": SQUARE,
            "max_image_tiles": 4,
        },
        (
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n",
            "<|image|>",
            "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        ),
        ("<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>", "<|image|>"),
        bos="<|begin_of_text|>",
        eos="<|eot_id|>",
    ),
    "blip-2": blip("Blip2Processor", ("Question: ", "", " Answer:"), embeddings=0.03),
    "instructblip": blip("InstructBlipProcessor", ("", "", "")),
    "git": Family(
        {
            **text("git"),
            "num_image_with_embedding": None,
            "vision_config": tower("git_vision_model"),
        },
        "GitProcessor",
        CLIP_PIXELS,
        ("", "", ""),  # published without a template; pictures have no place in the prompt
        (),
        bos="[CLS]",
        eos="[SEP]",
        pad="[PAD]",
        embeddings=0.01,
        images=1,
    ),
}
