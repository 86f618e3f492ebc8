"""The values of a run that a gate compares, and whether those of two runs can be compared.

`refuse` raises BadInput with one sentence: what differs, and what to do.  Code, checkpoints and
libraries may differ; `changes` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from engine.analysis import machine_loads, metrics
from engine.analysis.answer_reading import asked_content, is_scene, read_attributes
from engine.analysis.metrics import PAIRED, Metric
from engine.analysis.pairs import sample_medians
from engine.analysis.results_table import answered, frame, labels, measured
from engine.errors import BadInput
from engine.quoting import count, cut, joined, shown
from engine.storage import plan_words
from engine.storage.plan import Plan
from engine.storage.run_header import Header
from engine.storage.run_store import Run
from engine.storage.run_values import ModelValues, RunValues, SampleValues

if TYPE_CHECKING:
    import pandas as pd

TOKENS = "new_tokens"
GATED: tuple[Metric, ...] = tuple(one for one in PAIRED if one.name != "unaccounted")
DIGITS = 6  # of a kept value
WITHOUT_TIMES = "or compare without times (--metric tokens,accuracy,answers)"


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
    answers, timed = answered(lines), measured(lines)
    values: dict[str, dict[str, float]] = {}
    turns: dict[str, dict[str, dict[int, float]]] = {}
    for metric in GATED:
        fair = metrics.fair(timed, metric)
        counted = answers if metric.name == TOKENS else fair
        for sample, value in sample_medians(counted, metric)["value"].items():
            values.setdefault(str(sample), {})[metric.name] = round(float(value), DIGITS)
        columns = ["sample", "repeat", metric.column]
        known = fair[columns].dropna() if header.together else fair[columns][:0]
        for sample, repeat, value in known.itertuples(index=False):
            of_sample = turns.setdefault(str(sample), {}).setdefault(metric.name, {})
            of_sample[int(repeat)] = round(float(value), DIGITS)
    right = accuracy(answers)
    sizes = answers["sample"].value_counts()
    first = answers.drop_duplicates("sample")[["sample", "sequence", "offset"]]
    samples = {
        name: SampleValues(
            sequence=sequence or f"\0{name}",
            results=int(sizes[name]),
            values=values.get(name, {}),
            turns=turns.get(name, {}),
            right=right.get(name),
            token_ids=ids.get(offset),
        )
        for name, sequence, offset in first.itertuples(index=False)
    }
    device, shared = (
        ", ".join(sorted(set(filter(None, map(str, answers[name])))))
        for name in ("device", "shared")
    )
    return ModelValues(
        label=label,
        model=str(lines["model"].iloc[0]),
        device=device,
        shared=shared,
        cached=int(timed["cached"].sum()),
        load=machine_loads.of(timed),
        samples=samples,
        failed=tuple(sample for sample in header.plan.samples if sample not in samples),
    )


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


def refuse(runs: Sequence[RunValues], labels: tuple[str, ...], timed: bool) -> None:
    """BadInput if the runs cannot be compared with the first; `timed`: their times are too."""
    for problem in _problems(runs, labels, timed):
        raise BadInput(problem)


def _problems(runs: Sequence[RunValues], labels: tuple[str, ...], timed: bool) -> Iterator[str]:
    ids = [run.id for run in runs]
    if twice := [one for one in ids if ids.count(one) > 1]:
        yield f"The run {cut(twice[0])} is named twice: name two runs."
    for run in runs:
        if not run.finished:
            how = "start both again" if run.header.together else "continue it with `bench --resume`"
            yield (
                f"The run {cut(run.id)} is not finished, or its summary.json is damaged: {how}, "
                "then compare."
            )
    base, *others = runs
    for other in others:
        yield from _other_samples(base, other)
        yield from _other_settings(base.header.plan, other.header.plan, timed)
    if not labels:
        ours, theirs = (_listed(one.label for one in run.models) for run in (base, runs[-1]))
        yield (
            f"The runs have no model in common (BASE has {ours}, NEW has {theirs}): compare runs "
            "of the same models."
        )
    for other in others if timed else ():
        for label in labels:
            first, second = base.model(label), other.model(label)
            assert first is not None and second is not None
            yield from _other_times(first, second)


def _other_samples(base: RunValues, new: RunValues) -> Iterator[str]:
    ours, theirs = set(base.header.plan.samples), set(new.header.plan.samples)
    shared = ours & theirs
    if not shared:
        yield (
            f"The runs have no sample in common (BASE has {len(ours):,}, NEW has {len(theirs):,}): "
            "compare runs of the same samples."
        )
    if ours != theirs:
        yield (
            f"The runs have different samples (NEW lacks {len(ours - shared):,} of the "
            f"{len(ours):,} of BASE and has {len(theirs - shared):,} others): run NEW on the "
            "samples of BASE."
        )
    if base.header.dataset.digest != new.header.dataset.digest:
        yield (
            "The samples have the same names, but their records, files or order differ: run both "
            "on the same dataset."
        )


def _other_settings(base: Plan, new: Plan, timed: bool) -> Iterator[str]:
    found = plan_words.differing(base, new, timed)
    if timed and len(base.models) > 1 and len(new.models) > 1 and base.order != new.order:
        found["order"] = f"models {base.order}", f"models {new.order}"
    if found:
        parts = [f"{name} (BASE: {ours}; NEW: {theirs})" for name, (ours, theirs) in found.items()]
        yield f"The runs differ in {joined(parts)}: run NEW with the settings of BASE."
    if timed and base.batch > 1:
        yield (
            f"The runs answered batches of {base.batch:,}, where samples are not timed "
            f"separately: run both with --batch 1, {WITHOUT_TIMES}."
        )


def _other_times(base: ModelValues, new: ModelValues) -> Iterator[str]:
    label = cut(base.label)
    if base.device != new.device:
        yield (
            f"{label} ran on different types of devices (BASE: {base.device or 'not known'}; NEW: "
            f"{new.device or 'not known'}): run both on the same type, {WITHOUT_TIMES}."
        )
    for side, model in (("BASE", base), ("NEW", new)):
        if model.shared:
            yield (
                f"In {side}, {label} ran with {model.shared}, so its times include other work: "
                f"run it alone on its device, {WITHOUT_TIMES}."
            )
        if model.cached:
            results = count(model.cached, "result")
            yield (
                f"In {side}, {results} of {label} read a stage from the cache, so their times "
                f"were not measured: run it with --cache off, {WITHOUT_TIMES}."
            )
    if why := machine_loads.incomparable_loads("BASE", base.load, "NEW", new.load):
        yield (
            f"The times of {label} cannot be compared ({why}): repeat the run on an idle machine, "
            f"{WITHOUT_TIMES}."
        )


def changes(base: RunValues, new: RunValues, labels: tuple[str, ...]) -> Iterator[str]:
    """Sentences about code, checkpoints, dtypes, the machine and models in one run only."""
    if base.header.code != new.header.code:
        yield "The engine's code or libraries differ."
    else:
        yield "The engine's code and libraries are the same."
    theirs = {one.name: one for one in new.header.models}
    shared = dict.fromkeys(model.model for model in base.models if model.label in labels)
    for one in base.header.models:
        other = theirs.get(one.name)
        if one.name in shared and other is not None:
            if one.digest != other.digest:
                yield f"{one.name} has another checkpoint (BASE: {one.digest[:12]}; NEW: " \
                      f"{other.digest[:12]})."  # fmt: skip
            if one.dtype != other.dtype:
                yield f"{one.name} has another dtype (BASE: {one.dtype}; NEW: {other.dtype})."
    ours, now = base.header.environment, new.header.environment
    if names := [name for name in ours if name in now and ours[name] != now[name]]:
        parts = [f"{name} {cut(ours[name])} in BASE and {cut(now[name])} in NEW" for name in names]
        yield f"The machine or its libraries differ: {', '.join(parts)}."
    for side, here, there in (("BASE", base, new), ("NEW", new, base)):
        if alone := [one.label for one in here.models if there.model(one.label) is None]:
            yield f"Only in {side}, so not compared: {_listed(alone)}."
    for label in labels:
        unknown = [
            side
            for side, values in (("BASE", base), ("NEW", new))
            if (model := values.model(label)) is not None and model.load is None
        ]
        if unknown:
            yield f"The machine's load is not known for {label} in {joined(unknown)}."


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(shown, names)) or "none"
