"""The figures of a file: per model and stage its mean, median and mean without the first record.

Stages keep the file's keys and unit.  Recorded means are over all records; corrected means do not
include a warm-up (see corrected.py).  The terminal, the report and the pages read the dicts that
`import --json` prints.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from engine.analysis.acceptance import GAMMA, Acceptance, Range
from engine.published.read.answer_pairs import stated, variants
from engine.published.read.answer_tokens import prompt_ids
from engine.published.read.record_types import EOS, AnswerRecord, ResultFile

Figures = dict[str, Any]
AVERAGES = ("mean", "median", "mean_without_first")


def average(values: Sequence[float]) -> Figures:
    """Mean, median and mean without the first of n values; None without values."""
    rest = values[1:]
    return {
        "mean": mean(values) if values else None,
        "median": statistics.median(values) if values else None,
        "mean_without_first": mean(rest) if rest else None,
        "n": len(values),
    }


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def models(file: ResultFile) -> dict[str, Figures]:
    """The models of a file by name, in its order."""
    return {model: _model(file, model) for model in file.models}


def _model(file: ResultFile, model: str) -> Figures:
    """Averages of stages and tokens, means of the other numbers, and counts of problems."""
    recorded, corrected = file.of(model), file.of(model, corrected=True)
    identity = file.identities[model]
    tokens = {
        name: average([record.tokens for record in records if record.tokens is not None])
        for name, records in (("recorded", recorded), ("corrected", corrected))
    }
    stages = {}
    for key in dict.fromkeys(key for record in recorded for key in record.times):
        values = average([record.times[key] for record in recorded if key in record.times])
        part = file.group.stages.get(key, "")
        stages[key] = {"part": part, **values, "corrected": _corrected(corrected, key)}
    return {
        **_figures(file, recorded, corrected),
        "n": len(recorded),
        "claimed": identity.claimed,
        "evidence": identity.evidence,
        "agrees": identity.agrees,
        "stages": stages,
        "tokens_recorded": tokens["recorded"]["mean"],
        "tokens_corrected": tokens["corrected"]["mean"],
        "tokens": tokens["recorded"]["mean"],
        "token_averages": tokens,
    }


def _corrected(records: Sequence[AnswerRecord], key: str) -> Figures | None:
    """The averages without a warm-up in this stage.  Without it no record is the first."""
    timed = [record for record in records if key in record.times]
    warm = [record for record in timed if f"cold:{key}" not in record.marks]
    if not warm:
        return None
    found = average([record.times[key] for record in warm])
    return found | ({"mean_without_first": found["mean"]} if timed[0] is not warm[0] else {})


def _figures(
    file: ResultFile, recorded: Sequence[AnswerRecord], corrected: Sequence[AnswerRecord]
) -> dict[str, float]:
    """Means of other numbers; figures of ids and texts; tokens per second of decoding over all
    records; how far totals are from their stages."""
    found: dict[str, float] = {}
    for key in dict.fromkeys(key for record in recorded for key in record.sizes):
        found[key] = mean([record.sizes[key] for record in recorded if key in record.sizes])
    if contexts := [record.context for record in corrected if record.context is not None]:
        found["context_corrected"] = mean(contexts)
    if ids := [record.ids for record in recorded if record.ids is not None]:
        found["ids_mean"] = mean([len(one) for one in ids])
        found["ended_with_eos"] = sum(bool(one) and one[-1] == EOS for one in ids) / len(ids)
        found["prompt_ids"] = max(prompt_ids(one) for one in ids)
    if texts := [record.text for record in recorded if record.text is not None]:
        found["distinct_texts"] = len(set(texts))
        found["empty_texts"] = sum(not text.strip() for text in texts)
    found["sliced_records"] = sum("sliced" in record.marks for record in corrected)
    if lengths := [record.tokens for record in corrected if record.tokens is not None]:
        found["max_tokens"] = max(lengths)
    timed = []
    for record in recorded:
        spent = record.part("decode") or record.part("steps")
        if spent and record.tokens is not None:
            seconds = spent[1] / (1000 if spent[0].endswith("_ms") else 1)
            timed.append((record.tokens, seconds))
    if timed and math.fsum(seconds for _, seconds in timed) > 0:
        found["tokens_per_s"] = sum(t for t, _ in timed) / math.fsum(s for _, s in timed)
    gaps = []
    for record in file.whole(recorded[0].model) if recorded and file.group.has_stage_times else ():
        total, stages = record.part("total"), record.stage_sum
        if total and stages is not None:
            gaps.append(abs(total[1] - stages))
    if gaps:
        found["max_total_minus_stages"] = max(gaps)
    return found | _speculation(file, recorded)


def _speculation(file: ResultFile, recorded: Sequence[AnswerRecord]) -> dict[str, float]:
    """Group wall_clock: the speed-up of means, acceptance over all drafts, equal texts."""
    if not recorded or "sd_total_ms" not in recorded[0].times:
        return {}
    found: dict[str, float] = {}
    alone = [r.times["bl_total_ms"] for r in recorded if "bl_total_ms" in r.times]
    spent = [r.times["sd_total_ms"] for r in recorded if "sd_total_ms" in r.times]
    if alone and len(alone) == len(spent) and sum(spent) > 0:
        found["ratio_of_means"] = math.fsum(alone) / math.fsum(spent)
    drafted = math.fsum(r.sizes.get("drafted", 0.0) for r in recorded)
    if drafted > 0:
        found["accept_micro"] = math.fsum(r.sizes.get("accepted", 0.0) for r in recorded) / drafted
    texts = {(r.sample, r.question): r.text for r in file.of("baseline")}
    both = [r for r in recorded if r.text is not None and (r.sample, r.question) in texts]
    if both:
        equal = sum(r.text == texts[r.sample, r.question] for r in both)
        found["text_identical_to_baseline"] = equal / len(both)
    return found


def as_dict(file: ResultFile, findings: Sequence[Any] = (), gamma: int = GAMMA) -> Figures:
    """The file as one JSON object; findings: anything with `as_dict()`."""
    values: dict[str, list[float]] = {}  # the numbers that belong to no model
    for figure in file.figures:
        values.setdefault(figure.name, []).append(figure.value)
    config = {  # NaN and Infinity become text
        key: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in file.config.items()
    }
    return {
        "file": file.name,
        "group": str(file.group),
        "unit": file.unit,
        "records": file.samples,
        "clips": file.clips,
        "errors": len(file.failures),
        "status": file.status,
        "message": file.message,
        "models": models(file),
        "acceptance": acceptance_dict(file, gamma),
        "figures": {name: average(found) for name, found in values.items()},
        "stated": [asdict(claim) for claim in file.claims],
        "config": config,
        "findings": [finding.as_dict() for finding in findings],
    }


def acceptance_dict(file: ResultFile, gamma: int = GAMMA) -> Figures:
    """The figures of all comparisons and the stated rates; {} without ids."""
    found = {name: _comparison(one) for name, one in variants(file, gamma).items()}
    if not found:
        return {}
    rows = [row._asdict() for row in stated(file)]
    return {**found.pop("main", {}), **found, "stated": rows}


def _comparison(found: Acceptance) -> Figures:
    return {
        "draft": found.draft,
        "target": found.target,
        "pairs": found.pairs,
        "clips": found.clips,
        "pos_matched": found.matched,
        "pos_compared": found.compared,
        "pos_rate": found.rate.value if found.rate else None,
        "pos_rate_interval": _ends(found.rate),
        "mean_prefix": found.mean_prefix,
        "max_prefix": found.max_prefix,
        **{f"first_window_g{g}": value for g, value in found.first_windows.items()},
        "gamma": found.gamma,
        "expected_tokens": found.expected_tokens,
        "shuffled_rate": found.shuffled.value if found.shuffled else None,
        "shuffled_interval": _ends(found.shuffled),
        "cost_ratio": found.cost_ratio,
        "ceiling": found.ceiling,
        "predicted_speedup": found.speedup.value if found.speedup else None,
        "predicted_speedup_interval": _ends(found.speedup),
    }


def _ends(found: Range | None) -> list[float] | None:
    return list(found.interval) if found and found.interval else None
