"""The vision towers of the demo checkpoints, trained before the language model.

Boundary: pictures and labels in, a CLIPVisionModel out; no text. Training needs the dense labels of
every patch: with whole-scene labels alone, accuracy stays near chance.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import CLIPVisionConfig, CLIPVisionModel

from engine.analysis.answer_reading import ATTRIBUTES
from engine.demo.camera import KIND, KINDS
from tools.demo_training.corpus import GRID, SIZE, Corpus

Sight = Literal["frames", "events"]
HIDDEN = 128
BATCH = 64
RATE = 1.5e-3
POSITION_STD = 0.4  # large, so that positions differ from the first step on
MEAN = (0.48145466, 0.4578275, 0.40821073)  # CLIP's
STD = (0.26862954, 0.26130258, 0.27577711)
NAMES = tuple(ATTRIBUTES)
SEEN: dict[Sight, tuple[str, ...]] = {  # what one picture can show
    "frames": ("curve", "lead vehicle", "roadside", "guardrail side", "pedestrian", "time of day"),
    "events": ("curve", "lead vehicle", "motion", "roadside", "guardrail side", "pedestrian"),
}


@dataclass(frozen=True, eq=False)
class Pictures:
    """B pictures of one kind with their labels."""

    pixels: Tensor  # (B, 3, height, width) normalised
    patches: Tensor  # (B, patches, kinds) share of each kind, 0..1
    metres: Tensor  # (B,) to the lead vehicle, nan without one
    truth: Tensor  # (B, attributes), -1 if not applicable or not in view


def tower_config(sight: Sight) -> CLIPVisionConfig:
    """For frames one more layer: their features are those before the last layer, as in LLaVA."""
    return CLIPVisionConfig(
        hidden_size=HIDDEN,
        intermediate_size=4 * HIDDEN,
        num_hidden_layers=5 if sight == "frames" else 4,
        num_attention_heads=4,
        image_size=SIZE,
        patch_size=SIZE // GRID,
        projection_dim=HIDDEN,
    )


class Probe(nn.Module):
    """Predicts attributes, distance and patch kinds from a tower's tokens; only for training."""

    def __init__(self, names: tuple[str, ...], width: int = HIDDEN):
        super().__init__()
        self.names = names
        self.norm = nn.LayerNorm(width)
        self.queries = nn.Parameter(torch.randn(len(names) + 1, width) * 0.05)
        self.heads = nn.ModuleList(nn.Linear(width, len(ATTRIBUTES[name])) for name in names)
        self.distance = nn.Linear(width, 1)
        self.patches = nn.Linear(width, len(KINDS))

    def forward(self, tokens: Tensor) -> tuple[list[Tensor], Tensor]:
        """(B, T, width) -> logits per attribute, and (B,) log metres."""
        tokens = self.norm(tokens)
        scores = torch.einsum("qd,btd->bqt", self.queries, tokens)
        pooled = torch.einsum("bqt,btd->bqd", scores.softmax(-1), tokens)
        logits = [head(pooled[:, n]) for n, head in enumerate(self.heads)]
        return logits, self.distance(pooled[:, -1])[:, 0]

    def loss(self, tokens: Tensor, truth: Tensor, metres: Tensor) -> Tensor:
        """Cross-entropy per attribute plus the error of the log distance."""
        logits, distance = self(tokens)
        total = torch.zeros(())
        for name, guess in zip(self.names, logits, strict=True):
            target = truth[:, NAMES.index(name)]
            if bool((target >= 0).any()):
                total = total + F.cross_entropy(guess, target, ignore_index=-1)
        known = ~metres.isnan()
        if bool(known.any()):
            total = total + 4.0 * F.smooth_l1_loss(distance[known], metres[known].log())
        return total

    def patch_loss(self, tokens: Tensor, shares: Tensor) -> Tensor:
        """Which kinds appear in each patch; CLIP's CLS comes before them."""
        logits = self.patches(self.norm(tokens))[:, -shares.shape[1] :]
        return F.binary_cross_entropy_with_logits(logits, (shares > 0.03).float()) * 4.0


def normalise(images: npt.NDArray[np.uint8]) -> Tensor:
    """(..., H, W, 3) uint8 -> (..., 3, H, W) float, as CLIP's processor does."""
    pixels = torch.from_numpy(np.ascontiguousarray(images)).float() / 255
    return ((pixels - torch.tensor(MEAN)) / torch.tensor(STD)).movedim(-1, -3)


def draw_pictures(
    corpus: Corpus, sight: Sight, rng: np.random.Generator, scenes: int, whole: bool
) -> Pictures:
    """One random picture of each of `scenes` random scenes; with `whole` all pictures of each."""
    images = corpus.frames if sight == "frames" else corpus.events
    shares = corpus.frame_patches if sight == "frames" else corpus.event_patches
    metres = corpus.frame_metres if sight == "frames" else corpus.event_metres
    per_scene = images.shape[1]
    rows = rng.integers(len(corpus), size=scenes)
    which = rng.integers(per_scene, size=scenes)
    if whole:
        rows, which = np.repeat(rows, per_scene), np.tile(np.arange(per_scene), scenes)
    share = shares[rows, which].astype(np.float32) / 255
    share = share.reshape(len(rows), -1, share.shape[-1])
    truth = corpus.truth[rows].astype(np.int64)
    walker = NAMES.index("pedestrian")
    unseen = (truth[:, walker] > 0) & (share[..., KIND["person"]].sum(1) < 0.1)
    truth[unseen, walker] = -1  # has left this picture
    return Pictures(
        pixels=normalise(images[rows, which]),
        patches=torch.from_numpy(share),
        metres=torch.from_numpy(metres[rows, which].astype(np.float32)),
        truth=torch.from_numpy(truth),
    )


def new_tower(sight: Sight) -> CLIPVisionModel:
    """A tower with random weights."""
    tower = CLIPVisionModel(tower_config(sight))
    nn.init.normal_(tower.embeddings.position_embedding.weight, std=POSITION_STD)
    return tower


def tokens_of(tower: CLIPVisionModel, pixels: Tensor, sight: Sight) -> Tensor:
    """(B, 37, hidden): the last layer for events, the one before it for frames."""
    if sight == "events":
        return cast(Tensor, tower(pixels).last_hidden_state)
    return cast(Tensor, tower(pixels, output_hidden_states=True).hidden_states[-2])


def train_tower(sight: Sight, halves: tuple[Corpus, Corpus], steps: int) -> CLIPVisionModel:
    """A trained tower; `halves` are the corpus and its mirror image."""
    torch.manual_seed(1)
    tower, probe = new_tower(sight), Probe(SEEN[sight])
    learner = _short(tower) if sight == "frames" else tower
    weights = [*learner.parameters(), *probe.parameters()]
    rng = np.random.default_rng(7)
    optimiser = torch.optim.AdamW(weights, lr=RATE, weight_decay=0.05)
    began, shown = time.monotonic(), 0.0
    for step in range(steps):
        set_rate(optimiser, RATE, step, steps)
        batch = draw_pictures(halves[step % 2], sight, rng, BATCH, whole=False)
        with torch.autocast("cpu", torch.bfloat16):
            tokens = learner(batch.pixels).last_hidden_state
        tokens = tokens.float()
        loss = probe.loss(tokens, batch.truth, batch.metres)
        loss = loss + probe.patch_loss(tokens, batch.patches)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimiser.step()
        shown = 0.98 * shown + 0.02 * float(loss.detach()) if step else float(loss.detach())
        if step % 200 == 0 or step == steps - 1:
            say(f"tower {sight}: step {step} loss {shown:.3f}, {time.monotonic() - began:.0f} s")
    tower.eval()
    say(f"tower {sight}: {accuracy(tower, probe, halves[0], sight)}")
    return tower


def accuracy(
    tower: CLIPVisionModel, probe: Probe, corpus: Corpus, sight: Sight
) -> dict[str, float]:
    """The probe's accuracy for each attribute, from one picture."""
    rng = np.random.default_rng(11)
    batch = draw_pictures(corpus, sight, rng, 300, whole=False)
    with torch.inference_mode():
        logits, _ = probe(tokens_of(tower, batch.pixels, sight))
    return correct(probe, logits, batch.truth)


def correct(probe: Probe, logits: list[Tensor], truth: Tensor) -> dict[str, float]:
    """The share of right guesses for each attribute of the probe."""
    found = {}
    for name, guess in zip(probe.names, logits, strict=True):
        target = truth[:, NAMES.index(name)]
        right = (guess.argmax(-1) == target)[target >= 0]
        found[name] = round(float(right.float().mean()), 3)
    return found


def set_rate(optimiser: torch.optim.Optimizer, rate: float, step: int, steps: int) -> None:
    """A short warm-up, then a cosine to zero, times the `scale` of a group."""
    warm = max(1, steps // 30)
    done = (step - warm) / (steps - warm)
    share = step / warm if step < warm else 0.5 * (1 + np.cos(np.pi * done))
    for group in optimiser.param_groups:
        group["lr"] = rate * float(share) * group.get("scale", 1.0)


def say(line: str) -> None:
    """Progress goes to standard error."""
    print(line, file=sys.stderr, flush=True)


def _short(tower: CLIPVisionModel) -> CLIPVisionModel:
    """The tower without its last layer, which RGB models do not use."""
    config = tower_config("frames")
    config.num_hidden_layers -= 1
    short = CLIPVisionModel(config)
    short.embeddings, short.pre_layrnorm = tower.embeddings, tower.pre_layrnorm
    short.encoder.layers = tower.encoder.layers[:-1]
    return short


def batches(count: int, size: int, rng: np.random.Generator) -> Iterator[npt.NDArray[np.int64]]:
    """Endless shuffled rows, `size` at a time."""
    while True:
        order = rng.permutation(count)
        yield from (order[at : at + size] for at in range(0, count - size + 1, size))
