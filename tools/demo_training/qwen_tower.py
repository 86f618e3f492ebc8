"""Qwen2.5-VL's vision tower in small: its form, and its training on frames and event pictures.

Boundary: pictures and labels in, a trained tower out; no text. `encode` computes what the class's
own forward computes, for many pictures of one size at once, which is several times faster.
"""

import time
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLVisionConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import (
    Qwen2_5_VisionTransformerPretrainedModel,
    apply_rotary_pos_emb_vision,
)
from transformers.vision_utils import get_vision_position_ids, get_vision_window_index

from tools.demo_training.corpus import WIDE, Corpus
from tools.demo_training.towers import (
    SEEN,
    Pictures,
    Probe,
    Sight,
    correct,
    draw_pictures,
    say,
    set_rate,
)

Tower = Any  # the decorators of the class hide its type
MERGE = 2  # patches per side of a cell; a cell is one visual token
CELLS = WIDE.rows // MERGE, WIDE.columns // MERGE
TOKENS = CELLS[0] * CELLS[1]
WINDOW = 4  # patches per side of a window, for the layers without full attention
HIDDEN, WIDTH = 128, 192  # of the tower, and of the language model
BATCH = 32  # pictures of each kind in one step
RATE = 1.5e-3
SIGHTS: tuple[Sight, ...] = ("frames", "events")


def vision_config() -> Qwen2_5_VLVisionConfig:
    """The published settings, smaller. Windows divide the grid of a picture without remainder."""
    return Qwen2_5_VLVisionConfig(
        depth=5,
        hidden_size=HIDDEN,
        intermediate_size=352,
        num_heads=4,
        patch_size=WIDE.patch,
        spatial_merge_size=MERGE,
        temporal_patch_size=2,
        window_size=WINDOW * WIDE.patch,
        fullatt_block_indexes=[1, 3, 4],
        out_hidden_size=WIDTH,
    )


def grid_of(pictures: int) -> Tensor:
    """(pictures, 3): frames, rows and columns of patches of each."""
    return torch.tensor([[1, WIDE.rows, WIDE.columns]]).expand(pictures, 3)


def patchify(pixels: Tensor) -> Tensor:
    """(B, 3, H, W) -> (B, patches, 3 * 2 * 14 * 14), in the order of Qwen's image processor."""
    size, (rows, columns) = WIDE.patch, CELLS
    cut = pixels.reshape(len(pixels), 3, rows, MERGE, size, columns, MERGE, size)
    cut = cut.permute(0, 2, 5, 3, 6, 1, 4, 7)[:, :, :, :, :, :, None]
    twice = cut.expand(*cut.shape[:6], 2, size, size)  # a picture is two equal frames
    return twice.reshape(len(pixels), WIDE.rows * WIDE.columns, -1)


def encode(tower: Tower, patches: Tensor) -> tuple[Tensor, Tensor]:
    """(B, patches, values) -> the last layer's states, and the visual tokens in picture order.

    The states are (B, patches, hidden) in window order; the tokens are (B, cells, width).
    """
    states, order = last_states(tower, patches)
    return states, merge(tower, states, order)


def merge(tower: Tower, states: Tensor, order: Tensor) -> Tensor:
    """The merger: four patches become one visual token."""
    tokens: Tensor = tower.merger.mlp(tower.merger.ln_q(states).reshape(len(states), TOKENS, -1))
    return tokens[:, torch.argsort(order)]


def last_states(tower: Tower, patches: Tensor) -> tuple[Tensor, Tensor]:
    """(B, patches, hidden) in window order, and that order of the cells."""
    order = _order(tower)
    states = F.linear(patches, tower.patch_embed.proj.weight.flatten(1))
    places = tower.rotary_pos_emb(states, get_vision_position_ids(grid_of(1), MERGE))
    cos, sin = (_in_windows(angle[None], order)[0] for angle in places)
    states = _in_windows(states, order)
    for number, block in enumerate(tower.blocks):
        reach = states.shape[1] if number in tower.fullatt_block_indexes else WINDOW**2
        states = states + _attend(block.attn, block.norm1(states), (cos, sin), reach)
        states = states + block.mlp(block.norm2(states))
    return states, order


def _order(tower: Tower) -> Tensor:
    """(cells,) the order in which the tower works on a picture's cells: window by window."""
    order: Tensor = get_vision_window_index(grid_of(1), MERGE, tower.window_size, WIDE.patch)[0]
    return order


def _in_windows(patches: Tensor, order: Tensor) -> Tensor:
    """(B, patches, any): the cells' patches in the given order of cells."""
    cells = patches.reshape(len(patches), TOKENS, MERGE**2, -1)
    return cells[:, order].flatten(1, 2)


def _attend(layer: Any, states: Tensor, places: tuple[Tensor, Tensor], reach: int) -> Tensor:
    """Attention among each `reach` patches that follow each other."""
    count, length, width = states.shape
    qkv = layer.qkv(states).reshape(count, length, 3, layer.num_heads, -1)
    query, key = apply_rotary_pos_emb_vision(qkv[:, :, 0], qkv[:, :, 1], *places)
    parts = (query.to(states.dtype), key.to(states.dtype), qkv[:, :, 2])
    query, key, value = (
        part.reshape(-1, reach, layer.num_heads, layer.head_dim).transpose(1, 2) for part in parts
    )
    scores = torch.matmul(query * layer.scaling, key.transpose(2, 3)).softmax(-1)
    seen = torch.matmul(scores.to(value.dtype), value)
    out: Tensor = layer.proj(seen.transpose(1, 2).reshape(count, length, width))
    return out


class Teacher(nn.Module):
    """The probes of one kind of picture; only for training.

    Patch kinds are read from the last layer, attributes and distance from the visual tokens, so
    that the merger learns to pass on what the language model will need.
    """

    def __init__(self, sight: Sight):
        super().__init__()
        self.patches, self.whole = Probe((), HIDDEN), Probe(SEEN[sight], WIDTH)

    def loss(self, tower: Tower, batch: Pictures) -> Tensor:
        """The sum of both probes' losses."""
        with torch.autocast("cpu", torch.bfloat16):
            states, tokens = encode(tower, patchify(batch.pixels))
        shares = _in_windows(_by_cells(batch.patches), _order(tower))
        dense = self.patches.patch_loss(states.float(), shares)
        return dense + self.whole.loss(tokens.float(), batch.truth, batch.metres)


def _by_cells(patches: Tensor) -> Tensor:
    """(B, patches, any) from rows of patches to cells, as in `patchify`."""
    rows, columns = CELLS
    cut = patches.reshape(len(patches), rows, MERGE, columns, MERGE, -1).transpose(2, 3)
    return cut.reshape(len(patches), rows * columns * MERGE**2, -1)


def train_qwen_tower(halves: tuple[Corpus, Corpus], steps: int) -> Tower:
    """A trained tower; `halves` are the corpus and its mirror image."""
    torch.manual_seed(1)
    tower, teachers = (
        Qwen2_5_VisionTransformerPretrainedModel(vision_config()),
        {sight: Teacher(sight) for sight in SIGHTS},
    )
    weights = [*tower.parameters(), *(w for t in teachers.values() for w in t.parameters())]
    rng = np.random.default_rng(7)
    optimiser = torch.optim.AdamW(weights, lr=RATE, weight_decay=0.05)
    began, shown = time.monotonic(), 0.0
    for step in range(steps):
        set_rate(optimiser, RATE, step, steps)
        optimiser.zero_grad()
        for sight, teacher in teachers.items():
            batch = draw_pictures(halves[step % 2], sight, rng, BATCH, whole=False)
            loss = teacher.loss(tower, batch)
            loss.backward()  # type: ignore[no-untyped-call]
            shown += 0.01 * (float(loss.detach()) - shown) if step else float(loss.detach()) / 2
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimiser.step()
        if step % 100 == 0 or step == steps - 1:
            say(f"tower qwen: step {step} loss {shown:.3f}, {time.monotonic() - began:.0f} s")
        if step % 400 == 399 or step == steps - 1:
            for sight, teacher in teachers.items():
                say(f"tower qwen, {sight}: {_accuracy(tower, teacher, halves[0], sight)}")
    return tower.eval()


@torch.inference_mode()
def _accuracy(tower: Tower, teacher: Teacher, corpus: Corpus, sight: Sight) -> dict[str, float]:
    """The probe's accuracy for each attribute, from one picture."""
    batch = draw_pictures(corpus, sight, np.random.default_rng(11), 300, whole=False)
    logits, _ = teacher.whole(encode(tower, patchify(batch.pixels))[1])
    return correct(teacher.whole, logits, batch.truth)
