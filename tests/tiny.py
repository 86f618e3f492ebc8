"""Checkpoints of a few thousand random weights, saved in the form the real ones have.

They go through the same registry, loaders and adapters as every other model.
"""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
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
from engine.models.eventgpt import EventGPT, EventGPTConfig

SIZE, PATCH, HIDDEN = 32, 16, 32
SPECIAL = ["<unk>", "<s>", "</s>", "<image>", "<video>"]
VISION = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "image_size": SIZE,
    "patch_size": PATCH,
    "projection_dim": 8,
}


def tokenizer() -> PreTrainedTokenizerFast:
    """One token per byte, the special tokens, and BOS in front as LLaMA has it."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: index for index, piece in enumerate([*SPECIAL, *alphabet])}
    raw = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>"))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    raw.add_special_tokens(SPECIAL)
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


def _llama(vocabulary: int) -> dict[str, int]:
    return {
        "vocab_size": vocabulary,
        "hidden_size": HIDDEN,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 1024,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def _loud(model: torch.nn.Module, seed: int) -> torch.nn.Module:
    """Weights far from zero, so that what a model is shown changes what it says.

    The tower's class embedding [D] too, which transformers draws from torch's own generator: an
    answer would depend on the tests before.
    """
    generator = torch.Generator().manual_seed(seed)
    own = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                scale = 1.5 / parameter[0].numel() ** 0.5
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * scale)
            elif name.endswith("class_embedding"):
                drawn = torch.randn(parameter.shape, generator=own)
                parameter.copy_(drawn / parameter.numel() ** 0.5)
    return model


def eventgpt(folder: Path, vocabulary: int = 0) -> Path:
    words = tokenizer()
    config = EventGPTConfig(
        **_llama(vocabulary or len(words)),
        vision_config=dict(VISION),
        mm_use_im_patch_token=False,
    )
    return _save(folder, _loud(EventGPT(config), 0), words, CLIPImageProcessorPil(**_square()))


def llava(folder: Path, pieces: int = 0) -> Path:
    """`pieces`: the size of a sentencepiece model, behind which <image> has its id."""
    words = tokenizer()
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**VISION),
        text_config=LlamaConfig(**_llama(pieces + 64 if pieces else len(words))),
        image_token_index=pieces or SPECIAL.index("<image>"),
    )
    model = _loud(LlavaForConditionalGeneration(config), 1)
    return _save(folder, model, words, CLIPImageProcessorPil(**_square()))


def video_llava(folder: Path) -> Path:
    words = tokenizer()
    config = VideoLlavaConfig(
        vision_config=CLIPVisionConfig(**VISION),
        text_config=LlamaConfig(**_llama(len(words))),
        image_token_index=SPECIAL.index("<image>"),
        video_token_index=SPECIAL.index("<video>"),
    )
    model = _loud(VideoLlavaForConditionalGeneration(config), 2)
    return _save(folder, model, words, VideoLlavaImageProcessor(**_square()))


def _square() -> dict[str, object]:
    side = {"height": SIZE, "width": SIZE}
    return {"do_center_crop": False, "size": side, "crop_size": side}


def _save(folder: Path, model: Any, words: Any, processor: Any) -> Path:
    for part in (model.half(), words, processor):
        part.save_pretrained(folder)
    return folder


BUILDERS = {"eventgpt": eventgpt, "video_llava": video_llava, "llava": llava}


def models_toml(folder: Path, dtype: str = "float32") -> Path:
    """A models.toml with one tiny entry per family, beside their checkpoints."""
    rows = []
    for family, build in BUILDERS.items():
        build(folder / family)
        rows.append(
            f'[[model]]\nname = "tiny-{family}"\nlabel = "Tiny {family}"\nfamily = "{family}"\n'
            f'checkpoint = "./{family}"\ndtype = "{dtype}"\ndemo = true\n'
        )
    path = folder / "models.toml"
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def add_family(path: Path, family: str) -> None:
    """Adds an entry for a small model of transformers, shown event images, and its checkpoint."""
    from tests.models import family_checkpoints

    family_checkpoints.build(family, path.parent / family)
    entry = f'\n[[model]]\nname = "tiny-{family}"\ncheckpoint = "./{family}"\nshows = "events"\n'
    with path.open("a", encoding="utf-8") as file:
        file.write(entry)


def with_processor(adapter: Adapter, image_processor: Any) -> Adapter:
    """The same loaded model with another image processor."""
    made = adapter.remade(adapter.info)
    made.image_processor = image_processor
    made._processor = made.processor_digest()
    return made


def unload_all() -> None:
    """Unloads every model of the registry."""
    for entry in registry.resident():
        registry.unload(entry)
