"""Runs that differ in the strength of one change: accuracy and changed answers at each strength.

Three shares, over the records that have an answer at strength 0 (docs/robustness.md): right answers
of multiple-choice questions, right attributes of demo scenes, and answers whose token ids differ
from those at strength 0.  A result without an answer is in no share; it is counted beside it.
Runs that differ in anything else that may change answers give a sentence and no curve.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from engine.analysis.answer_reading import asked_content, is_scene, read_attributes
from engine.analysis.choice_reading import read_choice
from engine.analysis.clustered_shares import clustered_share
from engine.media_options import CHANGES, Change, Perturbation, swept_change
from engine.quoting import quoted
from engine.storage import plan_words
from engine.storage.plan import Plan
from engine.storage.result_rows import ResultRow
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


@dataclass
class _Answers:
    """The measured answers of one model in one run; `drawn`: some pictures from raw events."""

    family: str = ""
    drawn: bool = False
    rows: dict[Key, _Answer] = field(default_factory=dict)


@dataclass(frozen=True)
class _Answer:
    sequence: str
    failed: bool
    tokens: str
    right_choice: bool | None
    attributes: Mapping[str, bool | None]  # None: not stated


def find(runs: Sequence[Run]) -> Robustness | None:
    """The curves of the runs, or why there are none; None if no run is perturbed."""
    plans = [run.header.plan for run in runs]
    if not any(plan.perturbed for plan in plans):
        return None
    change = swept_change(strong(plan) for plan in plans)
    if problem := incomparable(runs, change):
        return Robustness(change, problem=problem)
    assert change is not None
    ordered = sorted(runs, key=lambda run: strength_of(run.header.plan, change))
    answers = [_answers(run) for run in ordered]
    models = [name for name in ordered[0].header.plan.models if all(name in one for one in answers)]
    if problem := _unfinished(ordered, answers):
        return Robustness(change, problem=problem)
    strengths = [strength_of(run.header.plan, change) for run in ordered]
    every = _titles(ordered[0])
    titles = {name: every[name] for name in models}
    curves = [
        curve
        for name, title in titles.items()
        for curve in _curves(name, title, strengths, [one[name] for one in answers])
    ]
    last = ordered[-1].header.plan
    others = ",".join(str(one) for one in strong(last) if one.change != change)
    notes = _notes(plans, titles, answers, [f"{change}:{one:.9g}" for one in strengths])
    return Robustness(change, others, last.perturb_seed, tuple(curves), tuple(notes))


def _titles(run: Run) -> dict[str, str]:
    """The models' names for people; with the name where two models share one."""
    labels = {one.name: one.label for one in run.header.models}
    shared = [label for label in labels.values() if list(labels.values()).count(label) > 1]
    return {name: f"{text} ({name})" if text in shared else text for name, text in labels.items()}


def _unfinished(runs: Sequence[Run], answers: Sequence[Mapping[str, _Answers]]) -> str:
    for run, found in zip(runs, answers, strict=True):
        plan, done = run.header.plan, sum(len(one.rows) for one in found.values())
        if done < plan.planned:
            return (
                f"The run {run.id} has {done:,} of {plan.planned:,} results: resume it, or repeat "
                "the sweep with the same --out."
            )
    if not set.intersection(*({*run.header.plan.models} for run in runs)):
        return "No model is in all the chosen runs: choose runs of the same models."
    return ""


def _notes(
    plans: Sequence[Plan],
    titles: Mapping[str, str],
    answers: Sequence[Mapping[str, _Answers]],
    strengths: Sequence[str],
) -> Iterator[str]:
    """What has no curve or no point, and who sees prepared event images at strength 0 only."""
    everywhere = set.intersection(*({*plan.models} for plan in plans))
    if left_out := sorted({name for plan in plans for name in plan.models} - everywhere):
        names = ", ".join(map(quoted, left_out))
        yield f"Not in all the chosen runs, so without a curve: {names}."
    for name, title in titles.items():
        if answers[-1][name].drawn and not answers[0][name].drawn:
            yield (
                f"{title} was shown the prepared event images at strength 0 and pictures "
                "drawn from raw events at the others: if they differ, so may the answers."
            )
    for name, title in titles.items():
        for strength, run in zip(strengths, answers, strict=True):
            rows = run[name].rows.values()
            if rows and all(one.failed for one in rows):
                yield (
                    f"{title} has no point at {strength}, because all its {len(rows):,} "
                    "results failed there."
                )


def _answers(run: Run) -> dict[str, _Answers]:
    found: dict[str, _Answers] = {}
    for _, row in run.results():
        if row.phase == "measured":
            model = found.setdefault(row.model, _Answers())
            model.family = row.family or model.family
            model.drawn = model.drawn or (row.shown or "").startswith("raw events")
            model.rows.setdefault((row.sample, row.repeat), _answer(row))
    return found


def _answer(row: ResultRow) -> _Answer:
    """What is judged of a row.  A multiple-choice question is right or not, and so is each stated
    attribute of a demo scene; None: the right option is not known, the attribute not stated."""
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
    return _Answer(row.sequence or row.sample, failed, "" if failed else tokens, right, attributes)


Judge = Callable[[_Answer, _Answer], Iterable[bool]]


def _curves(
    name: str, title: str, strengths: Sequence[float], runs: Sequence[_Answers]
) -> Iterator[Curve]:
    """The curves of one model that have records; runs[0] is the reference."""
    stated = {
        attribute
        for answer in runs[0].rows.values()
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
        points = [
            point
            for strength, run in zip(strengths, runs, strict=True)
            if (point := _point(strength, run, runs[0], judge)) is not None
        ]
        if points and measure == "changed":
            points[0] = replace(points[0], low=0.0, high=0.0)  # by definition
        if points:
            yield Curve(name, title, runs[0].family, measure, tuple(points))


def _point(strength: float, run: _Answers, plain: _Answers, judge: Judge) -> Point | None:
    """The share over the records of the reference's answers; None for no records."""
    records: list[tuple[str, bool]] = []  # a sequence, and whether the record counts
    failed = 0
    for key, reference in plain.rows.items():
        answer = run.rows[key]
        if not reference.failed:
            failed += answer.failed
            judged = () if answer.failed else judge(answer, reference)
            records += [(reference.sequence, value) for value in judged]
    if not records:
        return None
    found = clustered_share([float(value) for _, value in records], [name for name, _ in records])
    return Point(strength, found.share, found.low, found.high, found.n, found.clusters, failed)


def strong(plan: Plan) -> tuple[Perturbation, ...]:
    """The changes of strength above 0."""
    return tuple(one for one in plan.perturb if one.strength)


def strength_of(plan: Plan, change: Change) -> float:
    """0 without this change."""
    return next((one.strength for one in plan.perturb if one.change == change), 0.0)


def incomparable(runs: Sequence[Run], change: Change | None) -> str:
    """What is missing or differs, "" if the runs form a sweep."""
    found = (_not_a_sweep(runs, change), _other_settings(runs), _other_inputs(runs))
    return next(filter(None, found), "")


def _not_a_sweep(runs: Sequence[Run], change: Change | None) -> str:
    plans = [run.header.plan for run in runs]
    if change is None:
        found = {one for plan in plans for one in strong(plan)}
        every = sorted(found, key=lambda one: (CHANGES.index(one.change), one.strength))
        if len({strong(plan) for plan in plans}) == 1:
            same = ",".join(map(str, every))
            return (
                f"All chosen runs are perturbed by {same}, so there is no reference: choose the "
                "run of the same samples with strength 0, too."
            )
        words = " and ".join(dict.fromkeys(one.change for one in every))
        return (
            f"The chosen runs differ in several changes ({words}): choose runs that differ in the "
            "strength of one."
        )
    strengths = [strength_of(plan, change) for plan in plans]
    if twice := [one for one in strengths if strengths.count(one) > 1]:
        both = [run.id for run, one in zip(runs, strengths, strict=True) if one == twice[0]]
        return (
            f"The runs {' and '.join(both)} both have {Perturbation(change, twice[0])}: leave "
            f"{'all but one' if len(both) > 2 else 'one'} out."
        )
    if 0.0 not in strengths:
        return (
            f"The run with {Perturbation(change, 0.0)} is missing, and the others are compared "
            "with it: choose it, too."
        )
    return ""


def _other_settings(runs: Sequence[Run]) -> str:
    """Settings that differ between the runs, apart from the swept strength."""
    plans = [run.header.plan for run in runs]
    differing = dict.fromkeys(
        name for plan in plans for name in plan_words.differing(plans[0], plan, times=False)
    )
    differing.pop("perturb", None)
    if len({plan.repeat for plan in plans}) > 1:
        differing["repeat"] = None
    if len({plan.perturb_seed for plan in plans if plan.perturbed}) > 1:
        differing["perturb seed"] = None
    if differing:
        return (
            f"The chosen runs differ in {', '.join(differing)} besides the strength: choose runs "
            "with the same settings."
        )
    return ""


def _other_inputs(runs: Sequence[Run]) -> str:
    """Samples, checkpoints, code or devices that differ between the runs."""
    headers = [run.header for run in runs]
    if len({header.plan.samples for header in headers}) > 1:
        counts = ", ".join(f"{run.id} {len(run.header.plan.samples):,}" for run in runs)
        return (
            f"The chosen runs have different samples ({counts}): choose runs of the same samples."
        )
    digests: dict[str, set[tuple[str, str]]] = {}
    for header in headers:
        for model in header.models:
            digests.setdefault(model.name, set()).add((model.digest, model.dtype))
    other = [f"the checkpoint of {name}" for name, found in digests.items() if len(found) > 1]
    for what, values in (
        ("the dataset's files", {header.dataset.digest for header in headers}),
        ("the engine's code", {header.code for header in headers}),
        ("the device", {header.environment.get("device") for header in headers}),
    ):
        other += [what] if len(values) > 1 else []
    if other:
        return (
            f"The chosen runs differ in {' and '.join(other)}, which may change answers, too: "
            "repeat the sweep."
        )
    return ""
