"""Small random checkpoints of transformers' image-text-to-text families, in their published form.

Each is a folder with config.json, weights, tokenizer, processor settings and a chat template, made
from a row of family_rows.py.  A picture becomes a few dozen placeholder tokens at most.
"""

import copy
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    AutoConfig,
    AutoModelForImageTextToText,
    GenerationConfig,
    PreTrainedTokenizerFast,
)

from tests.models.family_rows import BOS, EOS, PAD, ROWS, Family, Id, Vocabulary

FAMILIES = tuple(ROWS)
VIDEO = tuple(family for family, row in ROWS.items() if row.clip)
# One of each kind: usual, grids, positions by windows, token types, masks, cross-attention.
QUICK = ("llava", "qwen2_vl", "qwen2_5_vl", "gemma3", "idefics2", "mllama")
NEED_TORCHVISION = ("mistral3", "lfm2_vl")  # even for pictures
NO_SEAM = ("mllama", "blip-2", "instructblip", "git")  # their generate() takes no encoder outputs


def each(families: Iterable[str]) -> list[Any]:
    """Parameters of a test: it is slow for the families that are not QUICK."""
    return [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in families]


def build(family: str, folder: Path, dtype: str = "float32", row: Family | None = None) -> Path:
    """Writes the family's checkpoint into the folder, which is created; `row`: another size."""
    row = row or ROWS[family]
    tokenizer = _tokenizer(row)
    ids = tokenizer.get_vocab()
    described = _resolved(copy.deepcopy(dict(row.config)), ids)
    config = AutoConfig.for_model(**{"model_type": family, **described})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForImageTextToText.from_config(config)
    _randomise(model, row.embeddings)
    model.generation_config = GenerationConfig(
        pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS, **row.generation
    )
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if family == "instructblip":
        tokenizer.save_pretrained(folder / "qformer_tokenizer")
    _write_processor(row, folder)
    return folder


def most_images(family: str) -> int | None:
    """The most pictures that one prompt of the family takes; None for any number."""
    return ROWS[family].images


def _resolved(value: Any, ids: Mapping[str, int]) -> Any:
    """The config with numbers for `Id` and `Vocabulary`."""
    if isinstance(value, Id):
        return ids[value.token]
    if isinstance(value, Vocabulary):
        return len(ids) + value.more
    if isinstance(value, dict):
        return {key: _resolved(one, ids) for key, one in value.items()}
    return value


def _tokenizer(row: Family) -> PreTrainedTokenizerFast:
    """One token per byte, and the family's special tokens in front of them."""
    special = [row.pad, row.bos, row.eos, *row.tokens]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: index for index, piece in enumerate([*special, *alphabet])}
    raw = Tokenizer(models.BPE(vocabulary, []))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    if row.adds_bos:
        raw.post_processor = processors.TemplateProcessing(
            single=f"{row.bos} $A", special_tokens=[(row.bos, BOS)]
        )
    raw.add_special_tokens(special)
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        pad_token=row.pad,
        bos_token=row.bos,
        eos_token=row.eos,
        extra_special_tokens=dict(row.named),
    )


def _randomise(model: Any, embeddings: float) -> None:
    """Weights far from zero, so that what a model is shown changes what it says."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "gate" in name and parameter.dim() <= 1:  # zero in a new model, which hides pictures
                parameter.fill_(0.7)
            elif parameter.dim() > 1 or "newline" in name:
                words = name.endswith(("embed_tokens.weight", "word_embeddings.weight"))
                spread = embeddings if words else 0.3
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * spread)
        model.get_output_embeddings().weight[EOS] *= 0.1  # answers seldom end by themselves


def _write_processor(row: Family, folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(_template(row), encoding="utf-8")
    named = {"processor_class": row.processor}
    image = dict(row.image_processor)
    video = image | {"video_processor_type": row.video_processor}
    video.pop("image_processor_type")
    parts = {"image_processor": image, "video_processor": video}
    if row.nested:
        _write(folder / "processor_config.json", {**named, **row.options, **parts})
        return
    _write(folder / "preprocessor_config.json", named | image)
    if row.video_processor:
        _write(folder / "video_preprocessor_config.json", named | video)
    if row.options:
        _write(folder / "processor_config.json", named | dict(row.options))


def _template(row: Family) -> str:
    before, picture, after = (json.dumps(text) for text in row.template)
    return (
        "{%- for message in messages -%}{{- " + before + " -}}"
        "{%- for part in message['content'] -%}"
        "{%- if part['type'] == 'image' -%}{{- " + picture + " -}}"
        "{%- elif part['type'] == 'video' -%}{{- " + json.dumps(row.clip) + " -}}"
        "{%- else -%}{{- part['text'] -}}{%- endif -%}"
        "{%- endfor -%}{%- if add_generation_prompt -%}{{- " + after + " -}}{%- endif -%}"
        "{%- endfor -%}"
    )


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
