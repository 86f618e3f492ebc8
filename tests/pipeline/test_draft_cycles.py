"""Drafts beside the target's own tokens, on a language model that is a table."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import LlamaConfig

from engine.decoding.decode import Decoder
from engine.decoding.generation_rules import AnswerRules
from engine.pipeline.draft_loop import generate
from engine.pipeline.drafts import Cycle
from engine.types import DecodeConfig
from tests.decoding.test_decode import Counting


class Same:
    """Drafts the same tokens in every cycle."""

    def draft(self, ids: Sequence[int], most: int) -> list[int]:
        return [2, 3, 7][:most]


@torch.inference_mode()
def test_a_draft_counts_up_to_its_first_mismatch_and_leaves_room_for_the_targets_token() -> None:
    head = torch.nn.Linear(8, 8, bias=False)
    torch.nn.init.eye_(head.weight)
    target = Decoder(Counting(), head, LlamaConfig(num_hidden_layers=1), ())
    rules = AnswerRules(DecodeConfig(max_new_tokens=6), ())
    seen: list[int] = []
    found = generate(target, torch.zeros(1, 2, 8), rules, Same(), 3, seen.append, lambda: False)
    assert found.ids == seen == [1, 2, 3, 4, 5, 6] and found.stop == "length"
    assert found.cycles == [Cycle((2, 3, 7), 2, 3), Cycle((2,), 0, 1), Cycle((), 0, 1)]
