"""Readers of files that compare answers: token pairs (F), end-to-end times (G), estimates (H).

Boundary: reads the keys; no audit.
"""

from __future__ import annotations

from typing import Any

from engine.published.read.cells import brief, question_of, sample_name
from engine.published.read.file_reading import FileReading
from engine.published.read.record_types import Group

PAIRS = Group("F", "token-pairs", {"time": "total"})
SPECULATION = Group(
    "F",
    "token-pairs",
    {"prefill_ms": "prefill", "draft_ms": "steps", "decode_ms": "steps", "time_ms": "total"},
)
WALLCLOCK = Group(
    "G",
    "e2e-wallclock",
    {
        "prefill_ms": "prefill",
        "decode_ms": "steps",
        "total_ms": "total",
        "sd_decode_ms": "steps",
        "sd_total_ms": "total",
    },
)
TEXTS = Group("H", "text-only/estimates", {"time": "total"})
# the timed form of H: stage times of both models in one flat row, and an assumed acceptance
METRICS = Group(
    "H",
    TEXTS.title,
    {
        "vision_time": "vision",
        "prefill_time": "prefill",
        "draft_time": "steps",
        "generation_time": "steps",
        "total_time": "total",
    },
)
FLAT_TIMES = frozenset({"vision_time", "prefill_time", "draft_time"})  # of EventGPT
TARGET_TIMES = frozenset(
    {"vl_vision_time", "vl_prefill_time", "vl_generation_time", "vl_total_time"}
)
# a row's key -> (model, key in its record)
METRIC_KEYS = {
    **{key: ("egpt", key) for key in (*FLAT_TIMES, "prefill_length", "draft_tokens")},
    "egpt_complete_time": ("egpt", "egpt_complete_time"),
    "egpt_total_time": ("egpt", "total_time"),
    **{key: ("vl", key.removeprefix("vl_")) for key in TARGET_TIMES},
    "vl_prefill_length": ("vl", "prefill_length"),
    "vl_tokens": ("vl", "tokens"),
}
ESTIMATES = ("overlap_window", "theoretical_draft_tokens", "tokens_to_verify", "accepted_tokens",
             "estimated_acceptance_rate", "rejected_tokens", "acceptance_rate", "speedup",
             "ideal_speedup")  # fmt: skip
METRIC_IDS = {"egpt": ("egpt_token_ids", "draft_tokens", "egpt_output_tokens"),
              "vl": ("vl_token_ids", "output_tokens", "vl_output_tokens")}  # fmt: skip
METRIC_TEXTS = {"egpt": ("egpt_text", "draft_text", "egpt_output_text"),
                "vl": ("vl_text", "output_text", "vl_output_text")}  # fmt: skip
NAMES_A_ROW = ("id", "sample_id", "sample_idx", "sample", "question", "query")
ADAPTED = "EventGPT's draft, through an adapter"
PREFIXES = {  # the names of two models in one row, draft first
    "eventgpt": ("eventgpt", "videollava"),
    "draft": ("draft", "target"),
    "egpt": ("egpt", "vl"),
}


def pair_rows(data: dict[str, Any] | list[Any], reading: FileReading) -> None:
    """F1, F2, F3: {x}_tokens lists per model and sample, with an adapter's draft in some files; or
    only a list of such rows."""
    name = "samples" if "samples" in data else "results"
    listed, place = (data, "$") if isinstance(data, list) else (data.get(name), name)
    rows = list(reading.rows(listed, place, ""))
    draft, target = _names(rows)
    reading.pair(draft, target)
    models = [draft, target]
    if any("adapter_tokens" in item for _, _, item in rows):
        models.insert(1, "adapter")
        reading.claimed["adapter"] = ADAPTED
    reading.missing.update(dict.fromkeys(models, reading.missing[""]))
    times = [_pair_row(reading, models, *row) for row in rows]
    if not any(times):
        reading.unit = "-"
    for summary in ("results", "summary"):
        if isinstance(data, dict) and isinstance(data.get(summary), dict):
            reading.state(data[summary], summary)


def _names(rows: list[tuple[int, str, dict[str, Any]]]) -> tuple[str, str]:
    keys = {key for _, _, item in rows for key in item}
    for prefix, models in PREFIXES.items():
        if f"{prefix}_tokens" in keys:
            return models
    return PREFIXES["egpt"]


def _numbers(
    reading: FileReading, item: dict[str, Any], path: str, names: dict[str, str]
) -> dict[str, float | None]:
    """One model's numbers from a row of several models; `names`: key in the row -> shared name."""
    found = reading.cells.numbers(item, path, names)
    return {names[key]: value for key, value in found.items()}


def _pair_row(
    reading: FileReading, models: list[str], index: int, path: str, item: dict[str, Any]
) -> bool:
    cells, timed = reading.cells, False
    sample = sample_name(item, index)
    question = question_of(item)
    for model in models:
        ids = cells.ids(item, path, f"{model}_tokens", f"{model}_token_ids")
        numbers = _numbers(reading, item, path, {f"{model}_time": "time"})
        text = cells.text(item, path, f"{model}_text", f"{model}_output")
        if ids is None and text is None:
            reading.missing[model] += 1
            continue
        timed = timed or numbers.get("time") is not None
        reading.add(model, path, sample, numbers, ids, text, question)
    keys = ("acceptance_rate", "accepted_tokens", "total_compared", "c_ratio", "matched_tokens",
            "total_tokens", "consecutive_matches", "total_matches")  # fmt: skip
    reading.per_sample(item, path, index, *keys)
    return timed


def speculation_rows(data: dict[str, Any], reading: FileReading) -> None:
    """F4: speculative decoding of a few samples, in milliseconds."""
    reading.unit = "ms"
    reading.pair("egpt", "vl")
    keys = {
        "egpt": {"egpt_prefill_ms": "prefill_ms", "egpt_draft_ms": "draft_ms"},
        "vl": {"vl_prefill_ms": "prefill_ms", "vl_time_ms": "time_ms"},
        "adapted": {},
        "sd": {"vl_verify_ms": "verify_ms", "vl_decode_ms": "decode_ms", "sd_time_ms": "time_ms"},
    }
    reading.claimed |= {"adapted": ADAPTED, "sd": "Video-LLaVA, speculative decoding"}
    names = {"egpt": "egpt_draft", "vl": "vl_output", "adapted": "adapted_draft", "sd": "sd_output"}
    for index, path, item in reading.rows(data.get("results"), "results", *names, ""):
        sample, question = sample_name(item, index), question_of(item)
        for model, start in names.items():
            ids = reading.cells.ids(item, path, f"{start}_tokens")
            text = reading.cells.text(item, path, f"{start}_text")
            numbers = _numbers(reading, item, path, keys[model])
            if ids is not None or text is not None or numbers:
                reading.add(model, path, sample, numbers, ids, text, question)
        timed = [key for key in item if key.endswith("_ms")]
        reading.per_sample(item, path, index, *timed, "speedup", "accepted_tokens",
                           "acceptance_rate", "rejected_at")  # fmt: skip
        reading.flag(item, path, index, "output_matches")
    reading.state(data.get("summary"), "summary")


def wallclock_rows(data: dict[str, Any], reading: FileReading) -> None:
    """G: the target alone ("baseline") and each way to draft for it, in milliseconds."""
    reading.unit = "ms"
    reading.models.append("baseline")
    reading.claimed["baseline"] = "Video-LLaVA"
    alone = "baseline_per_sample"
    for index, path, item in reading.rows(data.get(alone, []), alone, "baseline"):
        _wall_row(reading, "baseline", index, path, item)
    ways = data.get("sd_per_sample")
    for way, rows in (ways if isinstance(ways, dict) else {}).items():
        name = str(way)[:80]
        if name not in reading.models:
            reading.models.append(name)
            reading.claimed[name] = f"Video-LLaVA, drafted for by {name}"
        for index, path, item in reading.rows(rows, f"sd_per_sample.{name}", name):
            _wall_row(reading, name, index, path, item)
    reading.state(data.get("stage_timing"), "stage_timing")
    stated = data.get("aggregate")
    for way, figures in (stated if isinstance(stated, dict) else {}).items():
        model = "baseline" if way == "VL baseline" else str(way)
        reading.state(figures, f"aggregate.{way}", model)


def _wall_row(
    reading: FileReading, model: str, index: int, path: str, item: dict[str, Any]
) -> None:
    question = question_of(item)
    reading.answer(model, item, path, sample_name(item, index), question)


def text_rows(data: dict[str, Any], reading: FileReading) -> None:
    """H: texts, counts and an acceptance estimated from the texts; no token ids."""
    reading.pair("egpt", "vl")
    for index, path, item in reading.rows(data.get("results"), "results", "egpt", "vl", ""):
        sample = sample_name(item, index)
        for model in ("egpt", "vl"):
            named = {f"{model}_time": "time", f"{model}_tokens": "tokens"}
            numbers = _numbers(reading, item, path, named)
            text = reading.cells.text(item, path, f"{model}_text")
            reading.add(model, path, sample, numbers, None, text)
        reading.per_sample(item, path, index, "word_overlap", "char_similarity",
                           "acceptance_estimate")  # fmt: skip
    reading.state(data.get("statistics"), "statistics")


def is_metrics(keys: set[str]) -> bool:
    """Whether flat rows with these keys are the timed form of H."""
    mine = keys & FLAT_TIMES
    return mine == FLAT_TIMES or bool(mine and keys & TARGET_TIMES)


def metric_rows(data: dict[str, Any] | list[Any], reading: FileReading) -> None:
    """H with times, in seconds: EventGPT's keys have no prefix, the target's begin with "vl_".

    `output_tokens` and `output_text` are the target's.  Every number is also one of the row's
    figures, under its key in the file.  Unknown keys are noted as not read.
    """
    reading.pair("egpt", "vl")
    reading.summary_fields["output_tokens"] = "vl", "tokens"
    name = next((key for key in ("results", "samples") if key in data), "results")
    listed, place = (data, "$") if isinstance(data, list) else (data.get(name), name)
    known = {*METRIC_KEYS, *ESTIMATES, *NAMES_A_ROW}
    known |= {key for keys in (METRIC_IDS, METRIC_TEXTS) for names in keys.values()
              for key in names}  # fmt: skip
    for index, path, item in reading.rows(listed, place, "egpt", "vl", ""):
        for model in ("egpt", "vl"):
            _metric_answer(reading, model, item, path, sample_name(item, index))
        numbers = [key for key in item if key in METRIC_KEYS or key in ESTIMATES]
        reading.per_sample(item, path, index, *(k for k in numbers if not _is_list(item[k])))
        _not_read(reading, path, item.keys() - known)
    if isinstance(data, dict):
        for summary in ("statistics", "summary"):
            reading.state(data.get(summary), summary)


def _metric_answer(
    reading: FileReading, model: str, item: dict[str, Any], path: str, sample: str
) -> None:
    names = {key: name for key, (whose, name) in METRIC_KEYS.items()
             if whose == model and not _is_list(item.get(key))}  # fmt: skip
    ids = next((reading.cells.ids(item, path, key) for key in METRIC_IDS[model]
                if _is_list(item.get(key))), None)  # fmt: skip
    text = reading.cells.text(item, path, *METRIC_TEXTS[model])
    numbers = _numbers(reading, item, path, names)
    if ids is None and text is None and not numbers:
        reading.missing[model] += 1
        return
    reading.add(model, path, sample, numbers, ids, text, question_of(item))


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _not_read(reading: FileReading, path: str, keys: set[str]) -> None:
    """Notes each unknown key once, at the first row that has it."""
    for key in sorted(keys - reading.unread):
        reading.unread.add(key)
        shown = brief(key, 40)
        reading.cells.note("key", f"{path}.{shown}", "no meaning is known for it")
