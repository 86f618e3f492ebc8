"""What a compiler sees of the step's parts on an accelerator; test_compiled.py compares answers.

The tensors have no memory (device "meta"), so every tensor that lies elsewhere stands out.
"""

from typing import Any

import pytest
import torch
from torch import nn

from engine.decoding import compiled
from engine.decoding.llama import Layer, Llama

WIDE, INNER, WORDS, HEADS, ROOM = 64, 96, 128, 2, 256


class Rotary(nn.Module):
    def forward(self, like: torch.Tensor, positions: torch.Tensor) -> Any:
        made = like.new_empty(1, positions.shape[1], WIDE // HEADS)
        return made, made


def empty(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.bfloat16, device="meta")


def model(layers: int) -> tuple[Llama, torch.Tensor]:
    square, tall = (WIDE, WIDE), (INNER, WIDE)
    shapes = ((WIDE,), square, square, square, square, (WIDE,), tall, tall, (WIDE, INNER))
    made = tuple(Layer(*(empty(*shape) for shape in shapes)) for _ in range(layers))
    embedding, head = empty(WORDS, WIDE), empty(WORDS, WIDE)
    return Llama(embedding, made, empty(WIDE), 1e-5, HEADS, WIDE // HEADS, Rotary()), head


class Graphs:
    """A compiler that keeps the graphs and runs them as they are."""

    def __init__(self) -> None:
        self.all: list[torch.fx.GraphModule] = []

    def __call__(self, graph: torch.fx.GraphModule, inputs: Any) -> Any:
        self.all.append(graph)
        return graph.forward

    def devices(self) -> set[str]:
        """Where the tensors of all nodes lie."""
        nodes = (node for graph in self.all for node in graph.graph.nodes)
        values = (node.meta.get("example_value") for node in nodes)
        return {value.device.type for value in values if isinstance(value, torch.Tensor)}


@torch.inference_mode()
def run(layers: int, monkeypatch: pytest.MonkeyPatch) -> Graphs:
    """Two steps in parts, as on CUDA."""
    graphs, (llama, head) = Graphs(), model(layers)
    monkeypatch.setattr(compiled, "COMPILER", graphs)
    cuda = torch.device("cuda")  # options only; nothing is allocated there
    step = compiled.step(llama, head, [2], 512, lambda part: compiled._compile(part, cuda))
    shape = (HEADS, ROOM, WIDE // HEADS)
    keys, values = ([empty(*shape) for _ in range(layers)] for _ in range(2))
    token, position, held = (torch.empty(1, dtype=torch.long, device="meta") for _ in range(3))
    for _ in range(2):
        scores, best = step(token, position, held, keys, values)
    assert (scores.shape, scores.dtype, best.shape) == ((1, WORDS), torch.float32, (1,))
    return graphs


@pytest.mark.loads
def test_all_layers_share_one_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [len(run(layers, monkeypatch).all) for layers in (1, 12)] == [3, 3]


@pytest.mark.loads
def test_nothing_lies_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CUDA graph cannot contain such a tensor."""
    assert run(2, monkeypatch).devices() == {"meta"}
    attend = compiled._attend

    def faulty(q: torch.Tensor, keys: torch.Tensor, *more: torch.Tensor) -> torch.Tensor:
        return attend(q, keys, *more) * torch.tensor(1.0)

    monkeypatch.setattr(compiled, "_attend", faulty)
    assert run(2, monkeypatch).devices() == {"meta", "cpu"}


@pytest.mark.loads
def test_what_waits_for_the_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    times = compiled._times

    def faulty(weight: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
        return times(weight, vector) if vector.sum() > 0 else vector

    monkeypatch.setattr(compiled, "_times", faulty)
    with pytest.raises(Exception, match=r"[Dd]ata-dependent"):
        run(1, monkeypatch)
