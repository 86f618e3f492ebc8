"""EventGPT's projector, adaptor and pooling against a frozen reference computed without torch."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.models.eventgpt import EventGPT, EventGPTConfig

REFERENCE = json.loads((Path(__file__).parent / "eventgpt_rows.json").read_text(encoding="utf-8"))
HIDDEN = torch.tensor(REFERENCE["hidden"], dtype=torch.float64)
ROWS = torch.tensor(REFERENCE["rows"], dtype=torch.float64)


@pytest.fixture
def model() -> EventGPT:
    """A network with the reference's weights, whose tower gives the reference's hidden states."""
    width = HIDDEN.shape[-1]
    config = EventGPTConfig(
        vocab_size=8, hidden_size=ROWS.shape[-1], intermediate_size=8, num_hidden_layers=1,
        num_attention_heads=2,
        vision_config={"hidden_size": width, "intermediate_size": 4, "num_hidden_layers": 1,
                       "num_attention_heads": 2, "image_size": 4, "patch_size": 2},
    )  # fmt: skip
    found = EventGPT(config).double()
    inner = found.model
    layers = {
        "projector_0": inner.visual_projector[0],
        "projector_2": inner.visual_projector[2],
        "adaptor": inner.feature_adaptor,
    }
    with torch.no_grad():
        for name, layer in layers.items():
            layer.weight.copy_(torch.tensor(REFERENCE["weights"][name]))
            layer.bias.copy_(torch.tensor(REFERENCE["weights"][f"{name}_bias"]))
    inner.visual_tower = _Given()
    return found.double()


class _Given(torch.nn.Module):
    def forward(self, pixels: Any) -> torch.Tensor:
        return HIDDEN


def test_rows_are_those_of_the_frozen_reference(model: EventGPT) -> None:
    (rows,) = model.encode_batch([torch.zeros(len(HIDDEN), 3, 4, 4, dtype=torch.float64)])
    assert rows.shape == ROWS.shape
    assert float((rows.detach() - ROWS).abs().max()) < 1e-6
