"""Whether runs form a sweep: they differ in the strength of one change and in nothing else that may
change answers.

Boundary: headers of runs in, a sentence out; no results are read.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.media_options import CHANGES, Change, Perturbation
from engine.storage import plan_words
from engine.storage.plan import Plan
from engine.storage.run_store import Run


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
        every = sorted({one for plan in plans for one in strong(plan)}, key=_order)
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


def _order(one: Perturbation) -> tuple[int, float]:
    return CHANGES.index(one.change), one.strength


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
