"""Prepares a dataset run and makes all checks that are possible before anything runs.

It takes a plan, or the folder of a run to resume.  It loads no model and runs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from engine import settings
from engine.benchmark.run_progress import Tracker
from engine.errors import BadInput, ModelUnavailable, StoreError
from engine.machine import device
from engine.media import dataset
from engine.models import registry, variants
from engine.models.checkpoint import ModelEntry
from engine.models.families import FAMILIES
from engine.quoting import gib, quoted
from engine.storage import provenance, run_store
from engine.storage.plan import Order, Plan
from engine.storage.run_header import Header
from engine.storage.run_store import Writer
from engine.types import Sample

ROOM = 0.9  # of the free memory; the rest is a reserve for errors of the estimate


@dataclass(frozen=True)
class PreparedRun:
    """Close its writer at the end.  `root`: the current place of its dataset."""

    writer: Writer
    samples: Mapping[str, Sample]
    entries: Mapping[str, ModelEntry]
    tracker: Tracker
    root: Path


def prepare(
    plan: Plan,
    found: dataset.Dataset,
    folder: Path | None = None,
    elsewhere: bool = False,
    together: str = "",
) -> PreparedRun:
    """A new run of this plan, in `folder` or in a new folder below the runs folder.

    `elsewhere`: other processes load the models, so this machine's memory is not checked.
    `together`: of two runs that take turns (by_turns.py).
    BadInput, ModelUnavailable or StoreError before anything runs.
    """
    plan, samples, entries = checked(plan, found, elsewhere)
    plan = ordered(plan, entries, elsewhere)
    header = replace(describe(plan, found.root, samples, entries), together=together)
    place = folder or settings.load().runs_dir / header.id
    writer = run_store.create(header, place)
    order = f" Order: {plan.order} ({plan.order_why})." if plan.order_why else ""
    writer.note("started", f"{plan.planned:,} results are planned.{order}")
    tracker = Tracker(plan.planned, plan.models, plan.batch)
    return PreparedRun(writer, samples, entries, tracker, found.root)


def checked(
    plan: Plan, found: dataset.Dataset, elsewhere: bool = False
) -> tuple[Plan, dict[str, Sample], dict[str, ModelEntry]]:
    """The plan with its models' full names, its samples and its entries; prepare()'s errors."""
    plan = replace(plan, models=tuple(registry.distinct(plan.models)))
    samples = _chosen(plan, found)
    entries = {name: registry.entry(name) for name in plan.models}
    for entry in entries.values() if plan.batch > 1 else ():
        if not FAMILIES[entry.family].lean:
            raise BadInput(
                f"{entry.name} is answered one sample at a time, because batches are not proved "
                f"for its family, but batch is {plan.batch:,}: choose 1, or other models."
            )
    for entry in entries.values() if plan.perturb else ():
        if entry.kind != "events":
            raise BadInput(
                f"{entry.name} is shown no event images, and perturb changes raw events only: "
                "leave it out, or show it event images."
            )
    for entry in entries.values() if elsewhere else ():
        if entry.server:
            raise BadInput(
                f"{entry.name} is a server, which workers of a cluster do not ask: set parallel in "
                "its entry, and run on this machine alone."
            )
    for entry in () if elsewhere else entries.values():
        others_fill_memory = any(one != variants.loaded(entry) for one in registry.resident())
        if (reason := registry.unavailable(entry)) and not others_fill_memory:
            raise ModelUnavailable(reason)
    reasons = [s.missing.get(e.kind) for s in samples.values() for e in entries.values()]
    if all(reasons):
        raise BadInput(
            f"None of the {len(samples):,} samples can be shown to {' or '.join(plan.models)}; "
            f"the first one: {reasons[0]}"
        )
    return plan, samples, entries


def ordered(plan: Plan, entries: Mapping[str, ModelEntry], elsewhere: bool) -> Plan:
    """The plan with "auto" replaced by an order; other plans are returned unchanged.

    If all models fit into memory at once they take turns, so that a change of the machine's load
    affects all of them.  `elsewhere`: workers answer, and each holds one model.
    """
    if plan.order != "auto":
        return plan
    order: Order = "sequential"
    count = len(plan.models)
    here = [entry for entry in entries.values() if not entry.server]
    several = any(entry.server.parallel > 1 for entry in entries.values() if entry.server)
    if count == 1:
        why = "there is only one model"
    elif several:
        why = "a server takes several requests at once"
    elif not here:
        order, why = "interleaved", "servers need no memory here"
    elif elsewhere:
        why = "each worker of a cluster holds one model"
    else:
        try:
            most = plan.decode.max_new_tokens
            needed, free = registry.combined_memory(here, most, plan.batch)
        except ModelUnavailable as error:
            why = f"the memory that the models need is not known ({error})".rstrip(".")
        else:
            of = f"at once ({gib(needed)} needed, {gib(free)} free)"
            why = f"the {count:,} models do not fit into memory {of}"
            if needed <= ROOM * free:
                every = "both" if count == 2 else f"all {count:,}"
                order, why = "interleaved", f"{every} models fit into memory {of}"
    return replace(plan, order=order, order_why=f"auto: {why}")


def resume(folder: Path, root: Path | None = None, force: bool = False) -> PreparedRun:
    """Continues a run, whose dataset may have moved to `root`.  A changed dataset, code or
    checkpoint is refused unless `force` is set."""
    writer = run_store.reopen(folder)
    try:
        header, plan = writer.header, writer.header.plan
        data = dataset.read(root or Path(header.dataset.root))
        samples = _chosen(plan, data)
        entries = {name: registry.entry(name) for name in plan.models}
        here = describe(plan, data.root, samples, entries)
        changed = provenance.differences(header, here)
        if changed and not force:
            raise StoreError(
                f"{writer.folder} cannot be resumed, because {' and '.join(changed)}: restore the "
                "original, start a new run, or mix both with --force."
            )
        if not settled(writer):
            if header.together:
                raise StoreError(
                    f"{writer.folder} took turns with another run, and cannot be resumed alone: "
                    "start both again with `bench --against`."
                )
            text = "; ".join(f"forced although {change}" for change in changed)
            moved = provenance.moved(header, here)
            writer.note("resumed", " ".join(filter(None, [text, moved])))
        tracker = Tracker(plan.planned, plan.models, plan.batch)
        run = run_store.read(writer.folder)
        for _, row in run.results():
            tracker.earlier(row)
        if problems := [*filter(None, [writer.problem]), *run.problems]:
            writer.problem = " ".join(problems)
            tracker.note(writer.problem)
        return PreparedRun(writer, samples, entries, tracker, data.root)
    except BaseException:
        writer.close()
        raise


def settled(writer: Writer) -> bool:
    """Whether a run has its summary and all results, so that there is nothing to resume."""
    tasks = writer.header.plan.tasks(writer.header.plan.models)
    finished = run_store.finished(writer.folder, writer.header)
    return finished and all(task in writer.done for task in tasks)


def _chosen(plan: Plan, found: dataset.Dataset) -> dict[str, Sample]:
    """The plan's samples by id, or BadInput for ids that are not in the dataset."""
    known = {sample.id: sample for sample in found.samples}
    absent = [sample for sample in plan.samples if sample not in known]
    if absent:
        raise BadInput(
            f"{len(absent):,} of {len(plan.samples):,} samples are not in {found.root}, the first "
            f"is {quoted(absent[0])}: choose the dataset that contains them."
        )
    return {sample: known[sample] for sample in plan.samples}


def describe(
    plan: Plan, root: Path, samples: Mapping[str, Sample], entries: Mapping[str, ModelEntry]
) -> Header:
    """The header of a run; the first time, the bytes of each checkpoint are hashed."""
    threads = str(settings.load().threads)  # set when the first model is loaded
    return Header(
        plan=plan,
        dataset=provenance.describe_dataset(root, list(samples.values())),
        models=provenance.describe_models(entries.values()),
        environment=device.environment(device.choose()) | {"threads": threads},
        code=provenance.describe_code(),
    )
