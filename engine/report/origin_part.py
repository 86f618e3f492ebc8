"""The parts of a report that describe its runs: plans, models, machine, tensors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from engine.analysis.results_table import labels
from engine.quoting import NONE, size
from engine.report.blocks import Block, Bullets, Heading, Paragraph, ReportTable
from engine.report.report_figures import UNVERIFIED, Findings
from engine.storage.plan import Plan
from engine.storage.run_store import Run
from engine.types import EXTENT_WORDS, FRAME_WORDS

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 5  # reasons why something ran elsewhere, at most
ON_RAY = "each worker runs one model after another; workers may run different models at a time"
_EVENTS = {
    "resumed": "It was interrupted and resumed {n} times.",
    "paused": "The run paused {n} times for other work; means leave out the results right after.",
    "halved": "Batches did not fit in memory and were halved {n} times.",
    "torn": "Unreadable lines were left out {n} times.",
    "worker ended": "{n} workers stopped during work; their open tasks ran elsewhere.",
}
_ONCE = {
    "resumed": "It was interrupted and resumed once.",
    "paused": "The run paused once for other work; means leave out the result right after.",
    "halved": "A batch did not fit in memory and was halved.",
    "torn": "Unreadable lines were left out once.",
    "worker ended": "A worker stopped during work; its open tasks ran elsewhere.",
}
_LOOPBACK = ("127.0.0.1", "::1")
_CACHE = {
    "off": "off: all stages were computed in every run",
    "use": "on: existing features were read from disk",
    "refresh": "refreshed: all stages were computed and the features saved",
}


def origin(found: Findings) -> Iterator[Block]:
    """The plan, models and machine of each run."""
    for number, run in enumerate(found.runs):
        yield Heading(2, f"Run {run.id}")
        results = found.table[found.table["number"] == number]
        rows = (*_plan_rows(run, _on_ray(results)), *_ran(results))
        yield ReportTable(
            "The settings of the run, and the backend that ran.", ("setting", "value"), rows, 2
        )
        if happened := tuple(_happened(run)):
            yield Bullets(happened)
    yield Heading(2, "Models")
    yield _models(found)
    yield ReportTable("The machine.", ("what", "value"), tuple(_environment(found)), 2)
    if found.table["node"].ne("").any():
        yield _devices(found)


def _on_ray(table: pd.DataFrame) -> str:
    """Who answered a run on Ray: workers and the run's own process; "" for a run without Ray."""
    own = int((table["actor"] == "").sum())
    theirs = len(table) - own
    if not theirs:
        return ""
    count = table["actor"].nunique() - bool(own)
    workers = f"Ray, {'1 worker' if count == 1 else f'{count:,} workers'}, for {theirs:,} results"
    return f"{workers}; the run's own process for {own:,}" if own else workers


def _plan_rows(run: Run, on_ray: str) -> Iterator[tuple[str, str]]:
    plan, dataset = run.header.plan, run.header.dataset
    yield "dataset", f"{PurePath(dataset.root).name}, digest {dataset.digest}"
    yield "samples", f"{len(plan.samples):,}"
    yield "models", ", ".join(plan.models)
    yield "question", plan.prompt or "the question of each record"
    yield "repeats", f"{plan.repeat:,}"
    yield "warm-up runs per model", f"{plan.warmup:,}"
    yield "batch size", f"{plan.batch:,}"
    yield "order", ON_RAY if on_ray else _order(plan)
    if on_ray:
        yield "answered by, warm-up included", on_ray
    yield "cache", _CACHE[plan.cache]
    yield (
        "length",
        f"forced: {plan.decode.forced:,} tokens" if plan.decode.forced else _natural(plan),
    )
    yield "decoding", _decoding(plan)
    yield "mode", plan.mode
    yield "frames", f"8 {FRAME_WORDS[plan.frames]} frames"
    yield "pixels", plan.pixels
    yield "event pictures", f"{EXTENT_WORDS[plan.extent]}, {plan.split.words}"
    yield "window", str(plan.window or "the whole recording, or the record's own window")
    yield "perturbed", plan.perturbed or "no"
    yield "code", run.header.code
    yield "begun", run.header.created
    yield "state", run.state


def _ran(table: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """The backends that decoded, with counts if there were several."""
    counts = table[table["error"] == ""]["backend"].value_counts()
    names = [name if len(counts) == 1 else f"{name} (n {n:,})" for name, n in counts.items()]
    if names:
        yield "backend that ran, warm-up included", ", ".join(map(str, names))


def _order(plan: Plan) -> str:
    why = f" ({plan.order_why})" if plan.order_why else ""
    if plan.order == "interleaved":
        return (
            "interleaved: all models answer a sample before the next sample; a different model "
            f"starts each time{why}"
        )
    return f"sequential: one model after another{why}"


def _natural(plan: Plan) -> str:
    return f"natural, at most {plan.decode.max_new_tokens:,} tokens"


def _decoding(plan: Plan) -> str:
    config = plan.decode
    if config.greedy:
        return f"greedy, requested backend {config.backend}"
    return (
        f"temperature {config.temperature:g}, top-p {config.top_p:g}, seed {config.seed}, "
        f"requested backend {config.backend}"
    )


def _happened(run: Run) -> Iterator[str]:
    """The events in the journal, in sentences."""
    idle = [e for e in run.journal if e.get("event") == "worker ended" and not e.get("tasks")]
    events = [str(entry.get("event")) for entry in run.journal if entry not in idle]
    for event in _EVENTS:
        if n := events.count(event):
            yield _ONCE[event] if n == 1 else _EVENTS[event].format(n=n)
    for entry in run.journal:
        forced = entry.get("event") == "resumed" and entry.get("text")
        if entry.get("event") == "given up" or forced:
            yield str(entry.get("text"))
    yield from _elsewhere(run)
    if run.state != "finished":
        yield "The run is not finished. The figures include the results so far."
    yield from run.problems


def _elsewhere(run: Run) -> Iterator[str]:
    """What did not run on a node, and why."""
    reasons = [str(e.get("text")) for e in run.journal if e.get("event") == "elsewhere"]
    once = list(dict.fromkeys(reasons))
    yield from once[:SHOWN]
    if len(once) > SHOWN:
        yield f"The journal has {len(once) - SHOWN:,} more such reasons."


def _models(found: Findings) -> ReportTable:
    rows = []
    for label in labels(found.table):
        lines = found.table[found.table["label"] == label]
        run = found.runs[int(lines["number"].iloc[0])]
        name = str(lines["model"].iloc[0])
        model = next((one for one in run.header.models if one.name == name), None)
        if model is not None:
            where = f"{PurePath(model.checkpoint).name} {model.revision or ''}".strip()
            verified = _certificates(found, label)
            rows.append((label, model.family, where, model.dtype, model.digest, verified))
    columns = ("model", "family", "checkpoint", "dtype", "digest", "verification certificate")
    return ReportTable("The models.", columns, tuple(rows), 6)


def _certificates(found: Findings, label: str) -> str:
    kinds = found.verified.get(label, {})
    if not kinds:
        return "no answer"
    if set(kinds) == {UNVERIFIED}:
        return UNVERIFIED
    return "; ".join(f"{kind} (n {n:,})" for kind, n in kinds.items())


def _environment(found: Findings) -> Iterator[tuple[str, str]]:
    """Each field of the runs' environments, with all its values."""
    keys = dict.fromkeys(key for run in found.runs for key in run.header.environment)
    for key in keys:
        values = dict.fromkeys(run.header.environment.get(key, NONE) for run in found.runs)
        yield key, ", ".join(values)


def _devices(found: Findings) -> ReportTable:
    """The devices of runs on a cluster."""
    columns = ("device", "machines", "workers", "results")
    rows = [
        (str(device) or "unknown", _machines(lines), _workers(lines), f"{len(lines):,}")
        for device, lines in found.table.groupby("device", sort=True)
    ]
    return ReportTable("The devices that answered, warm-up included.", columns, tuple(rows), 1)


def _machines(lines: pd.DataFrame) -> str:
    """The number of machines by name and address, because Ray changes a node's id at each start.

    A loopback address is not counted if the name has another one.
    """
    places = zip(lines["node"], lines["host"], lines["address"], strict=True)
    found = {
        (host or node, "" if address in _LOOPBACK else address)
        for node, host, address in places
        if node
    }
    elsewhere = {name for name, address in found if address}
    named = sum(bool(address) or name not in elsewhere for name, address in found)
    return f"{named:,}" if named else "this one"


def _workers(lines: pd.DataFrame) -> str:
    """The number of workers, and whether the run's own process answered too."""
    named = lines["actor"][lines["actor"] != ""].nunique()
    if not named:
        return "this one"
    return f"{named:,} and the run's own process" if lines["node"].eq("").any() else f"{named:,}"


def flow(found: Findings) -> Iterator[Block]:
    """Shapes, dtypes and sizes of the tensors between the stages."""
    yield Heading(2, "Data flow")
    if not found.passages:
        yield Paragraph("No result recorded the tensors between its stages.")
        return
    rows = tuple(
        (p.label, p.between, p.name, " x ".join(map(str, p.shape)), p.dtype, size(p.bytes),
         f"{p.n:,}", f"{p.others:,}" if p.others else NONE)
        for p in found.passages
    )  # fmt: skip
    columns = ("model", "between", "tensor", "shape", "dtype", "size", "n", "other shapes")
    yield ReportTable("The tensors between the stages, as recorded.", columns, rows, 5)
