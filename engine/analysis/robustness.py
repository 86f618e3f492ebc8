"""Runs that differ in the strength of one change: accuracy and changed answers at each strength.

Three shares, over the records that have an answer at strength 0 (docs/results.md): right answers
of multiple-choice questions, right attributes of demo scenes, and answers whose token ids differ
from those at strength 0.  A result without an answer is in no share; it is counted beside it.
Runs that differ in anything else that may change answers give a sentence and no curve.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from engine.analysis.answer_reading import asked_content, is_scene, read_attributes, read_choice
from engine.analysis.statistics import cluster_of, clustered_share
from engine.media_options import CHANGES, Change, Perturbation, swept_change
from engine.quoting import joined, quoted
from engine.storage.plan import Plan
from engine.storage.result_rows import ResultRow
from engine.storage.run_store import Run

if TYPE_CHECKING:
    import pandas as pd

Measure = Literal["choices", "attributes", "changed"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
KEY = ["model", "sample", "repeat"]
ITEM = [*KEY, "measure", "item"]


@dataclass(frozen=True)
class Point:
    """A share of n records at one strength.  low, high: its 95 % interval over sequences, None
    below MIN_CLUSTERS of them.  failed: results without an answer."""

    strength: float
    share: float
    low: float | None
    high: float | None
    n: int
    sequences: int
    failed: int


@dataclass(frozen=True)
class Curve:
    """One model's points, ascending by strength."""

    model: str
    title: str
    family: str
    measure: Measure
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Robustness:
    """The curves of a sweep; `problem` says what is missing if there are none.  `others`: the
    changes that all runs have, "" for none."""

    change: Change | None
    others: str = ""
    seed: int = 0
    curves: tuple[Curve, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""

    @property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(one for one in MEASURES if any(c.measure == one for c in self.curves))


def find(runs: Sequence[Run]) -> Robustness | None:
    """The curves of the runs, or why there are none; None if no run is perturbed."""
    plans = [run.header.plan for run in runs]
    if not any(plan.perturbed for plan in plans):
        return None
    change = swept_change(_strong(plan) for plan in plans)
    if change is None or (problem := next(_problems(runs, change), "")):
        return Robustness(change, problem=problem if change else _no_sweep(plans))
    ordered = sorted(runs, key=lambda run: _strength(run.header.plan, change))
    strengths = [_strength(run.header.plan, change) for run in ordered]
    tables = [_judged(run) for run in ordered]
    if problem := next(_unfinished(ordered, tables), ""):
        return Robustness(change, problem=problem)
    # The models' names for people; with the name where two models share one.
    labels = {one.name: one.label for one in ordered[0].header.models}
    names = Counter(labels.values())
    titles = {
        name: f"{label} ({name})" if names[label] > 1 else label
        for name in ordered[0].header.plan.models
        if (label := labels[name]) and all((table["model"] == name).any() for table in tables)
    }
    curves = [
        curve for name, title in titles.items() for curve in _curves(name, title, strengths, tables)
    ]
    last = ordered[-1].header.plan
    others = ",".join(str(one) for one in _strong(last) if one.change != change)
    notes = _notes(plans, titles, tables, [f"{change}:{one:.9g}" for one in strengths])
    return Robustness(change, others, last.perturb_seed, tuple(curves), tuple(notes))


def _judged(run: Run) -> pd.DataFrame:
    """A line per measured result and thing that is judged of it (ITEM).

    value: whether the right option, or an attribute of a demo scene, was named; None if the answer
    does not state the attribute; of the measure "changed" the token ids.  drawn: the pictures were
    drawn from raw events.
    """
    import pandas as pd  # slow to import

    lines = [
        {
            **{name: getattr(row, name) for name in KEY},
            "sequence": cluster_of(row.sequence, row.sample),
            "family": row.family or "",
            "drawn": (row.shown or "").startswith("raw events"),
            "failed": bool(row.error),
            "measure": measure,
            "item": item,
            "value": value,
        }
        for _, row in run.results()
        if row.phase == "measured"
        for measure, item, value in _items(row)
    ]
    columns = [*ITEM, "sequence", "family", "drawn", "failed", "value"]
    return pd.DataFrame(lines, columns=columns, dtype=object).drop_duplicates(ITEM)


def _items(row: ResultRow) -> Iterator[tuple[Measure, str, Any]]:
    yield "changed", "", row.token_ids
    text = row.text or ""
    if row.choices and row.right_letter and not row.off_script:
        form = row.choice_form or "letters"
        said = read_choice(text, row.choices, form, row.question_task)
        yield "choices", "", said == row.right_letter
    if is_scene(row.truth) and not row.off_script:
        claims = read_attributes(text)
        for name, value in asked_content(row.truth, row.question_task).items():
            yield "attributes", name, claims[name] == value if name in claims else None


def _curves(
    name: str, title: str, strengths: Sequence[float], tables: Sequence[pd.DataFrame]
) -> Iterator[Curve]:
    """The curves of one model that have records; tables[0] is the reference."""
    tables = [table[table["model"] == name] for table in tables]
    plain = tables[0][~tables[0]["failed"].astype(bool)]
    stated = {"", *plain.loc[plain["value"].notna(), "item"]}
    family = next(filter(None, tables[0]["family"]), "")
    for measure in MEASURES:
        counted = plain[(plain["measure"] == measure) & plain["item"].isin(stated)]
        points: list[Point] = []
        for strength, table in zip(strengths, tables, strict=True):
            failed = table.loc[table["failed"].astype(bool), KEY].drop_duplicates()
            lost = plain[KEY].drop_duplicates().merge(failed)
            now = table[[*ITEM, "value"]]
            both = counted.merge(now, how="left", on=ITEM, suffixes=("", "_now"))
            both = both.merge(lost.assign(lost=True), how="left", on=KEY)
            both = both[both["lost"].isna()]
            if both.empty:
                continue
            changed = both["value_now"] != both["value"]
            right = both["value_now"].map(lambda value: value is True)
            values = (changed if measure == "changed" else right).astype(float)
            share = clustered_share(values.tolist(), both["sequence"].tolist())
            low, high = share.low, share.high
            if measure == "changed" and not points:
                low, high = 0.0, 0.0  # by definition
            counts = share.n, share.clusters, len(lost)
            points.append(Point(strength, share.share, low, high, *counts))
        if points:
            yield Curve(name, title, family, measure, tuple(points))


def _notes(
    plans: Sequence[Plan],
    titles: Mapping[str, str],
    tables: Sequence[pd.DataFrame],
    strengths: Sequence[str],
) -> Iterator[str]:
    """What has no curve or no point, and who sees prepared event images at strength 0 only."""
    everywhere = set.intersection(*({*plan.models} for plan in plans))
    if left_out := sorted({name for plan in plans for name in plan.models} - everywhere):
        names = ", ".join(map(quoted, left_out))
        yield f"Not in all the chosen runs, so without a curve: {names}."
    for name, title in titles.items():
        ends = tables[0], tables[-1]
        first, last = (table.loc[table["model"] == name, "drawn"].any() for table in ends)
        if last and not first:
            yield (
                f"{title} was shown the prepared event images at strength 0 and pictures "
                "drawn from raw events at the others: if they differ, so may the answers."
            )
        for strength, table in zip(strengths, tables, strict=True):
            rows = table[(table["model"] == name) & (table["measure"] == "changed")]
            if len(rows) and rows["failed"].all():
                why = f"all its {len(rows):,} results failed there"
                yield f"{title} has no point at {strength}, because {why}."


def _strong(plan: Plan) -> tuple[Perturbation, ...]:
    return tuple(one for one in plan.perturb if one.strength)


def _strength(plan: Plan, change: Change) -> float:
    """0 without this change."""
    return next((one.strength for one in plan.perturb if one.change == change), 0.0)


# What is missing or differs, and what to do.
def _unfinished(runs: Sequence[Run], tables: Sequence[pd.DataFrame]) -> Iterator[str]:
    for run, table in zip(runs, tables, strict=True):
        plan, done = run.header.plan, int((table["measure"] == "changed").sum())
        if done < plan.planned:
            has = f"The run {run.id} has {done:,} of {plan.planned:,} results"
            yield f"{has}: resume it, or repeat the sweep with the same --out."
    if not set.intersection(*({*run.header.plan.models} for run in runs)):
        yield "No model is in all the chosen runs: choose runs of the same models."


def _no_sweep(plans: Sequence[Plan]) -> str:
    perturbed = {one for plan in plans for one in _strong(plan)}
    every = sorted(perturbed, key=lambda one: (CHANGES.index(one.change), one.strength))
    if len({_strong(plan) for plan in plans}) == 1:
        return (
            f"All chosen runs are perturbed by {','.join(map(str, every))}, so there is no "
            "reference: choose the run of the same samples with strength 0, too."
        )
    words = " and ".join(dict.fromkeys(one.change for one in every))
    several = f"The chosen runs differ in several changes ({words})"
    return f"{several}: choose runs that differ in the strength of one."


def _problems(runs: Sequence[Run], change: Change) -> Iterator[str]:
    headers = [run.header for run in runs]
    plans = [header.plan for header in headers]
    strengths = [_strength(plan, change) for plan in plans]
    if twice := [one for one in strengths if strengths.count(one) > 1]:
        both = [run.id for run, one in zip(runs, strengths, strict=True) if one == twice[0]]
        yield f"{joined(both)} both have {Perturbation(change, twice[0])}: leave one out."
    if 0.0 not in strengths:
        missing = f"The run with {Perturbation(change, 0.0)} is missing"
        yield f"{missing}, and the others are compared with it: choose it, too."
    values: dict[str, set[object]] = {
        "repeat": {plan.repeat for plan in plans},
        "perturb seed": {plan.perturb_seed for plan in plans if plan.perturbed},
        "samples": {plan.samples for plan in plans},
        "the dataset's files": {header.dataset.digest for header in headers},
        "the engine's code": {header.code for header in headers},
        "the device": {header.environment.get("device") for header in headers},
    }
    for one in (model for header in headers for model in header.models):
        values.setdefault(f"the checkpoint of {one.name}", set()).add((one.digest, one.dtype))
    settings = (plans[0].differing(plan, times=False) for plan in plans)
    differing = dict.fromkeys(name for plan in settings for name in plan if name != "perturb")
    names = [*differing, *(name for name, several in values.items() if len(several) > 1)]
    if names:
        yield (
            f"The chosen runs differ in {joined(names)} besides the strength, which may change "
            "answers, too: choose runs of the same samples and settings, or repeat the sweep."
        )
