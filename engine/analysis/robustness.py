"""Runs that differ in the strength of one change: accuracy and changed answers at each strength.

Three shares, over the records that have an answer at strength 0 (docs/robustness.md): right answers
of multiple-choice questions, right attributes of demo scenes, and answers whose token ids differ
from those at strength 0.  A result without an answer is in no share; it is counted beside it.
Runs that differ in anything else that may change answers give a sentence and no curve.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from engine.analysis.answer_reading import asked_content, is_scene, read_attributes, read_choice
from engine.analysis.statistics import clustered_share
from engine.media_options import CHANGES, Change, Perturbation, swept_change
from engine.quoting import quoted
from engine.storage import plan_words
from engine.storage.plan import Plan
from engine.storage.run_store import Run

Measure = Literal["choices", "attributes", "changed"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
Key = tuple[str, int]  # sample and repeat


@dataclass(frozen=True)
class Point:
    """A share of n records at one strength.

    low, high: its 95 % interval over sequences, None below MIN_CLUSTERS of them.  failed: results
    without an answer.
    """

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
    """The curves of a sweep; `problem` says what is missing if there are none.

    `others`: the changes that all runs have, "" for none.
    """

    change: Change | None
    others: str = ""
    seed: int = 0
    curves: tuple[Curve, ...] = ()
    notes: tuple[str, ...] = ()
    problem: str = ""

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Those that have a curve."""
        return tuple(one for one in MEASURES if any(c.measure == one for c in self.curves))


@dataclass(frozen=True)
class _Answer:
    """What is judged of a row.  A multiple-choice question is right or not, and so is each stated
    attribute of a demo scene; None: the right option is not known, the attribute not stated.
    drawn: its pictures were drawn from raw events."""

    sequence: str
    family: str
    drawn: bool
    failed: bool
    tokens: str
    right_choice: bool | None
    attributes: Mapping[str, bool | None]


Answers = Mapping[str, Mapping[Key, _Answer]]  # of each model of a run


def find(runs: Sequence[Run]) -> Robustness | None:
    """The curves of the runs, or why there are none; None if no run is perturbed."""
    plans = [run.header.plan for run in runs]
    if not any(plan.perturbed for plan in plans):
        return None
    change = swept_change(_strong(plan) for plan in plans)
    if problem := next(_problems(runs, change), ""):
        return Robustness(change, problem=problem)
    assert change is not None
    ordered = sorted(runs, key=lambda run: _strength(run.header.plan, change))
    answers = [_answers(run) for run in ordered]
    if problem := next(_unfinished(ordered, answers), ""):
        return Robustness(change, problem=problem)
    strengths = [_strength(run.header.plan, change) for run in ordered]
    # The models' names for people; with the name where two models share one.
    labels = {one.name: one.label for one in ordered[0].header.models}
    names = Counter(labels.values())
    titles = {
        name: f"{label} ({name})" if names[label] > 1 else label
        for name in ordered[0].header.plan.models
        if (label := labels[name]) and all(name in one for one in answers)
    }
    curves = [
        curve
        for name, title in titles.items()
        for curve in _curves(name, title, strengths, [one[name] for one in answers])
    ]
    last = ordered[-1].header.plan
    others = ",".join(str(one) for one in _strong(last) if one.change != change)
    notes = _notes(plans, titles, answers, [f"{change}:{one:.9g}" for one in strengths])
    return Robustness(change, others, last.perturb_seed, tuple(curves), tuple(notes))


def _unfinished(runs: Sequence[Run], answers: Sequence[Answers]) -> Iterator[str]:
    for run, models in zip(runs, answers, strict=True):
        plan, done = run.header.plan, sum(map(len, models.values()))
        if done < plan.planned:
            yield (
                f"The run {run.id} has {done:,} of {plan.planned:,} results: resume it, or repeat "
                "the sweep with the same --out."
            )
    if not set.intersection(*({*run.header.plan.models} for run in runs)):
        yield "No model is in all the chosen runs: choose runs of the same models."


def _notes(
    plans: Sequence[Plan],
    titles: Mapping[str, str],
    answers: Sequence[Answers],
    strengths: Sequence[str],
) -> Iterator[str]:
    """What has no curve or no point, and who sees prepared event images at strength 0 only."""
    everywhere = set.intersection(*({*plan.models} for plan in plans))
    if left_out := sorted({name for plan in plans for name in plan.models} - everywhere):
        names = ", ".join(map(quoted, left_out))
        yield f"Not in all the chosen runs, so without a curve: {names}."
    for name, title in titles.items():
        first, last = (any(one.drawn for one in answers[at][name].values()) for at in (0, -1))
        if last and not first:
            yield (
                f"{title} was shown the prepared event images at strength 0 and pictures "
                "drawn from raw events at the others: if they differ, so may the answers."
            )
    for name, title in titles.items():
        for strength, models in zip(strengths, answers, strict=True):
            if (rows := models[name].values()) and all(one.failed for one in rows):
                yield (
                    f"{title} has no point at {strength}, because all its {len(rows):,} "
                    "results failed there."
                )


def _answers(run: Run) -> Answers:
    models: dict[str, dict[Key, _Answer]] = {}
    for _, row in run.results():
        known = models.setdefault(row.model, {}) if row.phase == "measured" else None
        if known is None or (row.sample, row.repeat) in known:
            continue
        failed, text = bool(row.error), row.text or ""
        tokens = hashlib.blake2b(repr(row.token_ids).encode(), digest_size=16).hexdigest()
        right: bool | None = None
        attributes: dict[str, bool | None] = {}
        if row.choices and row.right_letter and not row.off_script:
            form = row.choice_form or "letters"
            right = read_choice(text, row.choices, form, row.question_task) == row.right_letter
        if is_scene(row.truth) and not row.off_script:
            claims = read_attributes(text)
            for name, value in asked_content(row.truth, row.question_task).items():
                attributes[name] = claims[name] == value if name in claims else None
        known[row.sample, row.repeat] = _Answer(
            sequence=row.sequence or row.sample,
            family=row.family or "",
            drawn=(row.shown or "").startswith("raw events"),
            failed=failed,
            tokens="" if failed else tokens,
            right_choice=right,
            attributes=attributes,
        )
    return models


Judge = Callable[[_Answer, _Answer], Iterable[bool]]


def _curves(
    name: str, title: str, strengths: Sequence[float], runs: Sequence[Mapping[Key, _Answer]]
) -> Iterator[Curve]:
    """The curves of one model that have records; runs[0] is the reference."""
    family = next((one.family for one in runs[0].values() if one.family), "")
    stated = {
        attribute
        for answer in runs[0].values()
        for attribute, right in answer.attributes.items()
        if right is not None
    }
    judges: dict[Measure, Judge] = {
        "choices": lambda answer, plain: (
            () if plain.right_choice is None else (answer.right_choice is True,)
        ),
        "attributes": lambda answer, plain: (
            answer.attributes.get(one) is True for one in plain.attributes if one in stated
        ),
        "changed": lambda answer, plain: (answer.tokens != plain.tokens,),
    }
    for measure, judge in judges.items():
        points: list[Point] = []
        for strength, run in zip(strengths, runs, strict=True):
            # Whether each record of the reference's answers counts, and its sequence.
            there = [(run[key], plain) for key, plain in runs[0].items() if not plain.failed]
            judged = [
                (float(value), plain.sequence)
                for answer, plain in there
                for value in (() if answer.failed else judge(answer, plain))
            ]
            if judged:
                share = clustered_share([one for one, _ in judged], [one for _, one in judged])
                low, high = share.low, share.high
                if measure == "changed" and not points:
                    low, high = 0.0, 0.0  # by definition
                failed = sum(answer.failed for answer, _ in there)
                point = (share.share, low, high, share.n, share.clusters, failed)
                points.append(Point(strength, *point))
        if points:
            yield Curve(name, title, family, measure, tuple(points))


def _strong(plan: Plan) -> tuple[Perturbation, ...]:
    """The changes of strength above 0."""
    return tuple(one for one in plan.perturb if one.strength)


def _strength(plan: Plan, change: Change) -> float:
    """0 without this change."""
    return next((one.strength for one in plan.perturb if one.change == change), 0.0)


def _problems(runs: Sequence[Run], change: Change | None) -> Iterator[str]:
    """What is missing or differs; nothing if the runs form a sweep."""
    plans = [run.header.plan for run in runs]
    if change is None:
        perturbed = {one for plan in plans for one in _strong(plan)}
        every = sorted(perturbed, key=lambda one: (CHANGES.index(one.change), one.strength))
        if len({_strong(plan) for plan in plans}) == 1:
            same = ",".join(map(str, every))
            yield (
                f"All chosen runs are perturbed by {same}, so there is no reference: choose the "
                "run of the same samples with strength 0, too."
            )
        words = " and ".join(dict.fromkeys(one.change for one in every))
        yield (
            f"The chosen runs differ in several changes ({words}): choose runs that differ in the "
            "strength of one."
        )
        return
    strengths = [_strength(plan, change) for plan in plans]
    if twice := [one for one in strengths if strengths.count(one) > 1]:
        both = [run.id for run, one in zip(runs, strengths, strict=True) if one == twice[0]]
        yield (
            f"The runs {' and '.join(both)} both have {Perturbation(change, twice[0])}: leave "
            f"{'all but one' if len(both) > 2 else 'one'} out."
        )
    if 0.0 not in strengths:
        yield (
            f"The run with {Perturbation(change, 0.0)} is missing, and the others are compared "
            "with it: choose it, too."
        )
    settings = dict.fromkeys(
        name for plan in plans for name in plan_words.differing(plans[0], plan, times=False)
    )
    settings.pop("perturb", None)
    if len({plan.repeat for plan in plans}) > 1:
        settings["repeat"] = None
    if len({plan.perturb_seed for plan in plans if plan.perturbed}) > 1:
        settings["perturb seed"] = None
    if settings:
        yield (
            f"The chosen runs differ in {', '.join(settings)} besides the strength: choose runs "
            "with the same settings."
        )
    yield from _other_inputs(runs)


def _other_inputs(runs: Sequence[Run]) -> Iterator[str]:
    """Samples, checkpoints, code or devices that differ between the runs."""
    headers = [run.header for run in runs]
    if len({header.plan.samples for header in headers}) > 1:
        counts = ", ".join(f"{run.id} {len(run.header.plan.samples):,}" for run in runs)
        yield f"The chosen runs have different samples ({counts}): choose runs of the same samples."
    values: dict[str, set[object]] = {}
    for header in headers:
        for one in header.models:
            what = f"the checkpoint of {one.name}"
            values.setdefault(what, set()).add((one.digest, one.dtype))
    values["the dataset's files"] = {header.dataset.digest for header in headers}
    values["the engine's code"] = {header.code for header in headers}
    values["the device"] = {header.environment.get("device") for header in headers}
    if other := [what for what, several in values.items() if len(several) > 1]:
        yield (
            f"The chosen runs differ in {' and '.join(other)}, which may change answers, too: "
            "repeat the sweep."
        )
