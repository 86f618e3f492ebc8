"""The figures of a file, as `import --json` prints them: per model and stage its mean, median and
mean without the first record; its records as a table in ms, and their means for bars.

Stages keep the file's keys and unit.  Recorded means are over all records; corrected means do not
include a warm-up (see corrected.py).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from engine.analysis.acceptance import GAMMA, Range
from engine.palette import UNACCOUNTED
from engine.published.read.answer_pairs import matched, stated, variants
from engine.published.read.corrected import prompt_ids
from engine.published.read.record_types import EOS, AnswerRecord, ResultFile, milliseconds
from engine.types import STAGES, StageName

if TYPE_CHECKING:
    import pandas as pd

Figures = dict[str, Any]
AVERAGES = ("mean", "median", "mean_without_first")
_SAME = ("draft", "target", "pairs", "clips", "mean_prefix", "max_prefix", "gamma",
         "expected_tokens", "cost_ratio", "ceiling")  # fmt: skip
_RANGES = {"rate": "pos_rate", "shuffled": "shuffled", "speedup": "predicted_speedup"}


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def average(values: Iterable[float | None]) -> Figures:
    """Mean, median and mean without the first of the n known values; None without values."""
    known = _known(values)
    return {
        "mean": statistics.fmean(known) if known else None,
        "median": statistics.median(known) if known else None,
        "mean_without_first": statistics.fmean(known[1:]) if known[1:] else None,
        "n": len(known),
    }


def models(file: ResultFile) -> dict[str, Figures]:
    """Averages of stages and tokens, means of the other numbers, and counts of problems."""
    found = {}
    for model in file.models:
        recorded, corrected = file.of(model), file.of(model, corrected=True)
        identity = file.identities[model]
        both = {"recorded": recorded, "corrected": corrected}
        tokens = {kind: average(r.tokens for r in records) for kind, records in both.items()}
        stages = {}
        for key in dict.fromkeys(key for record in recorded for key in record.times):
            timed = [record for record in corrected if key in record.times]
            warm = [record.times[key] for record in timed if f"cold:{key}" not in record.marks]
            better = average(warm)
            if warm and f"cold:{key}" in timed[0].marks:  # without a warm-up no record is the first
                better["mean_without_first"] = better["mean"]
            stages[key] = {
                "part": file.group.stages.get(key, ""),
                **average(record.times.get(key) for record in recorded),
                "corrected": better if warm else None,
            }
        found[model] = {
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
    return found


def _figures(
    file: ResultFile, recorded: Sequence[AnswerRecord], corrected: Sequence[AnswerRecord]
) -> Figures:
    """Means of other numbers; figures of ids, texts, decoding over all records, and totals beside
    their stages; of end-to-end times speed-up, acceptance and equal texts.  Unknown: left out."""
    sizes = dict.fromkeys(key for record in recorded for key in record.sizes)
    found = {key: average(r.sizes.get(key) for r in recorded)["mean"] for key in sizes}
    ids = [record.ids for record in recorded if record.ids is not None]
    texts = [record.text for record in recorded if record.text is not None]
    both = [(r.tokens, milliseconds(*spent) / 1000) for r in recorded
            if r.tokens is not None and (spent := r.part("decode") or r.part("steps"))]  # fmt: skip
    seconds = math.fsum(spent for _, spent in both)
    whole = file.whole(recorded[0].model) if recorded and file.group.covers else []
    gaps = [abs(total[1] - record.stage_sum) for record in whole
            if (total := record.part("total")) and record.stage_sum is not None]  # fmt: skip
    found |= {
        "context_corrected": average(record.context for record in corrected)["mean"],
        "ids_mean": average(map(len, ids))["mean"],
        "ended_with_eos": statistics.fmean([one[-1:] == (EOS,) for one in ids]) if ids else None,
        "prompt_ids": max(map(prompt_ids, ids), default=None),
        "distinct_texts": len(set(texts)) if texts else None,
        "empty_texts": sum(not text.strip() for text in texts) if texts else None,
        "sliced_records": sum("sliced" in record.marks for record in corrected),
        "max_tokens": max(_known(record.tokens for record in corrected), default=None),
        "tokens_per_s": sum(tokens for tokens, _ in both) / seconds if seconds > 0 else None,
        "max_total_minus_stages": max(gaps, default=None),
    }
    if recorded and "sd_total_ms" in recorded[0].times:  # end-to-end times
        alone = _known(record.times.get("bl_total_ms") for record in recorded)
        aided = _known(record.times.get("sd_total_ms") for record in recorded)
        drafted = math.fsum(record.sizes.get("drafted", 0.0) for record in recorded)
        accepted = math.fsum(record.sizes.get("accepted", 0.0) for record in recorded)
        same = [mine.text == own.text for mine, own in matched(file, recorded[0].model, "baseline")
                if mine.text is not None and own.text is not None]  # fmt: skip
        timed = alone and len(alone) == len(aided) and sum(aided) > 0
        found |= {
            "ratio_of_means": math.fsum(alone) / math.fsum(aided) if timed else None,
            "accept_micro": accepted / drafted if drafted > 0 else None,
            "text_identical_to_baseline": statistics.fmean(same) if same else None,
        }
    return {name: value for name, value in found.items() if value is not None}


def as_dict(file: ResultFile, findings: Sequence[Any] = (), gamma: int = GAMMA) -> Figures:
    """The file as one JSON object; findings: anything with `as_dict()`."""
    values: dict[str, list[float]] = {}  # the numbers that belong to no model
    for figure in file.figures:
        values.setdefault(figure.name, []).append(figure.value)
    compared: dict[str, Figures] = {}
    for kind, one in variants(file, gamma).items():
        figures = compared[kind] = {name: getattr(one, name) for name in _SAME}
        figures |= {"pos_matched": one.matched, "pos_compared": one.compared}
        figures |= {f"first_window_g{g}": value for g, value in one.first_windows.items()}
        for of, name in _RANGES.items():
            known: Range | None = getattr(one, of)
            value = "shuffled_rate" if name == "shuffled" else name
            figures[value] = known.value if known else None
            figures[f"{name}_interval"] = list(known.interval) if known and known.interval else None
    rates = [{"path": one.path, "stated": one.stated, "ours": one.rows} for one in stated(file)]
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
        "acceptance": compared and {**compared.pop("main", {}), **compared, "stated": rates},
        "figures": {name: average(found) for name, found in values.items()},
        "stated": [asdict(claim) for claim in file.claims],
        "config": dict(file.config),
        "findings": [finding.as_dict() for finding in findings],
    }


@dataclass(frozen=True)
class Bar:
    """One model.  parts: mean ms by stage and "unaccounted"; notes: how to read them."""

    model: str
    parts: Mapping[str, float]
    notes: tuple[str, ...]


def frame(file: ResultFile, corrected: bool = True) -> pd.DataFrame:
    """All records in the columns of own runs, a row per sample and model; missing values are None.
    tok/s is over all of decoding, because these files have no time of the first token."""
    import pandas as pd

    rows = []
    for record in file.corrected if corrected else file.records:
        time = record.ms("steps") or record.ms("decode")
        row = {
            "sample": record.sample,
            "model": record.model,
            **{f"{name} (ms)": _spent(record, name) for name in STAGES},
            "total (ms)": record.ms("total"),
            "new tokens": record.tokens,
            "tok/s": 1000 * record.tokens / time if time and record.tokens else None,
            "context": record.context,
            "answer": record.text,
            "corrected for": ", ".join(sorted(record.marks)),
            "where": record.path,
        }
        rows.append(row)
    return pd.DataFrame(rows)


def _spent(record: AnswerRecord, stage: StageName) -> float | None:
    """The ms of a stage; decoding can be the sum of prefill and token steps."""
    spent = record.ms(stage)
    if stage == "load" and spent is None:
        return record.ms("load+preprocess")
    if stage == "decode" and spent is None:
        made = _known([record.ms("prefill"), record.ms("steps")])
        return sum(made) if made else None
    return spent


def bars(file: ResultFile, corrected: bool = True) -> tuple[Bar, ...]:
    found = []
    for model in file.models:
        records = file.of(model, corrected)
        stages = {str(name): _known(_spent(one, name) for one in records) for name in STAGES}
        parts = {name: statistics.fmean(values) for name, values in stages.items() if values}
        rest = [whole - sum(_known(_spent(record, name) for name in STAGES)) for record in records
                if not record.lost and (whole := record.ms("total")) is not None]  # fmt: skip
        if any(record.ms("total") is not None for record in records):
            parts[UNACCOUNTED] = max(0.0, statistics.fmean(rest)) if rest else 0.0
        known = {file.group.stages.get(key) for record in records for key in record.times}
        together = "load+preprocess" in known
        absent = [stage for stage in STAGES if stage not in parts
                  and not (together and stage == "preprocess")]  # fmt: skip
        notes = {
            "load includes preprocessing: both were timed together": together,
            "decode is the token steps only": "steps" in known and "prefill" not in known,
            "decode is the prefill only": "prefill" in known and not known & {"steps", "decode"},
            f"not measured separately: {', '.join(absent)}": bool(absent),
        }
        if parts:
            found.append(Bar(model, parts, tuple(note for note, holds in notes.items() if holds)))
    return tuple(found)
