"""Hooked mode: stages 3 and 4 inside the model's own generate().

Boundary: one call of generate() and the hooks that it needs.  The vision probe measures stage 3;
stage 4 is the rest of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers.generation import BaseStreamer, StoppingCriteria, StoppingCriteriaList

from engine.decoding import decode
from engine.models.adapter import Adapter, generate_options
from engine.timing import Timeline, Usage, VisionProbe, profiler_range, total
from engine.types import DecodeConfig, Prepared, Stop

MPS_NOTE = "On MPS generate() hands tokens on one step late: TTFT is too long."


def generate(
    adapter: Adapter,
    prepared: Prepared,
    config: DecodeConfig,
    timeline: Timeline,
    on_token: Callable[[int], None],
    cancelled: Callable[[], bool],
) -> tuple[float, Usage]:
    """Adds the vision and decode spans; returns the start of decode and the usage at that time."""
    own = decode.generation_config(config, adapter.eos_ids, adapter.rules, prepared.context_tokens)
    stopping = StoppingCriteriaList([CancelBetweenTokens(cancelled)])
    options = generate_options(own, TokenStreamer(on_token), stopping)
    options["logits_processor"] = [decode.FirstScores()]
    start, before = timeline.mark()
    with (
        profiler_range("generate", adapter.device),
        VisionProbe(adapter.vision_modules(), adapter.device) as probe,
    ):
        adapter.generate(prepared, **options)
    end, after = timeline.mark()
    decode_start, decode_usage = start + probe.ms, after.since(before).since(probe.used)
    timeline.add("vision", start, probe.ms, "hook", used=probe.used)
    timeline.add("decode", decode_start, end - start - probe.ms, "derived", used=decode_usage)
    return decode_start, total([before, probe.used])


def stop_reason(ids: Sequence[int], eos_ids: Sequence[int], max_new_tokens: int) -> Stop:
    if ids and ids[-1] in eos_ids:
        return "eos"
    return "length" if len(ids) >= max_new_tokens else "cancelled"


class TokenStreamer(BaseStreamer):
    """Passes on each new token of generate(); the first call of put() holds the prompt."""

    def __init__(self, on_token: Callable[[int], None]) -> None:
        self._on_token = on_token
        self._prompt_seen = False

    def put(self, value: torch.Tensor) -> None:
        if not self._prompt_seen:
            self._prompt_seen = True
            return
        for token in value.flatten().tolist():
            self._on_token(token)

    def end(self) -> None: ...


class CancelBetweenTokens(StoppingCriteria):
    """Ends a model's own generate() when `cancelled` returns True."""

    def __init__(self, cancelled: Callable[[], bool]) -> None:
        self._cancelled = cancelled

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        size, device = input_ids.shape[0], input_ids.device
        return torch.full((size,), self._cancelled(), dtype=torch.bool, device=device)
