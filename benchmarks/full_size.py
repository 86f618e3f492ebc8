"""The three families at their real size with random weights: equality, speed, memory, bandwidth.

`python -m benchmarks.full_size`: per family, built on the device from its configuration, the four
stages on one sample; the decoupled answer against the model's own generate(); TTFT, TPOT, tok/s,
peak memory and MBU; then generate(), the own eager loop and the compiled step by turns.  What the
compiler left on disk is used again: `--new-compile` uses an empty folder, so that the time to
prepare the step is that of a first start.  Random weights cost as much as trained ones, but give no
sensible answers.  Needs torch, transformers, numpy, pillow and this repository, no network (and a
C++ compiler for the compiled step).  The figures of a run at full size are kept in
benchmarks/results/; with --layers or --hidden the models are small, and only --out keeps.
"""

import argparse
import gc
import os
import re
import resource
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks import machine
from benchmarks.bandwidth import complete, copy_speed, mbu, span_ms
from benchmarks.random_models import FAMILIES, build
from engine import media
from engine.decoding import decode
from engine.decoding.generation_rules import AnswerRules
from engine.errors import StageScopeError
from engine.machine import device
from engine.models.adapter import Adapter
from engine.pipeline import single_run
from engine.prompts import DEFAULT_QUESTION
from engine.types import (
    Backend,
    DecodeConfig,
    Features,
    Mode,
    Prepared,
    RunOptions,
    RunRequest,
    RunResult,
    Sample,
)

# way -> how a run asks for it
WAYS: dict[str, tuple[Mode, Backend]] = {
    "generate": ("hooked", "eager"),
    "eager": ("decoupled", "eager"),
    "compiled": ("decoupled", "compiled"),
}


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    try:
        _measure(options)
    except StageScopeError as error:
        machine.say(str(error))
        raise SystemExit(2) from error


def _measure(options: argparse.Namespace) -> None:
    chosen = device.choose(options.device)
    with tempfile.TemporaryDirectory() as folder:
        if options.new_compile:
            os.environ["STAGESCOPE_CACHE_DIR"] = folder
        sample = _rendered(Path(folder))
        figures: dict[str, Any] = {
            "device": _device_name(chosen),
            "environment": device.environment(chosen),
            "full_size": not (options.layers or options.hidden),
            "layers": options.layers,
            "hidden": options.hidden,
            "sample": sample.id,
            "copy_gb_per_s": (speed := copy_speed(chosen)),
            "families": {},
        }
        for family in options.families.split(","):
            machine.say(f"{family} ...")
            figures["families"][family] = _family(family, options, chosen, sample, speed)
            device.release()
    _keep(figures, options)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.tokens < 2 or options.repeat < 1:
        parser.error("--tokens must be at least 2 (one token has no TPOT) and --repeat at least 1")
    if unknown := set(options.families.split(",")) - set(FAMILIES):
        parser.error(f"--families knows {', '.join(FAMILIES)}, not {', '.join(sorted(unknown))}")
    if unknown := set(options.ways.split(",")) - set(WAYS):
        parser.error(f"--ways knows {', '.join(WAYS)}, not {', '.join(sorted(unknown))}")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--families", default=",".join(FAMILIES), help="comma-separated")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", choices=("float16", "bfloat16", "float32"), help="each its own")
    parser.add_argument("--tokens", type=int, default=64, help="new tokens of every run")
    parser.add_argument("--repeat", type=int, default=5, help="measured runs after the cold one")
    parser.add_argument(
        "--ways", default=",".join(WAYS), help=f"what decodes by turns: some of {', '.join(WAYS)}"
    )
    parser.add_argument("--new-compile", action="store_true", help="forget what was compiled")
    parser.add_argument("--layers", type=int, help="so many layers instead of the real number")
    parser.add_argument("--hidden", type=int, help="this width instead of the real one")
    parser.add_argument("--out", type=Path, help="where the JSON goes")
    return parser


def _keep(figures: dict[str, Any], options: argparse.Namespace) -> None:
    if options.out is not None:
        machine.write(options.out, figures)
    elif figures["full_size"]:
        name = re.sub(r"[^a-z0-9]+", "-", figures["device"].lower()).strip("-")
        machine.keep(f"full_size-{name}", figures)
    else:
        print(figures)


def _family(
    family: str, options: argparse.Namespace, on: torch.device, sample: Sample, gb_per_s: float
) -> dict[str, Any]:
    """All figures of one family; its memory is free again afterwards."""
    forget_peak(on)
    start = time.perf_counter()
    adapter = build(family, options.dtype, on, options.layers, options.hidden)
    built = time.perf_counter() - start
    tokens = DecodeConfig(options.tokens, min_new_tokens=options.tokens, backend="eager")
    request = RunRequest(sample, adapter.info.name, DEFAULT_QUESTION, RunOptions(decode=tokens))
    cold = single_run.run(adapter, request, None)
    runs = [single_run.run(adapter, request, None) for _ in range(options.repeat)]
    found = {
        "dtype": adapter.info.dtype,
        "parameters": adapter.info.parameters,
        "weights_bytes": sum(weight.nbytes for weight in adapter.model.parameters()),
        "visual_tower": asdict(adapter.info.tower) if adapter.info.tower else None,
        "built_s": round(built, 2),
        "context_tokens": cold.generation.prompt_tokens,
        "new_tokens": cold.new_tokens,
        "cold": {name: getattr(cold, name) for name in ("ttft_ms", "tpot_ms", "total_ms")},
        "stages_ms": {
            name: machine.spread(complete(span_ms(run, name) for run in runs))
            for name in ("load", "preprocess", "vision", "decode.prefill", "decode.steps")
        },
        "ttft_ms": machine.spread(complete(run.ttft_ms for run in runs)),
        "tpot_ms": machine.spread(complete(run.tpot_ms for run in runs)),
        "tokens_per_s": machine.spread(complete(run.tokens_per_s for run in runs)),
        "mbu": mbu(adapter, runs, gb_per_s),
    }
    found["peak_memory"] = _peak(on)
    if "compiled" in options.ways.split(","):
        found["compile_s"] = _compile(adapter, request)
    found["ways"] = _ways(adapter, request, options, gb_per_s)
    found["decoupled_against_generate"] = _verify(adapter, request)
    del adapter, runs, cold
    gc.collect()
    return found


def _compile(adapter: Adapter, request: RunRequest) -> dict[str, Any]:
    """Seconds to prepare the compiled step, and why it failed, if it did."""
    config = replace(request.how.decode, backend="compiled")
    wanted = replace(request, how=replace(request.how, decode=config))
    seconds = adapter.compile_ahead(wanted)
    step = adapter.step_for(wanted)
    return {"seconds": round(seconds, 2), "failure": step.failure if step else "refused"}


def _ways(
    adapter: Adapter, request: RunRequest, options: argparse.Namespace, gb_per_s: float
) -> dict[str, Any]:
    """Tokens per second and MBU of each way to decode, by turns, and the ratio to the first."""
    found: dict[str, list[RunResult]] = {way: [] for way in options.ways.split(",")}
    said: dict[str, Any] = {}
    for turn in range(options.repeat + 1):
        for way, runs in found.items():
            mode, backend = WAYS[way]
            config = replace(request.how.decode, backend=backend)
            how = replace(request.how, decode=config, mode=mode)
            run = single_run.run(adapter, replace(request, how=how), None)
            if not turn:  # warms up, and compiles
                said[way] = {"ran": run.backend, "notes": list(run.notes)}
                continue
            runs.append(run)
    rates = {way: complete(run.tokens_per_s for run in runs) for way, runs in found.items()}
    first = next(iter(rates.values()))
    return {
        way: said[way]
        | {
            "tokens_per_s": machine.spread(rates[way]),
            "ratio": machine.spread([a / b for a, b in zip(rates[way], first, strict=True)]),
            "mbu": mbu(adapter, runs, gb_per_s),
        }
        for way, runs in found.items()
    }


# memory


def forget_peak(on: torch.device) -> None:
    if on.type == "cuda":
        torch.cuda.reset_peak_memory_stats(on)


def _peak(on: torch.device) -> dict[str, Any]:
    """On CUDA what tensors took at most; elsewhere the process's largest size so far."""
    if on.type == "cuda":
        return {"bytes": torch.cuda.max_memory_allocated(on), "of": "tensors of this family"}
    unit = 1 if sys.platform == "darwin" else 1024
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return {"bytes": largest, "of": "the process so far"}


def _device_name(on: torch.device) -> str:
    if on.type == "cuda":
        return torch.cuda.get_device_name(on)
    return f"{on.type} {machine.machine()['processor']}"


# equality


def _verify(adapter: Adapter, request: RunRequest) -> dict[str, Any]:
    """The own path against generate() on pixels: same device, dtype and backend, greedy.

    `control` is whether a sample shown as blank pictures changes the first token's scores: a
    comparison that could not fail would prove nothing.
    """
    shown = media.load(request.sample, adapter.kind, request.how)
    prepared = adapter.preprocess(shown, request.prompt)
    rules = AnswerRules(request.how.decode, adapter.eos_ids)
    config = decode.generation_config(rules)
    with torch.inference_mode():
        rows = adapter.encode(prepared)
        embeds = adapter.embed(prepared, rows)
        assert isinstance(embeds, torch.Tensor)
        own, _ = decode.generate(adapter.decoder, embeds, rules, lambda _: None, lambda: False)
        plain = adapter.generate(prepared, generation_config=config)[0].tolist()
        plain = plain[-len(own) :]  # exactly as many are asked for; some families put ids in front
        blank = replace(prepared, pixels=torch.zeros_like(prepared.pixels))
        scores = [_scores(adapter, prepared, one) for one in (rows, adapter.encode(blank))]
    unlike = (i for i, pair in enumerate(zip(own, plain, strict=True)) if len(set(pair)) > 1)
    place = next(unlike, None)
    return {
        "equal": place is None,
        "tokens": len(own),
        "first_difference": place,
        "control": not torch.equal(*scores),
    }


def _scores(adapter: Adapter, prepared: Prepared, features: Features) -> torch.Tensor:
    return adapter.decoder.prefill(adapter.embed(prepared, features))[0]


# what it is shown


def _rendered(folder: Path) -> Sample:
    """A scene of the demo world as event images and frames; no video, so that no PyAV is needed."""
    from engine.demo.scenes import FPS, render
    from engine.demo.writing import png, simulate
    from engine.media import events

    scene = render(200_052)
    pictures = events.render(simulate(scene.frames, FPS, scene.seed), extent="stream")
    paths: dict[str, list[Path]] = {"event": [], "frame": []}
    for kind, images in (("event", pictures), ("frame", scene.frames)):
        for number, image in enumerate(images):
            path = folder / f"{kind}_{number:06d}.png"
            path.write_bytes(png(image))
            paths[kind].append(path)
    return Sample(
        f"scene_{scene.seed}",
        "rendered",
        event_images=tuple(paths["event"]),
        frames=tuple(paths["frame"]),
    )


if __name__ == "__main__":
    main()
