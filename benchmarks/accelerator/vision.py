"""Stage 3 at full size: other ways to run the tower, and whether its time is measured rightly.

`python -m benchmarks.accelerator.vision --out FILE`: LLaVA's tower and projector with random
weights encode 8 pictures of 336 pixels; by turns as they are, with channels-last weights, with each
backend of scaled_dot_product_attention, and compiled.  A way is equal within rounding if it is at
most as far from the same computation in float32 as twice what the plain way is.

Then the time of stage 3 by the run's clock against the device's own events, and with a planted
fault: a clock that does not wait for the device.

Boundary: one model, built on the device; changes nothing in the engine.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks import machine
from benchmarks.random_models import build
from engine import timing
from engine.machine import device
from engine.quoting import first_line

FAMILY, PICTURES = "llava", 8
WITHIN = 2.0  # times the plain way's distance from float32
BACKENDS = {
    "attention: flash": SDPBackend.FLASH_ATTENTION,
    "attention: memory-efficient": SDPBackend.EFFICIENT_ATTENTION,
    "attention: cuDNN": SDPBackend.CUDNN_ATTENTION,
    "attention: plain matrices": SDPBackend.MATH,
}
PLAIN, CHANNELS_LAST, COMPILED = "as it is", "channels last", "compiled"
Encode = Callable[[torch.Tensor], torch.Tensor]


@dataclass
class Way:
    """One way to encode the pictures, and what came of it."""

    encode: Encode
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    ms: list[float] = field(default_factory=list)
    first_ms: float | None = None
    apart: float | None = None
    failure: str = ""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dtype", choices=("float16", "bfloat16", "float32"))
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--layers", type=int, help="so many layers instead of the real number")
    parser.add_argument("--hidden", type=int, help="this width instead of the real one")
    options = parser.parse_args(arguments)
    on = device.choose()
    adapter = build(FAMILY, options.dtype, on, options.layers, options.hidden)
    model, dtype = adapter.model.model, adapter.dtype
    pixels = torch.randn(PICTURES, 3, 336, 336, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        found = ways(model, pixels.to(on, dtype), options.repeat)
        figures = {
            "device": device.environment(on)["hardware"],
            "dtype": adapter.info.dtype,
            "pictures": PICTURES,
            "ways": found,
            "clock": clock(model, pixels.to(on, dtype), on, options.repeat),
        }
    machine.write(options.out, figures)


def ways(model: Any, pixels: torch.Tensor, repeat: int) -> dict[str, Any]:
    """Milliseconds of each way by turns, and how far its rows are from float32's."""
    exact = _rows(copy.deepcopy(_Vision(model)).float(), pixels.float())
    tried = dict(_tried(model))
    for turn in range(repeat + 1):
        for way in tried.values():
            if not way.failure:
                _once(way, pixels, exact, first=turn == 0)
    plain = tried[PLAIN]
    assert plain.apart is not None
    return {name: _figures(way, plain) for name, way in tried.items()}


def _tried(model: Any) -> Iterator[tuple[str, Way]]:
    yield PLAIN, Way(_Vision(model))
    # A copy: the memory format belongs to the weights.
    last = copy.deepcopy(_Vision(model)).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    yield CHANNELS_LAST, Way(lambda p: last(p.to(memory_format=torch.channels_last)))
    for name, backend in BACKENDS.items():
        yield name, Way(_Vision(model), lambda chosen=backend: sdpa_kernel(chosen))  # type: ignore[misc]
    yield COMPILED, Way(torch.compile(_Vision(model), fullgraph=True, dynamic=False))


class _Vision(nn.Module):
    """Tower and projector, as the model's own forward() calls them: pixels -> rows [N, R, D]."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.tower, self.projector = model.vision_tower, model.multi_modal_projector
        self.layer = model.config.vision_feature_layer

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        hidden = self.tower(pixels, output_hidden_states=True).hidden_states[self.layer]
        rows: torch.Tensor = self.projector(hidden[:, 1:])
        return rows


def _rows(encode: Encode, pixels: torch.Tensor) -> torch.Tensor:
    return encode(pixels).float()


def _once(way: Way, pixels: torch.Tensor, exact: torch.Tensor, first: bool) -> None:
    wait = timing.synchronizer(pixels.device)
    try:
        with way.around():
            wait()
            start = time.perf_counter()
            rows = way.encode(pixels)
            wait()
            took = (time.perf_counter() - start) * 1000
    except Exception as error:  # noqa: BLE001 - whatever a backend or a compiler refuses with
        way.failure = f"{type(error).__name__}: {first_line(error)}"
        return
    if first:
        way.first_ms = took
        way.apart = float((rows.float() - exact).abs().max() / exact.abs().max())
    else:
        way.ms.append(took)


def _figures(way: Way, plain: Way) -> dict[str, Any]:
    if way.failure:
        return {"failed": way.failure}
    assert way.apart is not None and plain.apart is not None
    ratios = [a / b for a, b in zip(plain.ms, way.ms, strict=True)]
    return {
        "ms": machine.spread(way.ms),
        "first_ms": round(way.first_ms or 0, 1),
        "ratio": machine.spread(ratios),
        "from_float32": way.apart,
        "within_rounding": way.apart <= WITHIN * plain.apart,
    }


# the clock


def clock(model: Any, pixels: torch.Tensor, on: torch.device, repeat: int) -> dict[str, Any]:
    """Stage 3 by the run's clock and by the device's events; and with a clock that does not wait.

    A clock that does not wait must be noticed: it sees only how long the work took to queue.
    """
    if on.type != "cuda":
        return {"not_measured": "on the CPU nothing is queued: there is nothing to wait for"}
    vision = _Vision(model)
    pairs = [_timed(vision, pixels, on) for _ in range(repeat + 1)][1:]
    with _without_waiting():
        faulty = [_timed(vision, pixels, on) for _ in range(repeat + 1)][1:]
    ratio, planted = (_ratios(found) for found in (pairs, faulty))
    return {
        "clock_ms": machine.spread([own for own, _ in pairs]),
        "events_ms": machine.spread([events for _, events in pairs]),
        "clock_over_events": machine.spread(ratio),
        "planted_clock_over_events": machine.spread(planted),
        "planted_fault_noticed": max(planted) < min(ratio),
    }


def _ratios(pairs: Sequence[tuple[float, float]]) -> list[float]:
    return [own / events for own, events in pairs]


def _timed(vision: nn.Module, pixels: torch.Tensor, on: torch.device) -> tuple[float, float]:
    """(ms of the run's span, ms between two events on the device) of the same work."""
    torch.cuda.synchronize(on)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    timeline = timing.Timeline(on)
    with timeline.span("vision"):
        start.record()
        vision(pixels)
        end.record()
    end.synchronize()
    return timeline.spans[0].ms, float(start.elapsed_time(end))


@contextmanager
def _without_waiting() -> Iterator[None]:
    plain = timing.synchronizer
    timing.synchronizer = lambda device: lambda: None
    try:
        yield
    finally:
        timing.synchronizer = plain


if __name__ == "__main__":
    main()
