"""Rows and runs made by hand: figures that a test can work out, and no model."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from engine.storage import run_store
from engine.storage.plan import Plan, Task
from engine.storage.result_rows import NOT_OF_ONE, ResultRow
from engine.storage.run_header import DatasetIdentity, Header, ModelIdentity
from engine.storage.run_store import Run
from engine.types import DecodeConfig

FAMILIES = {"ev": "eventgpt", "vl": "video_llava", "im": "llava"}
STAGES = {"load": 4.0, "preprocess": 2.0, "vision": 10.0}


def row(
    model: str = "ev",
    sample: str = "s0",
    *,
    repeat: int = 0,
    phase: str = "measured",
    stages: Mapping[str, float] = STAGES,
    prefill: float = 8.0,
    gaps: Sequence[float] = (2.0, 2.0, 2.0),
    cached_ms: float | None = None,
    forced: bool = False,
    text: str = "A road.",
    **more: Any,
) -> dict[str, Any]:
    """A whole row: stages end to end, then prefill and one gap per further token.

    cached_ms: vision was read from the cache, and took that long when it was computed.
    """
    spans, at = {}, 0.0
    for name, ms in stages.items():
        cached = cached_ms is not None and name == "vision"
        source = "cached" if cached else "measured"
        spans[name] = span(name, at, ms, source, cached_ms if cached else None)
        at += ms
    times = [at + prefill]
    for gap in gaps:
        times.append(times[-1] + gap)
    total = times[-1]
    spans["decode"] = span("decode", at, total - at)
    n = len(times)
    tpot = (total - times[0]) / (n - 1) if n > 1 else None
    return {
        "model": model,
        "family": FAMILIES.get(model, "llava"),
        "sample": sample,
        "sequence": f"q-{sample}",
        "repeat": repeat,
        "phase": phase,
        "prompt": "What is it?",
        "text": text,
        "token_ids": list(range(100, 100 + n)),
        "new_tokens": n,
        "stop": "length" if forced else "eos",
        "context_tokens": 50,
        "mode": "decoupled",
        "cache": "off",
        "decode_config": {"max_new_tokens": n if forced else 64, "min_new_tokens": n * forced},
        "cold": False,
        "stages": spans,
        "prefill": span("decode.prefill", at, prefill),
        "steps": span("decode.steps", times[0], total - times[0]),
        "ttft_ms": times[0],
        "tpot_ms": tpot,
        "tokens_per_s": 1000 / tpot if tpot else None,
        "total_ms": total,
        "uncached_total_ms": total + ((cached_ms - stages["vision"]) if cached_ms else 0.0),
        "unaccounted_ms": 0.0,
        "token_ms": times,
        "tensors": [{"name": "pixels", "shape": [5, 3, 8, 8], "dtype": "float32", "bytes": 3840}],
        "notes": [],
        "error": None,
        "reference": "",
        "truth": {},
        "paused_ms": 0.0,
        "at": "2026-01-01T00:00:00+00:00",
        "standing": _standing(more.get("verified")),
    } | more


def _standing(certificate: str | None) -> dict[str, Any]:
    """What a row says of its certificate."""
    state = "verified" if certificate else "unverified"
    return {"state": state, "certificate": certificate, "missing": []}


OPTIONS = ("a truck", "a car", "a bus", "nothing")


def question(
    number: int,
    text: str,
    model: str = "ev",
    *,
    right: str = "",
    task: str = "objects",
    per_sequence: int = 4,
    **more: Any,
) -> dict[str, Any]:
    """A model's answer to a question with OPTIONS; the right letters go round unless given."""
    asked = {
        "sequence": f"q{number // per_sequence}",
        "choices": list(OPTIONS),
        "choice_form": "letters",
        "right_letter": right or "ABCD"[number % 4],
        "question_task": task,
    }
    found = row(model, f"s{number:03d}", **asked | {"text": text} | more)
    return {name: value for name, value in found.items() if (name, value) != ("right_letter", None)}


def exam(n: int = 96, wrong: int = 5, models: Sequence[str] = ("ev", "vl")) -> list[dict[str, Any]]:
    """n questions of two tasks: the first model errs in every `wrong`th, the second says A."""
    rows = []
    for number in range(n):
        right, task = "ABCD"[number % 4], ("objects", "motion")[number // 4 % 2]
        said = "ABCD"[(number + 1) % 4] if number % wrong == 0 else right
        chances = {letter: -0.2 if letter == right else -3.0 for letter in "ABCD"}
        texts = (f"The answer is {said}.", "A")
        for model, text, known in zip(models, texts, (chances, None), strict=False):
            rows.append(question(number, text, model, task=task, letter_logprobs=known))
    return rows


def span(
    name: str, start: float, ms: float, source: str = "measured", original: float | None = None
) -> dict[str, Any]:
    return {"name": name, "start_ms": start, "ms": ms, "source": source, "original_ms": original}


def batch(
    samples: Sequence[str],
    model: str = "ev",
    *,
    ms: float = 100.0,
    tokens: int = 4,
    cached: int = 0,
    name: str = "",
    **more: Any,
) -> list[dict[str, Any]]:
    """The rows of one batch that took `ms`; every answer has `tokens` new tokens."""
    size = len(samples)
    parts = {"load": 0.1, "preprocess": 0.1, "vision": 0.2, "decode": 0.5}
    at = 0.0
    spans = {}
    for part, share in parts.items():
        spans[part] = span(part, at, ms * share)
        at += ms * share
    figures = {
        **dict.fromkeys(NOT_OF_ONE),
        "stages": dict.fromkeys(parts),
        "new_tokens": tokens,
        "token_ids": list(range(100, 100 + tokens)),
        "batch": size,
        "batch_asked": size,
        "batch_id": name or "-".join(samples),
        "batch_stages": spans,
        "batch_prefill": span("decode.prefill", ms * 0.4, ms * 0.1),
        "batch_steps": span("decode.steps", ms * 0.5, ms * 0.4),
        "batch_ms": ms,
        "batch_tokens": tokens * size,
        "batch_cached": cached,
        "batch_tokens_per_s": 1000 * tokens * size / ms,
        "batch_samples_per_s": 1000 * size / ms,
    }
    return [row(model, sample, **more) | figures for sample in samples]


def failed(model: str = "ev", sample: str = "s0", error: str = "It broke.", **more: Any) -> Any:
    """The row of a run without an answer."""
    return {
        "model": model,
        "family": FAMILIES.get(model, "llava"),
        "sample": sample,
        "sequence": f"q-{sample}",
        "repeat": 0,
        "phase": "measured",
        "prompt": "What is it?",
        "error": error,
        "paused_ms": 0.0,
        "reference": "",
        "truth": {},
    } | more


def header(
    models: Sequence[str] = ("ev", "vl"),
    samples: Sequence[str] = ("s0",),
    titles: Mapping[str, str] = MappingProxyType({}),
    repeat: int = 1,
) -> Header:
    identities = tuple(
        ModelIdentity(name, titles.get(name, name), FAMILIES.get(name, "llava"), f"./{name}", None,
                      "float32", f"digest-of-{name}")
        for name in models
    )  # fmt: skip
    decode = DecodeConfig(max_new_tokens=64)
    plan = Plan(tuple(models), tuple(samples), repeat=repeat, decode=decode)
    dataset = DatasetIdentity("/data/one", "digest-of-data")
    return Header(plan, dataset, identities, {"device": "cpu", "torch": "2"}, "digest-of-code")


def run(
    folder: Path,
    rows: Iterable[dict[str, Any]],
    finished: bool = True,
    titles: Mapping[str, str] = MappingProxyType({}),
    together: str = "",
    planned: Sequence[str] = (),
) -> Run:
    """A run folder that holds these rows; runs with the same `together` took turns; `planned`:
    samples of its plan that may have no row."""
    found = list(rows)
    models = list(dict.fromkeys(r["model"] for r in found)) or ["ev"]
    samples = list(dict.fromkeys([*(r["sample"] for r in found), *planned])) or ["s0"]
    repeats = (r["repeat"] for r in found if r["phase"] == "measured")
    repeat = 1 + max((one for one in repeats if isinstance(one, int)), default=0)
    described = replace(header(models, samples, titles, repeat), together=together)
    with run_store.create(described, folder) as writer:
        writer.note("started")
        for one in found:  # of any version, right or wrong
            writer._results.append(one)
        if finished:
            writer.finish({})
    return run_store.read(folder)


def parsed(rows: Iterable[dict[str, Any]]) -> list[ResultRow]:
    """Such rows as they are read."""
    return [ResultRow.parse(row) for row in rows]


def stored(run: Run) -> list[dict[str, Any]]:
    """The rows of a run as they stand in its file."""
    lines = (run.folder / run_store.RESULTS).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def task(row: dict[str, Any]) -> Task:
    """The key of such a row."""
    return Task(row["model"], row["sample"], row["repeat"], row["phase"])


def pair(n: int, slow: float = 2.0) -> list[dict[str, Any]]:
    """n samples, each of a sequence of its own, on which vl takes about `slow` times as long."""
    rows = []
    for index in range(n):
        wobble = 1 + 0.01 * (index % 7)
        rows.append(row("ev", f"s{index}", gaps=[2.0 * wobble] * 5))
        rows.append(row("vl", f"s{index}", stages={k: v * slow for k, v in STAGES.items()},
                        prefill=8.0 * slow, gaps=[2.0 * slow] * 5))  # fmt: skip
    return rows
