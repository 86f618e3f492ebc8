"""Trains the Qwen2.5-VL demo checkpoint: tower, language model, then merger and language model.

Boundary: a corpus in, a trained network out. One network learns two kinds of input: one frame, and
the five event pictures of a scene. It answers each as far as that input shows the scene.
"""

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from engine.demo.wordings import Voice
from tools.demo_training.corpus import Corpus, truth_of
from tools.demo_training.joint_training import (
    ALONE,
    JOINT_BATCH,
    JOINT_RATE,
    MIDDLE,
    PROJECTOR_SCALE,
    READER_WEIGHT,
    Rng,
    learn,
)
from tools.demo_training.lessons import (
    QUESTIONS_PER_INPUT,
    AttributeReader,
    draw_lesson,
    lesson_loss,
)
from tools.demo_training.qwen_network import FRAMES, places_of, rows_of
from tools.demo_training.qwen_tower import last_states, merge, patchify
from tools.demo_training.towers import normalise, say, set_rate

VOICES: tuple[Voice, ...] = ("image", "event")
UNSEEN: dict[Voice, tuple[str, ...]] = {"image": ("motion",), "event": ("time of day",)}


def train_qwen(model: Any, tokenizer: Any, halves: tuple[Corpus, Corpus], steps: int) -> None:
    """Trains merger and language model, with both kinds of input by turns; the tower is frozen.

    At first only the merger learns, so that it does not harm the language model.
    """
    torch.manual_seed(4)
    _scale_merger(model, halves[0])
    tower, language = model.model.visual, model.model.language_model
    reader, rng = AttributeReader(language.config.hidden_size), np.random.default_rng(5)
    merger = list(tower.merger.parameters())
    speech = [*language.parameters(), *model.lm_head.parameters()]
    groups: list[dict[str, Any]] = [
        {"params": merger, "scale": PROJECTOR_SCALE},
        {"params": [*speech, *reader.parameters()]},
    ]
    optimiser = torch.optim.AdamW(groups, lr=JOINT_RATE, weight_decay=0.01)
    weights, began = [*merger, *speech, *reader.parameters()], time.monotonic()
    shown = dict.fromkeys(VOICES, 0.0)
    for step in range(steps):
        set_rate(optimiser, JOINT_RATE, step, steps)
        for weight in speech:
            weight.requires_grad_(step >= ALONE * steps)
        voice = VOICES[step % 2]
        loss = _loss(model, tokenizer, reader, halves[step // 2 % 2], voice, rng)
        learn(optimiser, loss, weights)
        lost = float(loss.detach())
        shown[voice] = 0.9 * shown[voice] + 0.1 * lost if step > 1 else lost
        if step % 50 == 1 or step == steps - 1:
            losses = ", ".join(f"{name} {value:.3f}" for name, value in shown.items())
            say(f"qwen: step {step} loss {losses}, {time.monotonic() - began:.0f} s")


def _loss(
    model: Any, tokenizer: Any, reader: AttributeReader, corpus: Corpus, voice: Voice, rng: Rng
) -> Tensor:
    """The loss of one batch of random scenes in one voice."""
    rows = rng.integers(len(corpus), size=JOINT_BATCH)
    pixels = _pixels(corpus, rows, voice, rng)
    truths: list[Any] = [truth_of(corpus.truth[row]) for row in rows]
    voices = [voice] * len(rows)
    lesson = draw_lesson(tokenizer, truths, voices, rng, QUESTIONS_PER_INPUT, FRAMES)
    places = places_of(len(lesson.before), pixels.shape[1])
    language = model.model.language_model
    with torch.autocast("cpu", torch.bfloat16):
        visual = rows_of(model, tokenizer, _tokens(model.model.visual, pixels))
        embed, head = language.embed_tokens, model.lm_head
        loss, state = lesson_loss(language, embed, head, visual, lesson, places=places)
    target = torch.from_numpy(corpus.truth[rows].astype(np.int64))
    return loss + READER_WEIGHT * reader.loss(state, target, UNSEEN[voice])


def _pixels(corpus: Corpus, rows: npt.NDArray[np.int64], voice: Voice, rng: Rng) -> Tensor:
    """(B, images, 3, H, W): any one of the frames around the middle, or all event pictures."""
    if voice == "event":
        return normalise(corpus.events[rows])
    which = rng.integers(MIDDLE.start, MIDDLE.stop, len(rows))
    return normalise(corpus.frames[rows, which])[:, None]


def _tokens(tower: Any, pixels: Tensor) -> Tensor:
    """(B, images, 3, H, W) -> (B, images, cells, width); gradients reach the merger only."""
    with torch.no_grad():
        states, order = last_states(tower, patchify(pixels.flatten(0, 1)))
    tokens = merge(tower, states, order)
    return tokens.reshape(*pixels.shape[:2], *tokens.shape[1:])


@torch.no_grad()
def _scale_merger(model: Any, corpus: Corpus) -> None:
    """Brings visual tokens to variance 1: that of the rows the language model has learned from."""
    tower = model.model.visual
    pictures = np.concatenate([corpus.frames[:64, MIDDLE.start], corpus.events[:64, 0]])
    size = _tokens(tower, normalise(pictures)[:, None]).float().std()
    for weight in tower.merger.mlp[-1].parameters():
        weight.div_(size)
