"""Prepares and executes a dataset run: sends every task through the pipeline and saves each result
at once.

prepare() takes a plan, resume() the folder of a run: they make all checks that are possible before
anything runs, and load no model.  run() answers tasks in this process, or elsewhere by an executor
(engine/benchmark/cluster).  Memory does not grow with the number of results.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from engine import settings
from engine.benchmark.run_progress import Tracker
from engine.benchmark.task_executor import TaskExecutor, Tasks, parts
from engine.errors import (
    BadInput,
    Cancelled,
    ModelUnavailable,
    ServerAway,
    StageScopeError,
    StoreError,
)
from engine.machine import device
from engine.media import dataset
from engine.models import registry, variants
from engine.models.checkpoint import ModelEntry
from engine.models.families import FAMILIES
from engine.pipeline import Watcher
from engine.quoting import gib, quoted
from engine.storage import provenance, run_header, run_store
from engine.storage.plan import Order, Plan, Task
from engine.storage.result_rows import Place, ResultRow
from engine.storage.run_header import Header
from engine.storage.run_store import Writer
from engine.types import Sample

if TYPE_CHECKING:
    from engine.models.adapter import Adapter

ROOM = 0.9  # of the free memory; the rest is a reserve for errors of the estimate
Outcome = Literal["finished", "cancelled"]
# In place of this process, gets a row for every task without one; Cancelled if requested.
Executor = Callable[["RunSession"], None]


def prepare(
    plan: Plan,
    found: dataset.Dataset,
    folder: Path | None = None,
    elsewhere: bool = False,
    together: str = "",
) -> RunSession:
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
    return RunSession(writer, samples, entries, found.root)


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
            why = f"{entry.name} is shown no event images, and perturb changes raw events only"
            raise BadInput(f"{why}: leave it out, or show it event images.")
    for entry in entries.values() if elsewhere else ():
        if entry.server:
            why = f"{entry.name} is a server, which workers of a cluster do not ask"
            raise BadInput(f"{why}: set parallel in its entry, and run on this machine alone.")
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
    """The plan with "auto" replaced by an order; other plans are returned unchanged.  If all models
    fit into memory at once they take turns, so that a change of the machine's load affects all of
    them.  `elsewhere`: workers answer, and each holds one model."""
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


def resume(folder: Path, root: Path | None = None, force: bool = False) -> RunSession:
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
                why = f"{writer.folder} took turns with another run, and cannot be resumed alone"
                raise StoreError(f"{why}: start both again with `bench --against`.")
            text = "; ".join(f"forced although {change}" for change in changed)
            moved = provenance.moved(header, here)
            writer.note("resumed", " ".join(filter(None, [text, moved])))
        session = RunSession(writer, samples, entries, data.root)
        run = run_store.read(writer.folder)
        for _, row in run.results():
            session.tracker.earlier(row)
        if problems := [*filter(None, [writer.problem]), *run.problems]:
            writer.problem = " ".join(problems)
            session.tracker.note(writer.problem)
        return session
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


@dataclass
class RunSession:
    """A run from start or resume to its end; executors read tasks and save rows through it.  Close
    its writer at the end.  `root`: the current place of its dataset."""

    writer: Writer
    samples: Mapping[str, Sample]
    entries: Mapping[str, ModelEntry]
    root: Path
    streaks: Counter[str] = field(default_factory=Counter)  # a model's failures in a row
    paused_ms: float = 0.0

    def __post_init__(self) -> None:
        self.plan, self.done = self.writer.header.plan, self.writer.done
        self.tracker = Tracker(self.plan.planned, self.plan.models, self.plan.batch)
        self.given_up = self.tracker.given_up
        self.warmed = Counter(task.model for task in self.done if task.phase == "warmup")

    def run(self, watcher: Watcher | None = None, executor: Executor | None = None) -> Outcome:
        """Runs all tasks that have no row yet, then writes the summary; StoreError if results can
        no longer be saved.  The run stays resumable whatever happens."""
        self.watcher = watcher or Watcher()
        known = self.plan, self.samples, self.entries
        self.task_executor = TaskExecutor(*known, self.watcher, self.note)
        self.tracker.begin()
        if settled(self.writer):
            return "finished"
        self.writer.begin()
        try:
            if executor is not None:
                executor(self)
            else:
                for group in self.plan.model_groups():
                    self._run_group(group)
        except Cancelled:
            self.note("stopped", "Cancelled; the run can be resumed.")
            return "cancelled"
        except BaseException as error:
            # Our own messages in full, others by type only.
            why = f" ({str(error).rstrip('.')})" if isinstance(error, StageScopeError) else ""
            kind = type(error).__name__
            with suppress(StoreError):  # a full disk is reported elsewhere
                self.note("stopped", f"Stopped by {kind}{why}; the run can be resumed.")
            raise
        finally:
            self.tracker.end()
        self.writer.finish(summary(self.writer, self.given_up))
        self.note("finished", "")
        return "finished"

    def _run_group(self, group: tuple[str, ...]) -> None:
        waiting = {task.model for task in self.plan.tasks(group) if task not in self.done}
        adapters = self._load([name for name in group if name in waiting])
        for name, adapter in adapters.items():
            tasks = self.warm_ups(name)
            size = min(self.plan.batch, len({task.sample for task in tasks}))
            for some in parts(tasks, max(1, size)):
                self._ask(some, {name: adapter})
        batches: Iterable[Tasks] = self.plan.batches(group)
        if len(group) == 1 and (server := self.entries[group[0]].server):
            left = [task for task in self.plan.tasks(group) if task not in self.done]
            batches = parts(left, server.parallel)  # requests at once
        for batch in batches:
            if tasks := [task for task in batch if task not in self.done]:
                self._ask(tasks, adapters)

    def _load(self, names: Sequence[str]) -> dict[str, Adapter | None]:
        """The adapters of a group, None for a server; a model that does not load is given up, the
        others continue."""
        adapters: dict[str, Adapter | None] = {}
        for name in names:
            self.between()
            entry, begin = self.entries[name], time.monotonic()
            if entry.server:
                adapters[name] = None
                continue
            self.tracker.current = f"loading {entry.label}"
            there = variants.loaded(entry) in registry.resident()
            try:
                adapters[name] = registry.load(entry, self.plan.decode.max_new_tokens)
            except StageScopeError as error:
                self.give_up(name, str(error))
                continue
            if not there:  # for the planning of later runs
                ms = (time.monotonic() - begin) * 1000
                self.note("loaded", "", model=name, ms=round(ms, 1))
        return adapters

    def warm_ups(self, model: str, lacks: Collection[str] = ()) -> list[Task]:
        """The warm-up tasks of a model in one process, without samples that it `lacks`; their
        numbers continue those of other processes and of earlier sessions."""
        tasks = (Task(model, name, 0, "warmup") for name in self.plan.samples if name not in lacks)
        able = [task for task in tasks if not self.task_executor.missing(task)]
        count = self.plan.warmup * min(self.plan.batch, len(able))
        begin, self.warmed[model] = self.warmed[model], self.warmed[model] + count
        return [able[n % len(able)]._replace(repeat=begin + n) for n in range(count)]

    def between(self) -> None:
        """Lends the device between two tasks; the next row records the pause."""
        if self.watcher.cancelled():
            raise Cancelled("The run was cancelled.")
        paused = self.watcher.give_way()
        if paused:
            self.paused_ms += paused
            self.tracker.paused_ms += paused
            self.note("paused", "The device was lent to other work.", ms=round(paused, 1))

    def _ask(self, tasks: Tasks, adapters: Mapping[str, Adapter | None]) -> None:
        """Runs tasks of one model together, or in smaller groups if they do not fit."""
        model, todo = tasks[0].model, deque([tasks])
        label = self.entries[model].label
        while todo and model not in self.given_up:
            self.between()
            some = todo.popleft()
            more = f" and {len(some) - 1:,} more" if len(some) > 1 else ""
            self.tracker.current = f"{label}, {some[0].phase}, sample {some[0].sample}{more}"
            try:
                found, smaller = self.task_executor.ask(some, adapters[model])
            except ServerAway as error:  # no row: a resumed run asks again
                return self.give_up(model, str(error))
            todo.extendleft(reversed(smaller))
            self.keep(some, found, self.paused_ms)
            if found:
                self.paused_ms = 0.0

    def keep(
        self,
        tasks: Tasks,
        found: Sequence[ResultRow],
        paused_ms: float = 0.0,
        where: Place | None = None,
    ) -> None:
        """Saves a row per task; nothing if the tasks are to be run in smaller groups.  `paused_ms`:
        how long the device was lent just before; `where`: the node, device and worker that
        answered, if it was not this process."""
        rows = [
            row.placed(task, self.plan.batch, paused_ms, run_header.now(), where)
            for task, row in zip(tasks, found, strict=False)
        ]
        for row in rows:
            self.writer.append(row)
        self.tracker.rows(rows)
        for row in rows:
            if self.task_executor.missing(row.task):
                continue
            self.streaks[row.model] = streak = self.streaks[row.model] + 1 if row.error else 0
            if streak >= self.plan.stop_after:
                why = f"{streak:,} failures in a row, the last one: {row.error}"
                self.give_up(row.model, why)

    def give_up(self, model: str, reason: str) -> None:
        self.given_up[model] = reason
        self.writer.note("given up", f"{model} was given up: {reason}", model=model)

    def note(self, event: str, text: str, **more: Any) -> None:
        self.writer.note(event, text, **more)
        if text:
            self.tracker.note(text)


def summary(writer: Writer, given_up: Mapping[str, str]) -> dict[str, Any]:
    """Counts of the run, and each model's counts and figures; `given_up`: model -> reason."""
    from engine.analysis import model_summary, results_table

    plan = writer.header.plan
    table = results_table.frame([run_store.read(writer.folder)], answers=False)
    counts = model_summary.counts(table)
    return {
        "finished": run_header.now(),
        "planned": plan.planned,
        "results": sum(count.results for count in counts),
        "failed": sum(count.failed for count in counts),
        "given_up": {name: given_up[name] for name in plan.models if name in given_up},
        "counts": [vars(count) for count in counts],
        "figures": [vars(figure) for figure in model_summary.figures(table)],
        "throughput": [asdict(one) for one in model_summary.throughputs(table)],
    }
