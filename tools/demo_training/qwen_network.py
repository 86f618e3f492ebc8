"""The demo checkpoint in the published form of Qwen2.5-VL: the network, its prompts, its files.

Boundary: configurations and folders; qwen_training.py trains the weights.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch import Tensor
from transformers import (
    GenerationConfig,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2Tokenizer,
)
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLTextConfig

from engine.demo.wordings import Voice
from tools.demo_training.corpus import WIDE
from tools.demo_training.networks import save_questions
from tools.demo_training.qwen_tower import CELLS, MERGE, WIDTH, vision_config
from tools.demo_training.tokenizer import CONTEXT, training_texts
from tools.demo_training.towers import MEAN, STD

NAME = "qwen2_5_vl"
SYSTEM = "Answer from the pictures."
IMAGES: dict[Voice, int] = {"image": 1, "event": 5}  # pictures that each voice is shown
STOP, PAD = "<|im_end|>", "<|endoftext|>"
START, PICTURE, END = "<|vision_start|>", "<|image_pad|>", "<|vision_end|>"
SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", START, END, "<|vision_pad|>", PICTURE,
    "<|video_pad|>",
)  # fmt: skip
# The text before and after the visual tokens, for both voices; `{q}` is the question.
PROMPT = (
    f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{START}",
    f"{END}{{q}}<|im_end|>\n<|im_start|>assistant\n",
)
FRAMES: dict[Voice, tuple[str, str]] = {"event": PROMPT, "image": PROMPT}
CHAT_TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}"
    f"<|im_start|>system\n{SYSTEM}<|im_end|>\n"
    "{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part['type'] == 'video' %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% elif part['type'] == 'text' %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
VOCABULARY = 768
CELL = WIDE.patch * MERGE  # pixels per side
# Every picture of 4 to 3, of any size, gets the same grid: six columns and four rows of cells.
PIXELS = 20 * CELL**2, 28 * CELL**2


def build_qwen_tokenizer() -> Qwen2Tokenizer:
    """Qwen's tokenizer class with merges learned from the demo's questions and answers."""
    inner = Tokenizer(models.BPE())
    inner.normalizer = normalizers.NFC()
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(_texts(), trainer)
    learned = json.loads(inner.to_str())["model"]
    vocabulary = learned["vocab"]
    vocabulary |= {word: len(vocabulary) + number for number, word in enumerate(SPECIAL)}
    return Qwen2Tokenizer(
        vocab=vocabulary,
        merges=[tuple(pair) for pair in learned["merges"]],
        add_prefix_space=False,
        unk_token=None,
        eos_token=STOP,
        pad_token=PAD,
        extra_special_tokens=[word for word in SPECIAL if word not in (STOP, PAD)],
        model_max_length=CONTEXT,
        padding_side="left",
        chat_template=CHAT_TEMPLATE,
    )


def _texts() -> Iterator[str]:
    """The texts to learn merges from: answers also start a line here, without a space."""
    yield from [f"system\n{SYSTEM}", "user\n", "assistant\n"] * 20
    for text in training_texts(0):
        yield text.removeprefix(" ")


def new_qwen(tokenizer: Qwen2Tokenizer) -> Qwen2_5_VLForConditionalGeneration:
    """The network with random weights."""
    ids = {word: tokenizer.convert_tokens_to_ids(word) for word in SPECIAL}
    text = Qwen2_5_VLTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        rms_norm_eps=1e-6,
        # The published section is [16, 24, 24] of 64; the lower base keeps columns apart.
        rope_parameters={"rope_type": "default", "rope_theta": 1000.0, "mrope_section": [4, 6, 6]},
        bos_token_id=ids[PAD],
        eos_token_id=ids[STOP],
        pad_token_id=ids[PAD],
    )
    config = Qwen2_5_VLConfig(
        text_config=text,
        vision_config=vision_config(),
        image_token_id=ids[PICTURE],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids[START],
        vision_end_token_id=ids[END],
        tie_word_embeddings=False,
    )
    return Qwen2_5_VLForConditionalGeneration(config)


def rows_of(model: Any, tokenizer: Any, tokens: Tensor) -> Tensor:
    """(B, images, cells, width) -> (B, rows, width): visual tokens, and marks between images."""
    marks = model.model.language_model.embed_tokens(
        torch.tensor(tokenizer.convert_tokens_to_ids([END, START]))
    )
    between = marks.to(tokens.dtype).expand(len(tokens), 2, -1)
    parts = [tokens[:, 0]]
    for number in range(1, tokens.shape[1]):
        parts += [between, tokens[:, number]]
    return torch.cat(parts, 1)


def places_of(before: int, images: int) -> Tensor:
    """(3, before + rows): time, row and column of the prompt up to the last visual row."""
    rows, columns = CELLS
    across, size = np.indices(CELLS).reshape(2, -1), max(CELLS)
    picture = torch.from_numpy(np.stack([np.zeros(rows * columns, np.int64), *across]))
    parts, start = [torch.arange(before).expand(3, -1)], before
    for number in range(images):
        if number:  # two marks between pictures
            parts.append((torch.arange(2) + start).expand(3, -1))
            start += 2
        parts.append(picture + start)
        start += size
    return torch.cat(parts, 1)


def save_qwen(
    model: Qwen2_5_VLForConditionalGeneration, tokenizer: Qwen2Tokenizer, folder: Path
) -> None:
    """A folder as published, in half precision."""
    folder.mkdir(parents=True, exist_ok=True)
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.pad_token_id,
        eos_token_id=[tokenizer.eos_token_id, tokenizer.pad_token_id],
        pad_token_id=tokenizer.pad_token_id,
        do_sample=False,
    )
    model.half().save_pretrained(folder)
    model.float()
    tokenizer.save_pretrained(folder)
    _save_json(folder / "preprocessor_config.json", _preprocessor())
    save_questions(folder, ("image", "events"))


def _preprocessor() -> dict[str, Any]:
    return {
        "min_pixels": PIXELS[0],
        "max_pixels": PIXELS[1],
        "patch_size": WIDE.patch,
        "temporal_patch_size": 2,
        "merge_size": MERGE,
        "image_mean": MEAN,
        "image_std": STD,
        "image_processor_type": "Qwen2VLImageProcessor",
        "processor_class": "Qwen2_5_VLProcessor",
    }


def _save_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
