"""RunResults made by hand, with round numbers."""

from engine.types import Generation, ModelInfo, RunRequest, RunResult, Sample, Source, Span

SAMPLE = Sample(id="s1", sequence="drive")


def result(
    name: str = "one",
    vision: tuple[float, Source, float | None] = (40.0, "measured", None),
    tokens: int = 3,
    cold: bool = False,
) -> RunResult:
    """load 10, preprocess 20, vision as given, decode 100, 5 unaccounted."""
    ms, source, original = vision
    spans = (
        Span("load", 0, 10),
        Span("preprocess", 10, 20),
        Span("vision", 30, ms, source, original),
        Span("decode", 30 + ms, 100),
        Span("decode.prefill", 30 + ms, 30),
        Span("decode.steps", 60 + ms, 70),
    )
    first = 60 + ms
    times = tuple(first + 10 * index for index in range(tokens))
    return RunResult(
        request=RunRequest(SAMPLE, name, "Why?"),
        model=ModelInfo(name, "llava", "./one", None, "float32", demo=True),
        spans=spans,
        generation=Generation(tuple(range(tokens)), "Because.", "eos", 12, times),
        total_ms=135 + ms,
        cold=cold,
    )


CACHED: tuple[float, Source, float | None] = (2.0, "cached", 40.0)
