"""Whether two runs can be compared by a gate, and what differs that a gate is for.

`refuse` raises BadInput with one sentence: what differs, and what to do.  Code, checkpoints and
libraries may differ; `changes` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from engine.analysis import machine_loads
from engine.errors import BadInput
from engine.quoting import count, cut, joined, shown
from engine.storage import plan_words
from engine.storage.plan import Plan
from engine.storage.run_values import ModelValues, RunValues

WITHOUT_TIMES = "or compare without times (--metric tokens,accuracy,answers)"


def refuse(runs: Sequence[RunValues], labels: tuple[str, ...], timed: bool) -> None:
    """BadInput if the runs cannot be compared with the first; `timed`: their times are too."""
    ids = [run.id for run in runs]
    if twice := [one for one in ids if ids.count(one) > 1]:
        raise BadInput(f"The run {cut(twice[0])} is named twice: name two runs.")
    for run in runs:
        if not run.finished:
            how = "start both again" if run.header.together else "continue it with `bench --resume`"
            raise BadInput(
                f"The run {cut(run.id)} is not finished, or its summary.json is damaged: {how}, "
                "then compare."
            )
    base, *others = runs
    for other in others:
        _refuse_samples(base, other)
        _refuse_settings(base.header.plan, other.header.plan, timed)
    if not labels:
        ours, theirs = (_listed(one.label for one in run.models) for run in (base, runs[-1]))
        raise BadInput(
            f"The runs have no model in common (BASE has {ours}, NEW has {theirs}): compare runs "
            "of the same models."
        )
    for other in others if timed else ():
        for label in labels:
            first, second = base.model(label), other.model(label)
            assert first is not None and second is not None
            _refuse_times(first, second)


def _refuse_samples(base: RunValues, new: RunValues) -> None:
    ours, theirs = set(base.header.plan.samples), set(new.header.plan.samples)
    shared = ours & theirs
    if not shared:
        raise BadInput(
            f"The runs have no sample in common (BASE has {len(ours):,}, NEW has {len(theirs):,}): "
            "compare runs of the same samples."
        )
    if ours != theirs:
        raise BadInput(
            f"The runs have different samples (NEW lacks {len(ours - shared):,} of the "
            f"{len(ours):,} of BASE and has {len(theirs - shared):,} others): run NEW on the "
            "samples of BASE."
        )
    if base.header.dataset.digest != new.header.dataset.digest:
        raise BadInput(
            "The samples have the same names, but their records, files or order differ: run both "
            "on the same dataset."
        )


def _refuse_settings(base: Plan, new: Plan, timed: bool) -> None:
    found = plan_words.differing(base, new, timed)
    if timed and len(base.models) > 1 and len(new.models) > 1 and base.order != new.order:
        found["order"] = f"models {base.order}", f"models {new.order}"
    if found:
        parts = [f"{name} (BASE: {ours}; NEW: {theirs})" for name, (ours, theirs) in found.items()]
        raise BadInput(f"The runs differ in {joined(parts)}: run NEW with the settings of BASE.")
    if timed and base.batch > 1:
        raise BadInput(
            f"The runs answered batches of {base.batch:,}, where samples are not timed "
            f"separately: run both with --batch 1, {WITHOUT_TIMES}."
        )


def _refuse_times(base: ModelValues, new: ModelValues) -> None:
    label = cut(base.label)
    if base.device != new.device:
        raise BadInput(
            f"{label} ran on different types of devices (BASE: {base.device or 'not known'}; NEW: "
            f"{new.device or 'not known'}): run both on the same type, {WITHOUT_TIMES}."
        )
    for side, model in (("BASE", base), ("NEW", new)):
        if model.shared:
            raise BadInput(
                f"In {side}, {label} ran with {model.shared}, so its times include other work: "
                f"run it alone on its device, {WITHOUT_TIMES}."
            )
        if model.cached:
            results = count(model.cached, "result")
            raise BadInput(
                f"In {side}, {results} of {label} read a stage from the cache, so their times "
                f"were not measured: run it with --cache off, {WITHOUT_TIMES}."
            )
    if why := machine_loads.incomparable_loads("BASE", base.load, "NEW", new.load):
        raise BadInput(
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
