"""Features of any model between its encoder and its forward(), without a model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from engine.models import transformers_adapter
from engine.models.transformers_adapter import TransformersAdapter
from engine.types import Prepared

PICTURE = 9  # the id of a visual token


def test_nested_features_reach_forward_as_the_encoder_gave_them() -> None:
    adapter: Any = object.__new__(TransformersAdapter)
    adapter.model = SimpleNamespace(config=SimpleNamespace(image_token_id=PICTURE))
    adapter._takes = {"grid", "logits_to_keep"}
    ids = torch.tensor([[1, PICTURE, PICTURE, PICTURE, 2]])
    inputs = {"grid": torch.ones(1), "other": torch.ones(1)}
    prepared = Prepared(torch.zeros(2, 3), ids, "digest", 5, inputs=inputs)
    rows, deep = [torch.ones(2, 4), torch.zeros(1, 4)], [[torch.ones(3, 4)], [torch.zeros(3, 4)]]
    out = SimpleNamespace(pooler_output=tuple(rows), deepstack_features=deep, hidden_states=rows)
    features = transformers_adapter._named_features(out)
    assert adapter.takes(prepared, features)  # a row for each of the three visual tokens
    given = adapter.embed(prepared, features).values
    assert given.keys() == {"input_ids", "grid", "logits_to_keep", "mm_encoder_outputs"}
    image = given["mm_encoder_outputs"]["image"]
    assert image.pooler_output == rows and image["deepstack_features"] == deep
