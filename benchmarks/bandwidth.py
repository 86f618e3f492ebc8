"""Memory bandwidth of a device, measured by a copy, and the share of it that decoding uses.

Boundary: computes from runs and from one timed copy; builds and runs no model.
"""

import statistics
import time
from collections.abc import Iterable, Sequence

import torch

from engine.machine import device
from engine.models.adapter import Adapter
from engine.timing import synchronizer
from engine.types import RunResult

COPIES = 10
KV_PAIR = 2  # keys and values


def mbu(adapter: Adapter, runs: Sequence[RunResult], gb_per_s: float) -> dict[str, float]:
    """Model bandwidth utilisation as in gpt-fast: bytes read per second over the device's
    bandwidth.

    A token reads the language model's weights (of the embedding only one row), and the keys and
    values of the context so far: on average those of the prompt and of half the answer.
    """
    decoder, text = adapter.decoder, adapter.text_config
    modules = (decoder.language_model, decoder.head)
    read = {id(w): w.nbytes for module in modules for w in module.parameters()}
    for visual in adapter.vision_modules():  # EventGPT's tower lies inside its language model
        for weight in visual.parameters():
            read.pop(id(weight), None)
    read.pop(id(decoder.language_model.get_input_embeddings().weight), None)  # type: ignore[operator]
    each = KV_PAIR * text.num_hidden_layers * text.num_key_value_heads * text.head_dim
    tokens = (runs[0].generation.prompt_tokens or 0) + len(runs[0].generation.token_ids) / 2
    kv_bytes = each * adapter.dtype.itemsize * tokens
    rate = statistics.median(complete(run.tokens_per_s for run in runs))
    weights = sum(read.values())
    return {
        "weight_bytes_per_token": weights,
        "kv_bytes_per_token": round(kv_bytes),
        "gb_per_s": round((weights + kv_bytes) * rate / 1e9, 2),
        "of_copy": round((weights + kv_bytes) * rate / 1e9 / gb_per_s, 4),
    }


def copy_speed(on: torch.device) -> float:
    """GB/s of a copy on the device, read and write both counted; the median of several."""
    free = {one.device: one.free for one in device.memories()}
    room = free.get(f"{on.type}:{on.index or 0}" if on.type != "cpu" else "cpu", 2**30)
    size = min(2**28 if on.type == "cpu" else 2**30, room // 8)
    source = torch.ones(size, dtype=torch.uint8, device=on)
    target, wait = torch.empty_like(source), synchronizer(on)
    seconds = []
    for _ in range(COPIES + 1):
        wait()
        start = time.perf_counter()
        target.copy_(source)
        wait()
        seconds.append(time.perf_counter() - start)
    return round(2 * size / statistics.median(seconds[1:]) / 1e9, 2)


def span_ms(run: RunResult, name: str) -> float | None:
    span = run.span(name)
    return span.ms if span else None


def complete(values: Iterable[float | None]) -> list[float]:
    """The values; raises if one is missing."""
    found: list[float] = []
    for value in values:
        if value is None:
            raise RuntimeError("a run lacks a figure that every run has")
        found.append(value)
    return found
