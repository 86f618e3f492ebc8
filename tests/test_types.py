"""The metrics' formulas, and what a request refuses."""

import pytest

from engine.errors import BadInput
from engine.prompts import MAX_ASKED_CHARS
from engine.types import (
    ChosenFrames,
    DecodeConfig,
    Generation,
    ModelInfo,
    RunRequest,
    RunResult,
    Sample,
    Span,
)

SAMPLE = Sample("s", "q")
INFO = ModelInfo("m", "llava", "c", None, "float32", True)


def result(token_ms: tuple[float, ...], total: float, *spans: Span) -> RunResult:
    answer = Generation(tuple(range(len(token_ms))), "", "eos", 10, token_ms)
    return RunResult(RunRequest(SAMPLE, "m", "Why?"), INFO, spans, answer, total, cold=False)


def test_ttft_tpot_and_rate() -> None:
    run = result((100.0, 120.0, 140.0), 150.0)
    assert run.ttft_ms == 100
    assert run.tpot_ms == (150 - 100) / 2
    assert run.tokens_per_s == pytest.approx(2 / 0.050)
    assert run.new_tokens == 3


def test_unaccounted_leaves_out_the_parts_of_a_stage() -> None:
    spans = (Span("load", 0, 10), Span("decode", 10, 50), Span("decode.prefill", 10, 20))
    assert result((30.0,), 65.0, *spans).unaccounted_ms == 5


def test_a_cached_stage_counts_at_its_original_time_in_the_other_total() -> None:
    run = result((30.0,), 65.0, Span("vision", 0, 2, "cached", 42))
    assert run.cached and run.uncached_total_ms == 65 + 40 and run.total_ms == 65


def test_the_rate_of_shown_frames_is_over_the_gaps_between_them() -> None:
    assert ChosenFrames((0, 5, 10), 11, rate=10.0).shown_rate == 2.0


@pytest.mark.parametrize("question", ["", "  \n", "x" * (MAX_ASKED_CHARS + 1), "x" * 100_000])
def test_questions_of_no_use_are_refused(question: str) -> None:
    with pytest.raises(BadInput, match=r"The question (is empty|has [\d,]+ characters)"):
        RunRequest(SAMPLE, "m", question)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_new_tokens", 0),
        ("max_new_tokens", 10**9),
        ("min_new_tokens", 300),
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("top_p", 0.0),
        ("seed", -1),
    ],
)
def test_decoding_values_out_of_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(BadInput, match=f"{name} is"):
        DecodeConfig(**{name: value})


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(BadInput, match="backend is 'fast': choose one of auto, eager, compiled"):
        DecodeConfig(backend="fast")  # type: ignore[arg-type]
