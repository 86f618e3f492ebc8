"""The last two stages of training: first the language model, then projector and language model.

Boundary: trained towers and a corpus in, trained networks out. The towers stay frozen, so their
features are computed once.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from transformers import CLIPVisionModel, LlamaConfig, LlamaForCausalLM

from engine.analysis.answer_reading import ATTRIBUTES
from engine.demo.scenes import draw_truth
from engine.demo.wordings import VOICES, Voice
from tools.demo_training.corpus import Corpus, truth_of
from tools.demo_training.lessons import (
    QUESTIONS_PER_INPUT,
    AttributeReader,
    draw_lesson,
    lesson_loss,
)
from tools.demo_training.networks import SIGHT, VOICE, DemoNetwork, language_config
from tools.demo_training.tokenizer import FRAMES
from tools.demo_training.towers import Sight, batches, normalise, say, set_rate, tokens_of

Rng = np.random.Generator
Features = npt.NDArray[np.float16]  # (N, images, 37, tower width)
LANGUAGE_RATE, LANGUAGE_BATCH = 2e-3, 16
JOINT_RATE, JOINT_BATCH = 1e-3, 16
PROJECTOR_SCALE = 3.0  # the projector starts from random weights and needs a higher rate
ALONE = 0.12  # share of the steps in which only the projector learns
READER_WEIGHT = 0.5
# For video, the last row must hold its information one layer earlier than the output layer.
READ_AT: dict[Voice, int] = {"image": -1, "event": -1, "video": -2}
MIDDLE = slice(3, 6)  # the frames around the one that the image model gets


class AttributeRows(nn.Module):
    """Visual rows made from the truth instead of pixels, to train the language model."""

    def __init__(self, width: int):
        super().__init__()
        self.starts = np.cumsum([0, *(len(values) + 1 for values in ATTRIBUTES.values())])
        self.table = nn.Embedding(int(self.starts[-1]) + len(VOICES), width)

    def forward(self, truths: Sequence[dict[str, str]], voice: int, rng: Rng) -> Tensor:
        """(B, attributes + 1, width), in a random order for each scene."""
        codes = [[*self._codes(truth), self.starts[-1] + voice] for truth in truths]
        rows = [rng.permutation(line) for line in codes]
        embedded: Tensor = self.table(torch.from_numpy(np.stack(rows)))
        return embedded

    def _codes(self, truth: dict[str, str]) -> list[int]:
        pairs = zip(self.starts, ATTRIBUTES.items(), strict=False)
        return [
            int(start) + (1 + values.index(truth[name]) if name in truth else 0)
            for start, (name, values) in pairs
        ]


def train_language(tokenizer: Any, steps: int) -> LlamaForCausalLM:
    """Trains a Llama to describe given attributes in words, in all three voices."""
    torch.manual_seed(2)
    model = LlamaForCausalLM(LlamaConfig(**language_config(tokenizer)))
    teach_language(model.model, model.lm_head, tokenizer, steps, FRAMES)
    return model


def teach_language(
    language: Any,
    head: nn.Module,
    tokenizer: Any,
    steps: int,
    frames: Mapping[Voice, tuple[str, str]],
) -> None:
    """Trains a decoder and its head in the voices that have a prompt in `frames`."""
    spoken = tuple(frames)
    attribute_rows = AttributeRows(language.config.hidden_size)
    rng = np.random.default_rng(3)
    weights = [*language.parameters(), *head.parameters(), *attribute_rows.parameters()]
    optimiser = torch.optim.AdamW(weights, lr=LANGUAGE_RATE, weight_decay=0.01)
    began = time.monotonic()
    for step in range(steps):
        set_rate(optimiser, LANGUAGE_RATE, step, steps)
        voice = spoken[step % len(spoken)]
        truths: list[Any] = [draw_truth(rng) for _ in range(LANGUAGE_BATCH)]
        voices = [voice] * LANGUAGE_BATCH
        lesson = draw_lesson(tokenizer, truths, voices, rng, QUESTIONS_PER_INPUT, frames)
        with torch.autocast("cpu", torch.bfloat16):
            rows = attribute_rows(truths, VOICES.index(voice), rng)
            loss, _ = lesson_loss(language, language.embed_tokens, head, rows, lesson)
        learn(optimiser, loss, weights)
        if step % 25 == 0 or step == steps - 1:
            lost = float(loss.detach())
            say(f"language: step {step} loss {lost:.3f}, {time.monotonic() - began:.0f} s")


def features_of(tower: CLIPVisionModel, corpus: Corpus, sight: Sight) -> Features:
    """The tower's features of every picture of the corpus."""
    images = corpus.frames if sight == "frames" else corpus.events
    parts = []
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        for start in range(0, len(images), 64):
            pixels = normalise(images[start : start + 64])
            tokens = tokens_of(tower, pixels.flatten(0, 1), sight).float()
            parts.append(tokens.reshape(*pixels.shape[:2], *tokens.shape[1:]).numpy())
    return np.concatenate(parts).astype(np.float16)


def init_first_layer(projector: nn.Module, features: Features) -> None:
    """Initialises the projector's first layer as if its inputs had mean 0 and variance 1."""
    sample = torch.from_numpy(features[:400].astype(np.float32)).flatten(0, -2)
    mean, std = sample.mean(0), sample.std(0).clamp_min(1e-3)
    first = next(layer for layer in projector.modules() if isinstance(layer, nn.Linear))
    with torch.no_grad():
        nn.init.normal_(first.weight, std=sample.shape[1] ** -0.5)
        first.weight /= std
        first.bias.copy_(-(first.weight @ mean))


def train_jointly(
    network: DemoNetwork,
    tokenizer: Any,
    features: Features,
    truth: npt.NDArray[np.int8],
    steps: int,
    fresh: bool = True,
) -> None:
    """Trains projector and language model to answer from features of a frozen tower.

    A fresh projector is trained alone at first, so that it does not harm the language model.
    """
    torch.manual_seed(4)
    if fresh:
        init_first_layer(network.projector, features)
    alone = ALONE * steps if fresh else 0
    width = network.model.get_input_embeddings().embedding_dim
    reader, rng = AttributeReader(width), np.random.default_rng(5)
    speech = [*_language_weights(network), *reader.parameters()]
    groups: list[dict[str, Any]] = [
        {"params": list(network.projector.parameters()), "scale": PROJECTOR_SCALE},
        {"params": speech},
    ]
    optimiser = torch.optim.AdamW(groups, lr=JOINT_RATE, weight_decay=0.01)
    weights = [*network.projector.parameters(), *speech]
    rows, began, shown = batches(len(truth), JOINT_BATCH, rng), time.monotonic(), 0.0
    for step in range(steps):
        set_rate(optimiser, JOINT_RATE, step, steps)
        for weight in _language_weights(network):
            weight.requires_grad_(step >= alone)
        loss = _joint_loss(network, tokenizer, reader, features, truth, next(rows), rng)
        learn(optimiser, loss, weights)
        shown = 0.95 * shown + 0.05 * float(loss.detach()) if step else float(loss.detach())
        if step % 25 == 0 or step == steps - 1:
            say(f"{network.family}: step {step} loss {shown:.3f}, {time.monotonic() - began:.0f} s")


def _language_weights(network: DemoNetwork) -> list[nn.Parameter]:
    """The decoder's weights; EventGPT's decoder also holds its tower and projector."""
    skip = {id(w) for part in (network.tower, network.projector) for w in part.parameters()}
    every = [*network.language.parameters(), *network.head.parameters()]
    return [weight for weight in every if id(weight) not in skip]


def _joint_loss(
    network: DemoNetwork,
    tokenizer: Any,
    reader: AttributeReader,
    features: Features,
    truth: npt.NDArray[np.int8],
    rows: npt.NDArray[np.int64],
    rng: Rng,
) -> Tensor:
    voice = VOICE[network.family]
    shown = features[rows]
    if voice == "image":  # any one of the frames around the middle
        which = rng.integers(MIDDLE.start, MIDDLE.stop, len(rows))
        shown = shown[np.arange(len(rows)), which][:, None]
    truths = [dict(truth_of(truth[row])) for row in rows]
    lesson = draw_lesson(tokenizer, list(truths), [voice] * len(rows), rng, QUESTIONS_PER_INPUT)
    unseen = {"image": ("motion",), "event": ("time of day",), "video": ()}[voice]
    with torch.autocast("cpu", torch.bfloat16):
        visual = network.rows(torch.from_numpy(shown.astype(np.float32)))
        embed = network.language.embed_tokens
        depth = READ_AT[voice]
        loss, state = lesson_loss(network.language, embed, network.head, visual, lesson, depth)
    target = torch.from_numpy(truth[rows].astype(np.int64))
    return loss + READER_WEIGHT * reader.loss(state, target, unseen)


def learn(optimiser: torch.optim.Optimizer, loss: Tensor, weights: list[nn.Parameter]) -> None:
    """One step of the optimiser, with clipped gradients."""
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(weights, 1.0)
    optimiser.step()


def sight_of(network: DemoNetwork) -> Sight:
    """The kind of pictures that the network gets."""
    return SIGHT[network.family]
