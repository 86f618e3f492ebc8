"""Pixels of a picture small enough to work out by hand."""

from __future__ import annotations

import numpy as np
import torch
from transformers import CLIPImageProcessorPil

from engine.models import pixels


def test_the_middle_is_cropped_and_each_channel_has_its_own_mean_and_deviation() -> None:
    processor = CLIPImageProcessorPil(
        size={"shortest_edge": 4},
        crop_size={"height": 2, "width": 4},
        image_mean=[0.5, 0.4, 0.3],
        image_std=[0.5, 0.1, 0.9],
    )
    settings = pixels.known_settings(processor)
    assert settings is not None
    grey = np.arange(32, dtype=np.uint8).reshape(4, 8)  # its shorter side is 4: nothing is resized
    found = settings.pixels([np.stack([grey, grey + 100, grey + 200], axis=-1)])
    middle = torch.tensor([[10.0, 11, 12, 13], [18, 19, 20, 21]])
    wanted = [
        ((middle + 100 * channel) / 255 - mean) / deviation
        for channel, (mean, deviation) in enumerate([(0.5, 0.5), (0.4, 0.1), (0.3, 0.9)])
    ]
    assert found is not None and found.dtype == torch.float32
    torch.testing.assert_close(found, torch.stack(wanted)[None])
