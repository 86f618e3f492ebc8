"""The same rules over this project's rows: silent on right ones, awake to planted sins."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from engine.published.audit import audit
from engine.published.read import answer_pairs, own_rows
from engine.storage.result_rows import AnswerRow
from tests.conftest import make_sample

Rows = list[dict[str, Any]]


def tensor(name: str, pictures: int) -> dict[str, Any]:
    return {"name": name, "shape": [pictures, 3, 10, 10], "dtype": "uint8", "bytes": 1}


def row(model: str, sample: int, family: str, tokens: int = 12, cold: bool = False) -> Any:
    """A row as engine.storage.result_rows writes it."""
    stages = {"load": 5.0, "preprocess": 8.0, "vision": 40.0, "decode": 200.0}
    ids = [100 + 7 * sample + index for index in range(tokens - 1)] + [2]
    images = 5 if family == "eventgpt" else 1
    return {
        "model": model,
        "family": family,
        "checkpoint": {"eventgpt": "checkpoints/EventGPT-7b", "llava": "llava-hf/llava-1.5-7b-hf",
                       "video_llava": "LanguageBind/Video-LLaVA-7B-hf"}[family],
        "digest": "0" * 64,
        "sample": f"s{sample}",
        "prompt": "What is it?",
        "text": f"A road with {sample} cars on it.",
        "token_ids": ids,
        "new_tokens": tokens,
        "stop": "eos",
        "context_tokens": {"eventgpt": 641, "llava": 600, "video_llava": 2076}[family],
        "decode_config": {"max_new_tokens": 64, "temperature": 0.0, "seed": 0},
        "cold": cold,
        "verified": None,
        "stages": {name: {"start_ms": 0.0, "ms": ms, "source": "measured", "original_ms": None}
                   for name, ms in stages.items()},
        "prefill": {"start_ms": 0.0, "ms": 50.0, "source": "measured", "original_ms": None},
        "steps": {"start_ms": 0.0, "ms": 150.0, "source": "measured", "original_ms": None},
        "total_ms": 255.0,
        "unaccounted_ms": 2.0,
        "tensors": [tensor("images", images), tensor("pixels", images)],
        "error": None,
    }  # fmt: skip


def clean() -> Rows:
    rows = []
    for sample in range(6):
        for model, family in (("eventgpt-7b", "eventgpt"), ("video-llava-7b", "video_llava")):
            rows.append(row(model, sample, family, cold=sample == 0))
    return rows


def typed(rows: Rows) -> list[AnswerRow]:
    """Without the checks of reading, which leave out some of the planted sins."""
    return [convert(one, AnswerRow) for one in rows]


def rules(rows: Rows) -> set[str]:
    return {finding.rule for finding in audit(own_rows.from_rows(typed(rows)))}


def test_right_rows_trip_no_rule() -> None:
    assert audit(own_rows.from_rows(typed(clean()))) == ()


def test_a_cold_run_that_is_marked_is_no_sin() -> None:
    rows = clean()
    rows[0]["stages"]["vision"]["ms"] = 4000.0
    rows[0]["total_ms"] = 4215.0
    assert audit(own_rows.from_rows(typed(rows))) == ()


def set_(path: tuple[Any, ...], value: Any, which: slice = slice(0, 1)) -> Any:
    """A sin: a value put at a path of some rows."""

    def plant(rows: Rows) -> None:
        for one in rows[which]:
            holder: Any = one
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = copy.deepcopy(value)

    return plant


def warm(rows: Rows) -> None:
    rows[0]["cold"] = False
    rows[0]["stages"]["vision"]["ms"] = 4000.0
    rows[0]["total_ms"] += 3960.0


def prompt(rows: Rows) -> None:
    for one in rows[1::2]:
        one["token_ids"] = [32001] * 2056 + one["token_ids"]


def same(rows: Rows) -> None:
    for one in rows[::2]:
        one["text"] = "A road."


def seconds(rows: Rows) -> None:
    rows[2]["total_ms"] = 0.255
    rows[2]["stages"] = {
        name: {**stage, "ms": stage["ms"] / 1000} for name, stage in rows[2]["stages"].items()
    }
    rows[2]["unaccounted_ms"] = 0.002


def undeclared_cap(rows: Rows) -> None:
    for index, one in enumerate(rows[::2]):
        one["token_ids"][-1] = 300 + index


SINS: dict[str, Any] = {
    "sliced_tokens": lambda rows: rows[0].update(token_ids=[5, 2], new_tokens=2),
    "prompt_counted": prompt,
    "count_and_ids": set_(("new_tokens",), 13),
    "beyond_limit": set_(("decode_config", "max_new_tokens"), 5),
    "bos": set_(("token_ids", 0), 1, slice(0, 12, 2)),
    "label": set_(("family",), "llava", slice(1, 12, 2)),
    "one_image": set_(("tensors",), [tensor("images", 5), tensor("pixels", 1)]),
    "doubled_context": set_(("context_tokens",), 4124, slice(1, 12, 2)),
    "beyond_window": set_(("context_tokens",), 5000, slice(1, 2)),
    "totals": set_(("total_ms",), 200.0),
    "warm_up": warm,
    "placeholder": set_(("stages", "vision", "ms"), 0.003, slice(0, 12, 2)),
    "degenerate": same,
    "units": seconds,
    "capped": undeclared_cap,
    "equality": lambda rows: rows[0].update(verified="abc", decode_config={"temperature": 0.6}),
}  # fmt: skip


@pytest.mark.parametrize("rule", SINS)
def test_a_sin_planted_in_our_rows_is_found(rule: str) -> None:
    rows = clean()
    SINS[rule](rows)
    assert rule in rules(rows)


def test_a_declared_limit_is_no_sin() -> None:
    rows = clean()
    undeclared_cap(rows)
    for one in rows:
        one["stop"] = "length"
    assert rules(rows) == set()


def test_seeded_sampling_may_be_verified() -> None:
    rows = clean()
    rows[0].update(verified="abc", decode_config={"temperature": 0.6, "seed": 3})
    assert rules(rows) == set()


def test_failed_rows_are_failures_and_no_figures() -> None:
    rows = [*clean(), {"model": "x", "sample": "s9", "error": "No memory.", "family": None}]
    file = own_rows.from_rows(typed(rows))
    assert [failure.sample for failure in file.failures] == ["s9"] and "x" not in file.models
    assert own_rows.from_rows(typed(rows[-1:])).status == "failed"


def test_any_two_models_of_a_run_can_be_compared() -> None:
    file = own_rows.from_rows(typed(clean()))
    found = answer_pairs.acceptance(file, "eventgpt-7b", "video-llava-7b")
    assert found and found.pairs == 6 and found.rate and found.rate.value == 1.0
    assert found.cost_ratio == 1.0 and found.ceiling == found.speedup.value == 1.0  # type: ignore[union-attr]


@pytest.mark.slow
def test_rows_of_real_runs_trip_no_rule(tiny_models: Path, tmp_path: Path) -> None:
    """Every family through the pipeline, with a cold run, computed and cached features."""
    from engine.models import registry
    from engine.pipeline import feature_cache, single_run
    from engine.types import DecodeConfig, RunRequest

    made = []
    for entry in registry.entries():
        adapter = registry.load(entry)
        for seed in (0, 1, 0):
            request = RunRequest(make_sample(tmp_path, seed), entry.name, "What is it?",
                                 decode=DecodeConfig(max_new_tokens=6))  # fmt: skip
            result = single_run.run(adapter, request, feature_cache.shared())
            made.append(AnswerRow.from_result(result))
    findings = [
        f for f in audit(own_rows.from_rows(made)) if f.rule != "degenerate"
    ]  # random weights repeat
    assert not findings, [finding.message for finding in findings]
    events = own_rows.from_rows(made).of("tiny-eventgpt")[0]
    assert events.sizes["images"] == events.sizes["pixels"] == 5
