"""The app's own path at real size: loading with memory planning, caches, the clock, a full memory.

`python -m benchmarks.accelerator.app_path FOLDER --out FILE` works on what prepare.py wrote into
the folder, through the registry, as the app and the command line do.  A section that fails is
noted with its error, and the others go on; the exit code is then 1.

Boundary: asks the engine and compares its answers; makes no files but the figures.
"""

import argparse
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks import machine
from benchmarks.accelerator.prepare import MODELS, NAMES, SCENES
from benchmarks.bandwidth import complete, span_ms
from benchmarks.full_size import forget_peak
from engine import media, timing
from engine.errors import OutOfMemory, StageScopeError
from engine.machine import device
from engine.media import dataset
from engine.models import families, registry
from engine.models.adapter import Adapter
from engine.pipeline import feature_cache, single_run
from engine.prompts import DEFAULT_QUESTION
from engine.types import DecodeConfig, Prepared, RunOptions, RunRequest, RunResult, Sample

LEFT = 4 * 2**20  # bytes that are left free where a run must not fit
NOT_HERE = "only CUDA has a memory of its own that can be limited"
ALL = tuple(name for name, _ in NAMES.values())


@dataclass(frozen=True)
class Setup:
    """What every section works with."""

    on: torch.device
    samples: Sequence[Sample]
    tokens: int
    repeat: int
    limit: int  # bytes, where one model must make room for the next

    def ask(self, name: str, **more: Any) -> RunResult:
        return ask(registry.load(registry.entry(name)), self.samples[0], self.tokens, **more)


def ask(adapter: Adapter, sample: Sample, tokens: int, **more: Any) -> RunResult:
    """An answer of fixed length, by the eager step unless told otherwise."""
    decode = DecodeConfig(tokens, tokens, backend=more.pop("backend", "eager"))
    request = RunRequest(
        sample, adapter.info.name, DEFAULT_QUESTION, RunOptions(decode=decode, **more)
    )
    return single_run.run(adapter, request, feature_cache.shared())


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--limit-gb", type=float, default=24.0, help="10^9 bytes; of a small card")
    parser.add_argument("--only", default=",".join(SECTIONS), help="comma-separated sections")
    options = parser.parse_args(arguments)
    if unknown := set(options.only.split(",")) - set(SECTIONS):
        parser.error(f"--only knows {', '.join(SECTIONS)}, not {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["STAGESCOPE_CACHE_DIR"] = cache  # nothing is read that an earlier run kept
        os.environ["STAGESCOPE_MODELS"] = str(options.folder / MODELS)
        try:
            found = _sections(_setup(options), options.only.split(","))
        except StageScopeError as error:
            parser.error(str(error))
    machine.write(options.out, {"device": str(device.choose()), "sections": found})
    sys.exit(any("failed" in one for one in found.values()))


def _setup(options: argparse.Namespace) -> Setup:
    samples = dataset.read(options.folder / SCENES).samples
    limit = int(options.limit_gb * 1e9)
    return Setup(device.choose(), samples, options.tokens, options.repeat, limit)


def _sections(setup: Setup, wanted: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in wanted:
        print(f"{name} ...", file=sys.stderr, flush=True)
        start = time.perf_counter()
        try:
            found[name] = SECTIONS[name](setup)
        except Exception as error:  # noqa: BLE001 - the other sections' figures are not lost
            traceback.print_exc()
            device.forget(error)
            device.release()
            found[name] = {"failed": f"{type(error).__name__}: {error}"}
        found[name] |= {"section_s": round(time.perf_counter() - start, 1)}
    return found


# loading


def together(setup: Setup) -> dict[str, Any]:
    """All three models at once: how long each loads, and its weights as planned and as they are."""
    _unload()
    models = {name: _loaded(setup, name) for name in ALL}
    return {"models": models, "resident": _resident(), "all_at_once": _resident() == list(ALL)}


def _loaded(setup: Setup, name: str) -> dict[str, Any]:
    item, before = registry.entry(name), _used(setup.on)
    planned, start = registry.needed(item), time.perf_counter()
    adapter = registry.load(item)
    seconds = time.perf_counter() - start
    forget_peak(setup.on)
    run = ask(adapter, setup.samples[0], setup.tokens)
    return {
        "load_s": round(seconds, 2),
        "dtype": adapter.info.dtype,
        "weights_planned": planned.weights,
        "weights_bytes": registry.resident_bytes()[item],
        "device_bytes": _used(setup.on) - before,
        "run_planned": planned.run,
        "run_peak": _peak(setup.on),
        "tokens": list(run.generation.token_ids),
    }


def one_after_another(setup: Setup) -> dict[str, Any]:
    """The same on a card too small for two: each makes room, and answers as without a limit."""
    if setup.on.type != "cuda":
        return {"not_measured": NOT_HERE}
    free = {name: setup.ask(name).generation.token_ids for name in ALL}
    _unload()
    with _limited(setup.on, setup.limit):
        return _taking_turns(setup, free)


def _taking_turns(setup: Setup, free: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    models, largest = {}, 0
    forget_peak(setup.on)
    for name in (*ALL, ALL[0]):
        run = setup.ask(name)
        equal = run.generation.token_ids == free[name]
        largest = max(largest, _reserved_peak(setup.on))
        models[name] = {"resident": _resident(), "equal": equal}
    return {"limit": setup.limit, "most_reserved": largest, "models": models}


@contextmanager
def _limited(on: torch.device, limit: int) -> Iterator[None]:
    """This process may take so many bytes of the device."""
    index = on.index or 0  # torch wants the number here
    whole = torch.cuda.mem_get_info(index)[1]
    torch.cuda.set_per_process_memory_fraction(min(1.0, limit / whole), index)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, index)


def full_memory(setup: Setup) -> dict[str, Any]:
    """A run that does not fit: one sentence, all its memory is free, and the next run answers."""
    if setup.on.type != "cuda":
        return {"not_measured": NOT_HERE}
    name = NAMES["video_llava"][0]  # its prompt is the longest
    expected = setup.ask(name, cache="off").generation.token_ids
    device.release()
    before = _used(setup.on)
    ballast = _fill(setup.on)
    try:
        setup.ask(name, cache="off")
        said = ""
    except OutOfMemory as error:
        said = str(error)
    left = _used(setup.on) - ballast.nbytes - before
    del ballast
    device.release()
    equal = setup.ask(name).generation.token_ids == expected
    return {
        "refused": bool(said),
        "said": said,
        "bytes_left_behind": left,
        "next_run_equal": equal,
    }


def _fill(on: torch.device) -> torch.Tensor:
    """Takes the device's memory but for LEFT bytes."""
    return torch.empty(torch.cuda.mem_get_info(on)[0] - LEFT, dtype=torch.uint8, device=on)


def quantized(setup: Setup) -> dict[str, Any]:
    """Weights of 8 and 4 bits: planned and real size, speed, and decoupled against generate()."""
    if why := families.cannot_quantize():
        return {"not_measured": why}
    _unload()
    return {
        f"{name}@{kind}": _quantized(setup, f"{name}@{kind}")
        for name in ALL
        for kind in families.QUANTIZATIONS
    }


def _quantized(setup: Setup, name: str) -> dict[str, Any]:
    found = _loaded(setup, name)
    runs = [setup.ask(name) for _ in range(setup.repeat)]
    plain = setup.ask(name, mode="hooked")
    found |= {
        "tokens_per_s": machine.spread(complete(run.tokens_per_s for run in runs)),
        "generate_tokens_per_s": plain.tokens_per_s,
        "equal_to_generate": plain.generation.token_ids == runs[0].generation.token_ids,
        "notes": list(runs[0].notes),
    }
    registry.unload(registry.entry(name))
    return found


# caches, and the clock


def features(setup: Setup) -> dict[str, Any]:
    """Stage 3 computed, written to the disk and read from it; the answers are equal."""
    return {name: _features(setup, name) for name in ALL}


def _features(setup: Setup, name: str) -> dict[str, Any]:
    adapter = registry.load(registry.entry(name))
    ask(adapter, setup.samples[0], 2)  # cold
    computed, read, whole = [], [], []
    for _ in range(setup.repeat):
        start = time.perf_counter()
        computed.append(setup.ask(name, cache="refresh"))
        whole.append((time.perf_counter() - start) * 1000 - computed[-1].total_ms)
        read.append(setup.ask(name, cache="use"))
    spans = [complete(span_ms(run, "vision") for run in runs) for runs in (computed, read)]
    kept = next(one for one in computed[0].tensors if one.name.startswith("features"))
    return {
        "feature_shape": list(kept.shape),
        "feature_bytes": kept.bytes,
        "computed_ms": machine.spread(spans[0]),
        "read_ms": machine.spread(spans[1]),
        "write_and_rest_ms": machine.spread(whole),  # after the run's clock
        "read_from_cache": all(run.cached for run in read),
        "equal": _all_equal([*computed, *read]),
    }


def clock(setup: Setup) -> dict[str, Any]:
    """Stage 3 by the run's clock and by the device's own events.

    A planted fault, a clock that does not wait for the device, must be noticed.
    """
    if setup.on.type != "cuda":
        return {"not_measured": NOT_HERE}
    adapter = registry.load(registry.entry(ALL[-1]))
    prepared = adapter.preprocess(media.load(setup.samples[0], adapter.kind), DEFAULT_QUESTION)
    ratios = _clock_ratios(adapter, prepared, setup)
    plain = timing.synchronizer
    timing.synchronizer = lambda *_: lambda: None
    try:
        planted = _clock_ratios(adapter, prepared, setup)
    finally:
        timing.synchronizer = plain
    return {
        "clock_over_events": machine.spread(ratios),
        "planted_clock_over_events": machine.spread(planted),
        "planted_fault_noticed": max(planted) < min(ratios),
    }


@torch.inference_mode()
def _clock_ratios(adapter: Adapter, prepared: Prepared, setup: Setup) -> list[float]:
    """ms of the run's span over ms between two events on the device, of the same work."""
    ratios = []
    for _ in range(3 * setup.repeat + 1):
        torch.cuda.synchronize(setup.on)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        timeline = timing.Timeline(setup.on)
        with timeline.span("vision"):
            start.record()
            adapter.encode(prepared)
            end.record()
        end.synchronize()
        ratios.append(timeline.spans[0].ms / float(start.elapsed_time(end)))
    return ratios[1:]


# helpers


def _all_equal(runs: Sequence[RunResult]) -> bool:
    return len({run.generation.token_ids for run in runs}) == 1


def _resident() -> list[str]:
    return [item.name for item in registry.resident()]


def _unload() -> None:
    for item in registry.resident():
        registry.unload(item)


def _used(on: torch.device) -> int:
    return torch.cuda.memory_allocated(on) if on.type == "cuda" else 0


def _peak(on: torch.device) -> int | None:
    """What a run took beside what was there before it; None elsewhere than on CUDA."""
    if on.type != "cuda":
        return None
    return torch.cuda.max_memory_allocated(on) - torch.cuda.memory_allocated(on)


def _reserved_peak(on: torch.device) -> int:
    return torch.cuda.max_memory_reserved(on) if on.type == "cuda" else 0


# In this order: the quantized models come last, because they unload the others.
SECTIONS: dict[str, Callable[[Setup], dict[str, Any]]] = {
    "together": together,
    "features": features,
    "clock": clock,
    "full_memory": full_memory,
    "one_after_another": one_after_another,
    "quantized": quantized,
}

if __name__ == "__main__":
    main()
