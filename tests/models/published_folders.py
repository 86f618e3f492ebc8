"""Folders with the JSON files of published image-text-to-text checkpoints and one small tensor.

Enough for everything that is decided before weights are read; no model can be loaded from them.
The fields and their forms are the releases', shortened to what this project or transformers reads.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from engine.models import registry
from engine.models.checkpoint import ModelEntry

Json = dict[str, Any]
FAMILY = "transformers"
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {% for part in message['content'] %}"
    "{{ '<image>' if part['type'] == 'image' else part['text'] }}{% endfor %}{% endfor %}"
)

QWEN_2_5: Json = {  # the language model's fields are not nested
    "model_type": "qwen2_5_vl",
    "hidden_size": 2048,
    "intermediate_size": 11008,
    "max_position_embeddings": 128000,
    "num_attention_heads": 16,
    "num_hidden_layers": 36,
    "num_key_value_heads": 2,
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    "torch_dtype": "bfloat16",
    "vocab_size": 151936,
    "vision_config": {
        "depth": 32,
        "hidden_size": 1280,
        "intermediate_size": 3420,
        "num_heads": 16,
        "patch_size": 14,
    },
}
QWEN_2: Json = {  # the tower's width is embed_dim, its hidden_size the language model's
    **QWEN_2_5,
    "model_type": "qwen2_vl",
    "vision_config": {
        "depth": 32,
        "embed_dim": 1280,
        "num_heads": 16,
        "hidden_size": 1536,
        "patch_size": 14,
    },
}
QWEN_3: Json = {
    "model_type": "qwen3_vl",
    "text_config": {
        "model_type": "qwen3_vl_text",
        "dtype": "bfloat16",
        "head_dim": 128,
        "hidden_size": 2560,
        "intermediate_size": 9728,
        "max_position_embeddings": 262144,
        "num_attention_heads": 32,
        "num_hidden_layers": 36,
        "num_key_value_heads": 8,
        "rope_scaling": {
            "mrope_interleaved": True,
            "mrope_section": [24, 20, 20],
            "rope_type": "default",
        },
        "vocab_size": 151936,
    },
    "vision_config": {
        "depth": 24,
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "model_type": "qwen3_vl",
        "num_heads": 16,
        "patch_size": 16,
    },
}
INTERNVL: Json = {
    "model_type": "internvl",
    "torch_dtype": "bfloat16",
    "text_config": {
        "model_type": "qwen2",
        "hidden_size": 896,
        "intermediate_size": 4864,
        "max_position_embeddings": 32768,
        "num_attention_heads": 14,
        "num_hidden_layers": 24,
        "num_key_value_heads": 2,
        "rope_scaling": {"factor": 2.0, "rope_type": "dynamic", "type": "dynamic"},
        "vocab_size": 151674,
    },
    "vision_config": {
        "model_type": "internvl_vision",
        "hidden_size": 1024,
        "image_size": [448, 448],
        "intermediate_size": 4096,
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
        "patch_size": [14, 14],
    },
}
SMOLVLM: Json = {
    "model_type": "smolvlm",
    "torch_dtype": "float32",
    "text_config": {
        "model_type": "llama",
        "head_dim": 64,
        "hidden_size": 960,
        "intermediate_size": 2560,
        "max_position_embeddings": 8192,
        "num_attention_heads": 15,
        "num_hidden_layers": 32,
        "num_key_value_heads": 5,
        "vocab_size": 49280,
    },
    "vision_config": {
        "model_type": "smolvlm_vision",
        "hidden_size": 768,
        "image_size": 512,
        "max_image_size": {"longest_edge": 512},
        "num_attention_heads": 12,
        "patch_size": 16,
        "size": {"longest_edge": 2048},
    },
}
GEMMA: Json = {  # a release that leaves most sizes to the class
    "model_type": "gemma3",
    "eos_token_id": [1, 106],
    "torch_dtype": "bfloat16",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
    },
    "vision_config": {
        "model_type": "siglip_vision_model",
        "hidden_size": 1152,
        "image_size": 896,
        "intermediate_size": 4304,
        "num_attention_heads": 16,
        "num_hidden_layers": 27,
        "patch_size": 14,
    },
}
CONFIGS = {
    "qwen2_5_vl": QWEN_2_5,
    "qwen2_vl": QWEN_2,
    "qwen3_vl": QWEN_3,
    "internvl": INTERNVL,
    "smolvlm": SMOLVLM,
    "gemma3": GEMMA,
}
_SQUARE = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "rescale_factor": 1 / 255}
PROCESSORS: dict[str, Json] = {
    "qwen2_5_vl": {
        **_SQUARE,
        "image_processor_type": "Qwen2VLImageProcessor",
        "min_pixels": 3136,
        "max_pixels": 12845056,
        "size": {"shortest_edge": 3136, "longest_edge": 12845056},
    },
    "qwen3_vl": {
        **_SQUARE,
        "image_processor_type": "Qwen2VLImageProcessorFast",
        "size": {"shortest_edge": 65536, "longest_edge": 16777216},
    },
    "internvl": {
        **_SQUARE,
        "image_processor_type": "GotOcr2ImageProcessorFast",
        "crop_size": None,
        "size": {"height": 448, "width": 448},
    },
    "smolvlm": {
        **_SQUARE,
        "image_processor_type": "SmolVLMImageProcessor",
        "max_image_size": {"longest_edge": 512},
        "size": {"longest_edge": 2048},
    },
}
VIDEO: Json = {
    **_SQUARE,
    "video_processor_type": "Qwen3VLVideoProcessor",
    "image_processor_type": "Qwen2VLImageProcessorFast",
    "size": {"shortest_edge": 4096, "longest_edge": 25165824},
    "fps": 2,
}


def write(folder: Path, name: str, content: Mapping[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(content))


def change(folder: Path, name: str, **fields: Any) -> None:
    """The file with these fields; a field with the value ... is removed."""
    known = json.loads((folder / name).read_text()) | fields
    write(folder, name, {key: value for key, value in known.items() if value is not ...})


def build(folder: Path, model: str = "qwen2_5_vl") -> Path:
    """The files of one of CONFIGS, as a download leaves them."""
    write(folder, "config.json", CONFIGS[model])
    write(folder, "preprocessor_config.json", PROCESSORS.get(model, PROCESSORS["internvl"]))
    write(folder, "video_preprocessor_config.json", VIDEO)
    write(folder, "processor_config.json", {"processor_class": "Qwen2_5_VLProcessor"})
    write(folder, "generation_config.json", {"eos_token_id": [151645, 151643], "do_sample": True})
    write(folder, "tokenizer.json", {"model": {}})
    write(folder, "tokenizer_config.json", {"chat_template": TEMPLATE, "eos_token": "<|im_end|>"})
    save_file({"model.weight": np.zeros((4, 2), np.float16)}, folder / "model.safetensors")
    return folder


def entry(folder: Path, family: str = FAMILY, name: str = "chosen") -> ModelEntry:
    kind = registry.FAMILIES[family].kind
    return ModelEntry(name, name, family, kind, str(folder), folder, None, "bfloat16", False)
