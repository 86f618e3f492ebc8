"""Decoding with the demo checkpoints: generate(), the own eager loop, the compiled step.

`python -m benchmarks.decoding`: the same embeddings are decoded by each, by turns, with a fixed
number of new tokens; CPU time and wall, medians of pairs and their ratio to generate().  Then what
compiling costs with an empty folder and with a filled one, each in a process of its own, and what
one token costs after more tokens and after longer prompts.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.machine import keep, spread

if TYPE_CHECKING:
    import torch

    from engine.models.adapter import Adapter
    from engine.types import Sample

QUESTION = "What are the key elements in this scene?"
PAIRS, TOKENS = 11, 48
LENGTHS = (16, 32, 64, 128, 256)
CONTEXTS = (64, 256, 512, 1024)
GROWTH_TOKENS, GROWTH_TURNS = 32, 5

# embeddings, tokens -> CPU seconds of the process when each token came
Way = Callable[["torch.Tensor", int], list[float]]
Ways = dict[str, Way]


def main() -> None:
    os.environ.setdefault("STAGESCOPE_DEVICE", "cpu")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["STAGESCOPE_CACHE_DIR"] = folder
        if sys.argv[1:2] == ["--compile"]:
            os.environ["STAGESCOPE_CACHE_DIR"] = sys.argv[2]
            print(json.dumps(_compile_once()))
            return
        figures = {"compiling": _compiling(folder), **_measure()}
    keep("decoding", figures)


def _compiling(folder: str) -> dict[str, Any]:
    """Seconds until the step is ready: nothing on disk, then what the first process left there."""
    command = [sys.executable, "-m", "benchmarks.decoding", "--compile", folder]
    found = {}
    for name in ("cold", "from_disk"):
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found[name] = json.loads(done.stdout.splitlines()[-1])
    return found


def _compile_once() -> dict[str, float]:
    """Wall seconds of each model's step; the shapes are equal, so that the first one's serves."""
    seconds = {}
    for adapter in _adapters():
        start = time.perf_counter()
        _step(adapter, 256)
        seconds[adapter.info.name] = round(time.perf_counter() - start, 2)
    return seconds


def _measure() -> dict[str, Any]:
    import torch

    from engine import settings
    from engine.demo.demo_dataset import ensure_dataset
    from engine.media import dataset

    sample = dataset.read(ensure_dataset(settings.load().demo_dir)).samples[0]
    with torch.inference_mode():
        models = {adapter.info.name: _model(adapter, sample) for adapter in _adapters()}
    return {"threads": torch.get_num_threads(), "models": models}


def _adapters() -> list[Adapter]:
    from engine.models import registry

    return [registry.load(entry) for entry in registry.entries() if entry.demo]


def _model(adapter: Adapter, sample: Sample) -> dict[str, Any]:
    embeds, ways = _embeds(adapter, sample), _ways(adapter)
    print(f"{adapter.info.name} ...", file=sys.stderr, flush=True)
    return {
        "context": embeds.shape[1],
        "new_tokens": TOKENS,
        "answer": _against(ways, embeds, TOKENS, PAIRS),
        "prefill_ms": spread([1000 * _prefill(adapter, embeds)[0] for _ in range(PAIRS)]),
        "step_cpu_ms_by_new_tokens": _by_length(ways, embeds),
        "step_cpu_ms_by_context": _by_context(ways, embeds),
    }


def _embeds(adapter: Adapter, sample: Sample) -> torch.Tensor:
    import torch

    from engine import media

    prepared = adapter.preprocess(media.load(sample, adapter.kind), QUESTION)
    embeds = adapter.embed(prepared, adapter.encode(prepared))
    assert isinstance(embeds, torch.Tensor)
    return embeds


def _ways(adapter: Adapter) -> Ways:
    """The ways to decode; each gives a fixed number of tokens."""
    import torch
    from transformers.generation import BaseStreamer

    from engine.decoding import decode
    from engine.decoding.generation_rules import AnswerRules
    from engine.types import DecodeConfig

    class Stamps(BaseStreamer):
        def __init__(self) -> None:
            self.times: list[float] = []

        def put(self, value: Any) -> None:
            self.times.append(time.process_time())

        def end(self) -> None: ...

    def rules(tokens: int) -> AnswerRules:
        return AnswerRules(DecodeConfig(tokens, tokens), adapter.eos_ids)

    def generate(embeds: torch.Tensor, tokens: int) -> list[float]:
        config = decode.generation_config(rules(tokens))
        mask, stamps = torch.ones(embeds.shape[:2], dtype=torch.long), Stamps()
        adapter.model.generate(
            inputs_embeds=embeds, attention_mask=mask, generation_config=config, streamer=stamps
        )
        return stamps.times[1:]  # the prompt comes first

    def own(embeds: torch.Tensor, tokens: int, steps: Any = None) -> list[float]:
        times: list[float] = []
        decode.generate(
            adapter.decoder,
            embeds,
            rules(tokens),
            lambda _: times.append(time.process_time()),
            lambda: False,
            steps,
        )
        return times

    def compiled(embeds: torch.Tensor, tokens: int) -> list[float]:
        return own(embeds, tokens, _step(adapter, embeds.shape[1] + tokens))

    return {"generate": generate, "eager": own, "compiled": compiled}


def _step(adapter: Adapter, tokens: int) -> Any:
    """The compiled step, ready for so many tokens: outside of what is timed."""
    from engine.decoding.compiled import CompiledStep

    adapter.compiled = adapter.compiled or CompiledStep(adapter.decoder)
    adapter.compiled.ready(tokens)
    if adapter.compiled.failure:
        raise SystemExit(f"The step cannot be compiled here: {adapter.compiled.failure}")
    return adapter.compiled


def _against(ways: Ways, embeds: torch.Tensor, tokens: int, pairs: int) -> dict[str, Any]:
    """Prefill and all tokens: each way by turns, and its ratio to generate() of the same turn."""
    cpu: dict[str, list[float]] = {name: [] for name in ways}
    wall: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(pairs + 1):
        for name, way in ways.items():
            seconds = _timed(way, embeds, tokens)
            if turn:  # the first one warms up
                cpu[name].append(seconds[0])
                wall[name].append(seconds[1])
    return {
        "cpu_ms": {name: spread([1000 * one for one in cpu[name]]) for name in ways},
        "wall_ms": {name: spread([1000 * one for one in wall[name]]) for name in ways},
        "generate_over_cpu": {n: spread(_ratios(cpu["generate"], cpu[n])) for n in ways},
        "generate_over_wall": {n: spread(_ratios(wall["generate"], wall[n])) for n in ways},
    }


def _ratios(slow: list[float], fast: list[float]) -> list[float]:
    return [a / b for a, b in zip(slow, fast, strict=True)]


def _timed(way: Way, embeds: torch.Tensor, tokens: int) -> tuple[float, float]:
    """CPU and wall seconds of one answer; the tokens are counted, since fewer would be faster."""
    cpu, wall = time.process_time(), time.perf_counter()
    came = len(way(embeds, tokens))
    taken = time.process_time() - cpu, time.perf_counter() - wall
    if came != tokens:
        raise RuntimeError(f"{came} tokens were generated, but {tokens} were requested")
    return taken


def _prefill(adapter: Adapter, embeds: torch.Tensor) -> tuple[float, Any]:
    from engine.decoding import decode

    start = time.process_time()
    out = decode.prefill(adapter.decoder, embeds)
    return time.process_time() - start, out


def _by_length(ways: Ways, embeds: torch.Tensor) -> dict[str, Any]:
    """CPU milliseconds of one token after the first, in answers of growing length."""
    found = {str(tokens): _per_token(ways, embeds, tokens) for tokens in LENGTHS}
    return {name: {tokens: one[name] for tokens, one in found.items()} for name in ways}


def _by_context(ways: Ways, embeds: torch.Tensor) -> dict[str, Any]:
    """The same after prompts of growing length: the prompt repeated and cut."""
    found = {}
    for context in CONTEXTS:
        rows = embeds.repeat(1, -(-context // embeds.shape[1]), 1)[:, :context]
        found[str(context)] = _per_token(ways, rows, GROWTH_TOKENS)
    return {name: {context: one[name] for context, one in found.items()} for name in ways}


def _per_token(ways: Ways, embeds: torch.Tensor, tokens: int) -> dict[str, float]:
    """Milliseconds of each way, from the first token to the last over those between; by turns."""
    each: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(GROWTH_TURNS + 1):
        for name, way in ways.items():
            times = way(embeds, tokens)
            if turn:
                each[name].append(1000 * (times[-1] - times[0]) / (tokens - 1))
    return {name: round(statistics.median(values), 4) for name, values in each.items()}


if __name__ == "__main__":
    main()
