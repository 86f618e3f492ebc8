"""The figures of a file: per model and stage its mean, median and mean without the first record.

Stages keep the file's keys and unit.  Recorded means are over all records; corrected means do not
include a warm-up (see corrected.py).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from engine.analysis.acceptance import GAMMA, Acceptance, Range
from engine.published.read.answer_pairs import Stated, stated, variants
from engine.published.read.answer_tokens import prompt_ids
from engine.published.read.record_types import EOS, AnswerRecord, ResultFile


@dataclass(frozen=True)
class Average:
    """Mean, median and mean without the first of n values; None without values."""

    mean: float | None
    median: float | None
    mean_without_first: float | None
    n: int


@dataclass(frozen=True)
class Stage:
    """One timing key of a model, the part of a run that it covers, recorded and corrected."""

    part: str
    recorded: Average
    corrected: Average | None


@dataclass(frozen=True)
class ModelSummary:
    """One model of a file.  figures: means of its other numbers, and counts of problems."""

    model: str
    claimed: str
    evidence: str
    agrees: bool | None
    n: int
    stages: dict[str, Stage]
    tokens_recorded: Average
    tokens_corrected: Average
    figures: dict[str, float]


def average(values: Sequence[float]) -> Average:
    """The averages of any number of values."""
    if not values:
        return Average(None, None, None, 0)
    mean = math.fsum(values) / len(values)
    rest = math.fsum(values[1:]) / (len(values) - 1) if len(values) > 1 else None
    return Average(mean, statistics.median(values), rest, len(values))


def models(file: ResultFile) -> tuple[ModelSummary, ...]:
    """The models of a file, in its order."""
    return tuple(_model(file, model) for model in file.models)


def _model(file: ResultFile, model: str) -> ModelSummary:
    recorded, corrected = file.of(model), file.of(model, corrected=True)
    identity = file.identities[model]
    return ModelSummary(
        model=model,
        claimed=identity.claimed,
        evidence=identity.evidence,
        agrees=identity.agrees,
        n=len(recorded),
        stages=_stages(file, recorded, corrected),
        tokens_recorded=average(_tokens(recorded)),
        tokens_corrected=average(_tokens(corrected)),
        figures=_figures(file, recorded, corrected),
    )


def _tokens(records: Sequence[AnswerRecord]) -> list[float]:
    return [record.tokens for record in records if record.tokens is not None]


def _stages(
    file: ResultFile, recorded: Sequence[AnswerRecord], corrected: Sequence[AnswerRecord]
) -> dict[str, Stage]:
    found = {}
    for key in dict.fromkeys(key for record in recorded for key in record.times):
        after = _after(corrected, key)
        found[key] = Stage(
            part=file.group.stages.get(key, ""),
            recorded=average([r.times[key] for r in recorded if key in r.times]),
            corrected=after if after.n else None,
        )
    return found


def _after(corrected: Sequence[AnswerRecord], key: str) -> Average:
    """The averages without a warm-up in this stage.  Without it no record is the first."""
    timed = [record for record in corrected if key in record.times]
    warm = [record for record in timed if f"cold:{key}" not in record.marks]
    found = average([record.times[key] for record in warm])
    without = timed and warm and timed[0] is not warm[0]
    return replace(found, mean_without_first=found.mean) if without else found


def _figures(
    file: ResultFile, recorded: Sequence[AnswerRecord], corrected: Sequence[AnswerRecord]
) -> dict[str, float]:
    found: dict[str, float] = {}
    for key in dict.fromkeys(key for record in recorded for key in record.sizes):
        values = [record.sizes[key] for record in recorded if key in record.sizes]
        found[key] = math.fsum(values) / len(values)
    contexts = [record.context for record in corrected if record.context is not None]
    if contexts:
        found["context_corrected"] = math.fsum(contexts) / len(contexts)
    return (
        found
        | _answers(recorded, corrected)
        | _rates(file, recorded)
        | _speculation(file, recorded)
    )


def _answers(
    recorded: Sequence[AnswerRecord], corrected: Sequence[AnswerRecord]
) -> dict[str, float]:
    """Figures of ids and texts: distinct texts, EOS, prompt ids, missing ids."""
    found: dict[str, float] = {}
    ids = [record.ids for record in recorded if record.ids is not None]
    texts = [record.text for record in recorded if record.text is not None]
    if ids:
        found["ids_mean"] = math.fsum(len(one) for one in ids) / len(ids)
        found["ended_with_eos"] = sum(bool(one) and one[-1] == EOS for one in ids) / len(ids)
        found["prompt_ids"] = max(prompt_ids(one) for one in ids)
    if texts:
        found["distinct_texts"] = len(set(texts))
        found["empty_texts"] = sum(not text.strip() for text in texts)
    found["sliced_records"] = sum("sliced" in record.marks for record in corrected)
    lengths = [r.tokens for r in corrected if r.tokens is not None]
    if lengths:
        found["max_tokens"] = max(lengths)
    return found


def _rates(file: ResultFile, recorded: Sequence[AnswerRecord]) -> dict[str, float]:
    """Tokens per second of decoding over all records, and how far totals are from their stages."""
    found: dict[str, float] = {}
    timed = []
    for record in recorded:
        spent = record.part("decode") or record.part("steps")
        if spent and record.tokens is not None:
            seconds = spent[1] / (1000 if spent[0].endswith("_ms") else 1)
            timed.append((record.tokens, seconds))
    if timed and math.fsum(seconds for _, seconds in timed) > 0:
        found["tokens_per_s"] = sum(t for t, _ in timed) / math.fsum(s for _, s in timed)
    gaps = []
    for record in file.whole(recorded[0].model) if recorded else ():
        total, stages = record.part("total"), record.stage_sum
        if total and stages is not None and file.group.has_stage_times:
            gaps.append(abs(total[1] - stages))
    if gaps:
        found["max_total_minus_stages"] = max(gaps)
    return found


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


def figures(file: ResultFile) -> dict[str, Average]:
    """The numbers that belong to no model, by name."""
    values: dict[str, list[float]] = {}
    for figure in file.figures:
        values.setdefault(figure.name, []).append(figure.value)
    return {name: average(found) for name, found in values.items()}


def as_dict(file: ResultFile, findings: Sequence[Any] = (), gamma: int = GAMMA) -> dict[str, Any]:
    """The file as one JSON object; findings: anything with `as_dict()`."""
    return {
        "file": file.name,
        "group": str(file.group),
        "unit": file.unit,
        "records": file.samples,
        "clips": file.clips,
        "errors": len(file.failures),
        "status": file.status,
        "message": file.message,
        "models": {found.model: _as_dict(found) for found in models(file)},
        "acceptance": acceptance_dict(file, gamma),
        "figures": {name: asdict(found) for name, found in figures(file).items()},
        "stated": [asdict(claim) for claim in file.claims],
        "config": {key: _plain(value) for key, value in file.config.items()},
        "findings": [finding.as_dict() for finding in findings],
    }


def _plain(value: object) -> object:
    """A setting that JSON can hold: NaN and Infinity become text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _as_dict(found: ModelSummary) -> dict[str, Any]:
    return {
        **found.figures,
        "n": found.n,
        "claimed": found.claimed,
        "evidence": found.evidence,
        "agrees": found.agrees,
        "stages": {
            key: {
                "part": stage.part,
                **asdict(stage.recorded),
                "corrected": asdict(stage.corrected) if stage.corrected else None,
            }
            for key, stage in found.stages.items()
        },
        "tokens_recorded": found.tokens_recorded.mean,
        "tokens_corrected": found.tokens_corrected.mean,
        "tokens": found.tokens_recorded.mean,
        "token_averages": {
            "recorded": asdict(found.tokens_recorded),
            "corrected": asdict(found.tokens_corrected),
        },
    }


def acceptance_dict(file: ResultFile, gamma: int = GAMMA) -> dict[str, Any]:
    """The figures of all comparisons and the stated rates; {} without ids."""
    found = variants(file, gamma)
    if not found:
        return {}
    others = {name: _comparison(one) for name, one in found.items() if name != "main"}
    rows: list[Stated] = list(stated(file))
    main = _comparison(found["main"]) if "main" in found else {}
    return {**main, **others, "stated": [asdict(row) for row in rows]}


def _comparison(found: Acceptance) -> dict[str, Any]:
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
