"""Reuse again: TTFT of a second question with and without the prefix in memory.

`python -m benchmarks.again`: the three demo checkpoints on demo scenes, in alternated pairs; each
pair asks one question with everything computed, with features read from disk, and with the cached
prefix.  TTFT includes all stages.

Then longer prefixes: a language model of the demo's size with random weights, prefill of the whole
prompt against prefill of a question of 24 tokens on a copied prefix of 128 to 2,048.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.machine import keep, spread

PAIRS = 15
SAMPLES = 3
QUESTIONS = (
    "What are the key elements in this scene?",
    "Is there a pedestrian in the scene?",
    "What is beside the road?",
)
LENGTHS = (128, 256, 512, 1024, 2048)
QUESTION_TOKENS = 24


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("STAGESCOPE_DEVICE", "cpu")
        os.environ["STAGESCOPE_CACHE_DIR"] = folder
        keep("again", {"models": _models(), "prefix_lengths": _lengths()})


def _models() -> dict[str, Any]:
    from engine import settings
    from engine.demo.demo_dataset import ensure_dataset
    from engine.media import dataset
    from engine.models import registry

    samples = dataset.read(ensure_dataset(settings.load().demo_dir)).samples[:SAMPLES]
    found = {}
    for entry in (one for one in registry.entries() if one.demo):
        found[entry.name] = _model(registry.load(entry), samples)
    return found


def _model(adapter: Any, samples: Any) -> dict[str, Any]:
    from engine.pipeline import feature_cache, single_run
    from engine.pipeline.prefix_cache import Prefixes
    from engine.types import DecodeConfig, RunRequest

    store, short = Prefixes(1024), DecodeConfig(max_new_tokens=8)

    def ask(sample: Any, question: str, **options: Any) -> Any:
        request = RunRequest(sample, adapter.info.name, question, decode=short, **options)
        return single_run.run(adapter, request, feature_cache.shared(), None, store)

    for sample in samples:  # warms up, fills both caches
        ask(sample, "Why?", cache="refresh")
        ask(sample, "Why?", prefix=True)
    kinds: dict[str, dict[str, Any]] = {
        "computed": {"cache": "off"},
        "features_read": {},
        "prefix_reused": {"prefix": True},
    }
    ttft: dict[str, list[float]] = {kind: [] for kind in kinds}
    equal = True
    for index in range(PAIRS):
        sample, question = samples[index % SAMPLES], QUESTIONS[index % len(QUESTIONS)]
        order = list(kinds) if index % 2 == 0 else list(kinds)[::-1]
        runs = {kind: ask(sample, question, **kinds[kind]) for kind in order}
        for kind, one in runs.items():
            ttft[kind].append(one.ttft_ms)
        equal &= len({one.generation.token_ids for one in runs.values()}) == 1
        result = runs["prefix_reused"]
    ratios = {
        kind: _ratio(ttft[kind], ttft["prefix_reused"]) for kind in ("computed", "features_read")
    }
    return {
        "context_tokens": result.generation.prompt_tokens,
        "prefix_tokens": result.prefix.tokens,
        "kept_bytes_each": store.bytes // max(1, len(store)),
        "equal_tokens": equal,
        "ttft_ms": {kind: spread(values) for kind, values in ttft.items()},
        "ttft_times_lower_than": ratios,
    }


def _ratio(slow: list[float], fast: list[float]) -> dict[str, Any]:
    return spread([a / b for a, b in zip(slow, fast, strict=True)])


def _lengths() -> dict[str, Any]:
    """Prefill alone, as prompts grow; copying the kept prefix is in its time."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from engine.decoding import decode
    from engine.pipeline import prefix_cache

    config = LlamaConfig(
        vocab_size=768,
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=6,
        max_position_embeddings=4096,
    )
    model = LlamaForCausalLM(config).eval()
    decoder = decode.Decoder(model.model, model.lm_head, config, (2,))
    found = {}
    with torch.inference_mode():
        for length in LENGTHS:
            whole = torch.randn(1, length + QUESTION_TOKENS, config.hidden_size)
            _, past = decode.prefill(decoder, whole)
            kept = prefix_cache.cut(past, length, {}, False)
            full, again = _alternated(
                partial(decode.prefill, decoder, whole),
                partial(_go_on, decoder, kept, whole[:, length:]),
            )
            found[str(length)] = {
                "full_prefill_ms": spread(full),
                "reused_prefill_ms": spread(again),
                "times_lower": round(statistics.median(_ratios(full, again)), 2),
                "kept_bytes": kept.bytes,
            }
    return found


def _go_on(decoder: Any, kept: Any, question: Any) -> None:
    from engine.decoding import decode

    decode.prefill(decoder, question, kept.begin(decoder.text_config))


def _ratios(full: list[float], again: list[float]) -> list[float]:
    return [a / b for a, b in zip(full, again, strict=True)]


def _alternated(one: Callable[[], Any], two: Callable[[], Any]) -> tuple[list[float], list[float]]:
    """Milliseconds of both, in alternating order, after a warm-up."""
    times: tuple[list[float], list[float]] = ([], [])
    one(), two()
    for index in range(PAIRS):
        for side in (0, 1) if index % 2 == 0 else (1, 0):
            start = time.perf_counter()
            (one, two)[side]()
            times[side].append((time.perf_counter() - start) * 1000)
    return times


if __name__ == "__main__":
    main()
