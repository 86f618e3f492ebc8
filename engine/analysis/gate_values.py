"""The values of a run that a gate compares: medians per sample, accuracy, token ids, conditions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.analysis import machine_loads, metrics
from engine.analysis.answer_reading import asked_content, is_scene, read_attributes
from engine.analysis.metrics import PAIRED, Metric
from engine.analysis.pairs import sample_medians
from engine.analysis.results_table import frame, labels, measured
from engine.storage.run_header import Header
from engine.storage.run_store import Run
from engine.storage.run_values import ModelValues, RunValues, SampleValues

if TYPE_CHECKING:
    import pandas as pd

TOKENS = "new_tokens"
GATED: tuple[Metric, ...] = tuple(one for one in PAIRED if one.name != "unaccounted")
DIGITS = 6  # of a kept value


def values_of(run: Run) -> RunValues:
    """All values of all models of a run."""
    table = frame([run])
    ids = {offset: row.token_ids for offset, row in run.results()}
    models = tuple(_model(table, label, ids, run.header) for label in labels(table))
    return RunValues(run.header, run.state == "finished", models)


def _model(
    table: pd.DataFrame,
    label: str,
    ids: dict[int, tuple[int, ...] | None],
    header: Header,
) -> ModelValues:
    lines = table[table["label"] == label]
    answers = lines[(lines["phase"] == "measured") & (lines["error"] == "")]
    timed = measured(lines)
    load = machine_loads.of(timed)
    found = {metric.name: _medians(answers, timed, metric) for metric in GATED}
    turns = {metric.name: _turns(timed, metric) for metric in GATED if header.together}
    right = accuracy(answers)
    samples = {}
    for name, sequence, offset, results in _first(answers):
        samples[name] = SampleValues(
            sequence=sequence or f"\0{name}",
            results=results,
            values={metric: of[name] for metric, of in found.items() if name in of},
            turns={metric: of[name] for metric, of in turns.items() if name in of},
            right=right.get(name),
            token_ids=ids.get(offset),
        )
    return ModelValues(
        label=label,
        model=str(lines["model"].iloc[0]),
        device=_only(answers["device"]),
        shared=_only(answers["shared"]),
        cached=int(timed["cached"].sum()),
        load=load,
        samples=samples,
        failed=tuple(sample for sample in header.plan.samples if sample not in samples),
    )


def _first(answers: pd.DataFrame) -> Iterator[tuple[str, str, int, int]]:
    """Per sample its name, its sequence, the place of its first answer and how many it has."""
    grouped = answers.groupby("sample", sort=False)
    lines = grouped.agg(
        sequence=("sequence", "first"), offset=("offset", "first"), results=("offset", "size")
    )
    for name, sequence, offset, results in lines.itertuples(name=None):
        yield str(name), str(sequence or ""), int(offset), int(results)


def _only(values: pd.Series[str]) -> str:
    return ", ".join(sorted({str(value) for value in values if value}))


def _medians(answers: pd.DataFrame, timed: pd.DataFrame, metric: Metric) -> dict[str, float]:
    lines = answers if metric.name == TOKENS else metrics.fair(timed, metric)
    found = sample_medians(lines, metric)["value"]
    return {str(sample): round(float(value), DIGITS) for sample, value in found.items()}


def _turns(timed: pd.DataFrame, metric: Metric) -> dict[str, dict[int, float]]:
    """Per sample and repeat."""
    lines = metrics.fair(timed, metric).dropna(subset=[metric.column])
    found: dict[str, dict[int, float]] = {}
    for sample, repeat, value in lines[["sample", "repeat", metric.column]].itertuples(index=False):
        found.setdefault(str(sample), {})[int(repeat)] = round(float(value), DIGITS)
    return found


def accuracy(answers: pd.DataFrame) -> dict[str, float]:
    """Per sample the share that is right: of its answers to a multiple-choice question, otherwise
    of the attributes of a demo scene that the first answer was asked for.  Samples whose content is
    not known, and questions that a demo model was not trained on, have none."""
    lines = answers[~answers["off_script"].astype(bool)]
    chosen = lines[(lines["choices"] > 0) & (lines["right"] != "")]
    found = {
        str(sample): float(share)
        for sample, share in (chosen["right"] == "yes").groupby(chosen["sample"]).mean().items()
    }
    open_ended = lines[(lines["choices"] == 0) & lines["truth"].map(is_scene).astype(bool)]
    first = open_ended.drop_duplicates("sample")[["sample", "truth", "question_task", "text"]]
    for sample, truth, task, text in first.itertuples(index=False, name=None):
        if asked := asked_content(truth, task):
            said = read_attributes(text)
            right = sum(said.get(name) == value for name, value in asked.items())
            found[str(sample)] = right / len(asked)
    return found
