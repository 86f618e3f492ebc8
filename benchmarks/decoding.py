"""Stage 4 with the demo checkpoints: the own eager loop and the compiled step against generate().

Whole runs by turns with a fixed number of new tokens, wall time of stage 4; the run stops if the
tokens are not those of generate().  A step that cannot be compiled here has no row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.machine import QUESTION, Row, demo_adapters, demo_samples, main, row, say

if TYPE_CHECKING:
    from engine.models.adapter import Adapter
    from engine.types import RunResult, Sample

TOKENS = 48
TARGETS = {"eager": 1.5, "compiled": 3.0}


def measure(quick: bool) -> list[Row]:
    sample = demo_samples()[0]
    return [
        one for adapter in demo_adapters() for one in model(adapter, sample, 1 if quick else 11)
    ]


def model(adapter: Adapter, sample: Sample, rounds: int) -> list[Row]:
    """A row per backend: stage 4 of generate() over that of the same turn."""
    name, ratios = adapter.info.name, dict[str, list[float]]()
    for turn in range(rounds + 1):
        hooked = _run(adapter, sample, mode="hooked")
        for backend in TARGETS:
            own = _run(adapter, sample, backend)
            if own.backend != backend:
                say(f"{name}: {backend} did not run, but {own.backend}.")
                continue
            if own.generation.token_ids != hooked.generation.token_ids:
                raise SystemExit(f"{name}: {backend} gives other tokens than generate().")
            if turn:  # the first one warms up and compiles
                ratios.setdefault(backend, []).append(_ms(hooked) / _ms(own))
    return [
        row(
            f"decoding {TOKENS} tokens, {backend}, {name}, wall",
            "generate()",
            some,
            TARGETS[backend],
        )
        for backend, some in ratios.items()
    ]


def _run(adapter: Adapter, sample: Sample, backend: str = "eager", **options: Any) -> RunResult:
    from engine.pipeline import single_run
    from engine.types import DecodeConfig, RunOptions, RunRequest

    decode = DecodeConfig(TOKENS, TOKENS, backend=backend)  # type: ignore[arg-type]
    request = RunRequest(
        sample, adapter.info.name, QUESTION, RunOptions(decode=decode, cache="off", **options)
    )
    return single_run.run(adapter, request, None)


def _ms(result: RunResult) -> float:
    span = result.span("decode")
    if span is None or result.new_tokens != TOKENS:
        raise SystemExit(f"{result.new_tokens} tokens were generated, but {TOKENS} were requested.")
    return span.ms


if __name__ == "__main__":
    main("decoding", measure, __doc__)
