"""The parts of a report that describe its runs: plans, models, machine, tensors."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from engine import settings
from engine.analysis.results_table import labels
from engine.quoting import NONE, count, gib
from engine.report.blocks import Block, Bullets, Heading, Paragraph, Table
from engine.report.report_figures import Findings, certificate_text
from engine.storage.plan import IDS, flags
from engine.storage.result_rows import UNVERIFIED
from engine.storage.run_header import ModelIdentity
from engine.storage.run_store import Run
from engine.types import TITLES

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 5  # reasons why something ran elsewhere, at most
_EVENTS = {  # of the journal -> once, several times
    "resumed": (
        "It was interrupted and resumed once.",
        "It was interrupted and resumed {n} times.",
    ),
    "paused": (
        "The run paused once for other work; means leave out the result right after.",
        "The run paused {n} times for other work; means leave out the results right after.",
    ),
    "halved": (
        "A batch did not fit in memory and was halved.",
        "Batches did not fit in memory and were halved {n} times.",
    ),
    "torn": ("Unreadable lines were left out once.", "Unreadable lines were left out {n} times."),
    "worker ended": (
        "A worker stopped during work; its open tasks ran elsewhere.",
        "{n} workers stopped during work; their open tasks ran elsewhere.",
    ),
}
_ORDERS = {
    "interleaved": "interleaved: all models answer a sample before the next sample; a different "
    "model starts each time",
    "sequential": "sequential: one model after another",
}
ON_RAY = "each worker runs one model after another; workers may run different models at a time"


def origin(found: Findings) -> Iterator[Block]:
    for number, run in enumerate(found.runs):
        yield Heading(2, f"Run {run.id}")
        results = found.table[found.table["number"] == number]
        rows = tuple(_settings(run, results))
        caption = "The settings of the run, and the backend that ran."
        yield Table(caption, ("setting", "value"), rows, 2)
        plan, root = run.header.plan, PurePath(run.header.dataset.root).name
        yield Paragraph(
            f"Made again by: {settings.COMMAND} bench {shlex.join(flags([plan], root))}. The "
            f"dataset may lie elsewhere; {IDS} has the {count(len(plan.samples), 'id')} of "
            "plan.samples in run.json, one on each line."
        )
        if happened := tuple(_happened(run)):
            yield Bullets(happened)
    yield Heading(2, "Models")
    yield _models(found)
    environments = [run.header.environment for run in found.runs]
    keys = dict.fromkeys(key for environment in environments for key in environment)
    values = (dict.fromkeys(one.get(key, NONE) for one in environments) for key in keys)
    machine = tuple(zip(keys, map(", ".join, values), strict=True))
    yield Table("The machine.", ("what", "value"), machine, 2)
    if found.table["node"].ne("").any():
        yield _devices(found)


def _settings(run: Run, results: pd.DataFrame) -> Iterator[tuple[str, str]]:
    plan, dataset = run.header.plan, run.header.dataset
    why = f" ({plan.order_why})" if plan.order_why else ""
    order = _ORDERS.get(plan.order, _ORDERS["sequential"]) + why
    yield "dataset", f"{PurePath(dataset.root).name}, digest {dataset.digest}"
    yield "samples", f"{len(plan.samples):,}"
    yield "models", ", ".join(plan.models)
    whole = {"question": plan.prompt} if plan.prompt else {}  # as it was asked
    for name, words in (plan.settings | whole).items():
        yield TITLES.get(name, name).lower(), words
    yield "warm-up runs per model", f"{plan.warmup:,}"
    own = int((results["actor"] == "").sum())  # by the run's own process
    theirs = len(results) - own  # by workers on Ray
    yield "order", ON_RAY if theirs else order
    if theirs:
        workers = count(results["actor"].nunique() - bool(own), "worker")
        rest = f"; the run's own process for {own:,}" if own else ""
        yield "answered by, warm-up included", f"Ray, {workers}, for {theirs:,} results{rest}"
    yield "code", run.header.code
    yield "begun", run.header.created
    yield "state", run.state
    backends = results[results["error"] == ""]["backend"].value_counts()
    if len(backends):
        names = [f"{name} (n {n:,})" if len(backends) > 1 else name for name, n in backends.items()]
        yield "backend that ran, warm-up included", ", ".join(map(str, names))


def _happened(run: Run) -> Iterator[str]:
    idle = [e for e in run.journal if e.get("event") == "worker ended" and not e.get("tasks")]
    events = [str(entry.get("event")) for entry in run.journal if entry not in idle]
    for event, (once, several) in _EVENTS.items():
        if n := events.count(event):
            yield once if n == 1 else several.format(n=n)
    for entry in run.journal:
        forced = entry.get("event") == "resumed" and entry.get("text")
        if entry.get("event") == "given up" or forced:
            yield str(entry.get("text"))
    # What did not run on a node, and why.
    reasons = [str(e.get("text")) for e in run.journal if e.get("event") == "elsewhere"]
    reasons = list(dict.fromkeys(reasons))
    yield from reasons[:SHOWN]
    if len(reasons) > SHOWN:
        yield f"The journal has {len(reasons) - SHOWN:,} more such reasons."
    if run.state != "finished":
        yield "The run is not finished. The figures include the results so far."
    yield from run.problems


def model_of(found: Findings, label: str) -> tuple[Run, ModelIdentity | None]:
    """The first run that has the label, and its model there."""
    line = found.table[found.table["label"] == label].iloc[0]
    run = found.runs[int(line["number"])]
    return run, next((one for one in run.header.models if one.name == line["model"]), None)


def _models(found: Findings) -> Table:
    rows = []
    for label in labels(found.table):
        _, model = model_of(found, label)
        if model is not None:
            where = f"{PurePath(model.checkpoint).name} {model.revision or ''}".strip()
            kinds = found.verified.get(label, {})
            counted = (f"{certificate_text(one)} (n {n:,})" for one, n in kinds.items())
            verified = "; ".join(counted) or "no answer"
            verified = UNVERIFIED.words if set(kinds) == {UNVERIFIED} else verified
            rows.append((label, model.family, where, model.dtype, model.digest, verified))
    columns = ("model", "family", "checkpoint", "dtype", "digest", "verification certificate")
    return Table("The models.", columns, tuple(rows), 6)


def _devices(found: Findings) -> Table:
    rows = []
    for device, lines in found.table.groupby("device", sort=True):
        workers = lines["actor"][lines["actor"] != ""].nunique()
        others = " and the run's own process" if lines["node"].eq("").any() else ""
        words = f"{workers:,}{others}" if workers else "this one"
        # Machines by name and address, because Ray changes a node's id at each start.  A loopback
        # address is not counted if the name has another one.
        places = zip(lines["node"], lines["host"], lines["address"], strict=True)
        known = {
            (host or node, "" if address in ("127.0.0.1", "::1") else address)
            for node, host, address in places
            if node
        }
        elsewhere = {name for name, address in known if address}
        named = sum(bool(address) or name not in elsewhere for name, address in known)
        machines = f"{named:,}" if named else "this one"
        rows.append((str(device) or "unknown", machines, words, f"{len(lines):,}"))
    columns = ("device", "machines", "workers", "results")
    return Table("The devices that answered, warm-up included.", columns, tuple(rows), 1)


def flow(found: Findings) -> Iterator[Block]:
    """Shapes, dtypes and sizes of the tensors between the stages."""
    yield Heading(2, "Data flow")
    if not found.passages:
        yield Paragraph("No result recorded the tensors between its stages.")
        return
    rows = tuple(
        (one["label"], one["between"], one["name"], " x ".join(map(str, one["shape"])),
         one["dtype"], gib(one["bytes"]), f"{one['n']:,}",
         f"{one['others']:,}" if one["others"] else NONE)
        for one in found.passages
    )  # fmt: skip
    columns = ("model", "between", "tensor", "shape", "dtype", "size", "n", "other shapes")
    yield Table("The tensors between the stages, as recorded.", columns, rows, 5)
