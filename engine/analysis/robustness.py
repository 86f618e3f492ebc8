"""Runs that differ in the strength of one change: accuracy and changed answers at each strength.

Three shares, over the records that have an answer at strength 0 (docs/robustness.md): right answers
of multiple-choice questions, right attributes of demo scenes, and answers whose token ids differ
from those at strength 0.  A result without an answer is in no share; it is counted beside it.

Boundary: runs in, frozen curves out.  Runs that are not comparable give a sentence, no curve.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from engine.analysis.answer_reading import read_attributes
from engine.analysis.choice_reading import read_choice
from engine.analysis.clustered_shares import clustered_share
from engine.analysis.scene_attributes import asked_content, is_scene
from engine.analysis.sweep_checks import incomparable, strength_of, strong
from engine.media_options import Change, swept_change
from engine.quoting import quoted
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
    titles = _titles(ordered[0])
    curves = [
        curve
        for name in models
        for curve in _curves(name, titles[name], strengths, [one[name] for one in answers])
    ]
    last = ordered[-1].header.plan
    others = ",".join(str(one) for one in strong(last) if one.change != change)
    lost = _lost(models, titles, answers, [f"{change}:{one:.9g}" for one in strengths])
    notes = (*_notes(plans), *_drawn(models, titles, answers), *lost)
    return Robustness(change, others, last.perturb_seed, tuple(curves), notes)


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


def _notes(plans: Sequence[Plan]) -> Iterator[str]:
    everywhere = set.intersection(*({*plan.models} for plan in plans))
    if left_out := sorted({name for plan in plans for name in plan.models} - everywhere):
        names = ", ".join(map(quoted, left_out))
        yield f"Not in all the chosen runs, so without a curve: {names}."


def _drawn(
    models: Sequence[str], titles: Mapping[str, str], answers: Sequence[Mapping[str, _Answers]]
) -> Iterator[str]:
    """A note for models that see prepared event images at strength 0 only."""
    for name in models:
        if answers[-1][name].drawn and not answers[0][name].drawn:
            yield (
                f"{titles[name]} was shown the prepared event images at strength 0 and pictures "
                "drawn from raw events at the others: if they differ, so may the answers."
            )


def _lost(
    models: Sequence[str],
    titles: Mapping[str, str],
    answers: Sequence[Mapping[str, _Answers]],
    strengths: Sequence[str],
) -> Iterator[str]:
    """A note for each strength at which a model gave no answer: it has no point in a curve."""
    for name in models:
        for strength, run in zip(strengths, answers, strict=True):
            rows = run[name].rows.values()
            if rows and all(one.failed for one in rows):
                yield (
                    f"{titles[name]} has no point at {strength}, because all its {len(rows):,} "
                    "results failed there."
                )


# The answers of a run.
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
    failed = bool(row.error)
    tokens = hashlib.blake2b(repr(row.token_ids).encode(), digest_size=16).hexdigest()
    return _Answer(
        sequence=row.sequence or row.sample,
        failed=failed,
        tokens="" if failed else tokens,
        right_choice=_right_choice(row),
        attributes=_attributes(row),
    )


def _right_choice(row: ResultRow) -> bool | None:
    """Whether the answer names the right option; None if that is not known, or not asked for."""
    if not row.choices or not row.right_letter or row.off_script:
        return None
    form = row.choice_form or "letters"
    return read_choice(row.text or "", row.choices, form, row.question_task) == row.right_letter


def _attributes(row: ResultRow) -> dict[str, bool | None]:
    """Whether each attribute of a demo scene is stated rightly; None if it is not stated."""
    truth = row.truth
    if not is_scene(truth) or row.off_script:
        return {}
    claims, asked = read_attributes(row.text or ""), asked_content(truth, row.question_task)
    return {
        name: claims[name] == value if name in claims else None for name, value in asked.items()
    }


# Shares.
Record = tuple[str, bool]  # a sequence, and whether the record counts
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
        "choices": _choice,
        "attributes": lambda answer, plain: (
            answer.attributes.get(one) is True for one in plain.attributes if one in stated
        ),
        "changed": _changed,
    }
    for measure, judge in judges.items():
        points = [
            point
            for strength, run in zip(strengths, runs, strict=True)
            if (point := _point(strength, run, runs[0], judge)) is not None
        ]
        if points:
            yield Curve(name, title, runs[0].family, measure, tuple(points))


def _choice(answer: _Answer, plain: _Answer) -> list[bool]:
    return [] if plain.right_choice is None else [answer.right_choice is True]


def _changed(answer: _Answer, plain: _Answer) -> list[bool]:
    return [answer.tokens != plain.tokens]


def _point(strength: float, run: _Answers, plain: _Answers, judge: Judge) -> Point | None:
    """The share over the records of the reference's answers; None for no records."""
    records: list[Record] = []
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
    itself = run is plain and judge is _changed  # 0 by definition
    low, high = (0.0, 0.0) if itself else (found.low, found.high)
    return Point(strength, found.share, low, high, found.n, found.clusters, failed)
