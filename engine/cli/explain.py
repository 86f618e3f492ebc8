"""explain: which part of the input chosen words of an answer rest on."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine import settings
from engine.attribution.explained import (
    FILLS,
    ExplainOptions,
    ExplainRequest,
    ExplainWatcher,
    Explanation,
    as_json,
)
from engine.cli import common
from engine.cli.common import flag
from engine.errors import BadInput
from engine.media import dataset
from engine.models import registry
from engine.prompts import DEFAULT_QUESTION
from engine.quoting import cut, quoted, shown
from engine.report.blocks import Block, Heading, Paragraph
from engine.storage import explanations, new_file, run_store
from engine.storage.explanations import Cost
from engine.storage.result_rows import ResultRow
from engine.types import OFFERED, RunOptions, RunRequest, arranged

# The answer is greedy, and neither the cache nor the mode is used.
OTHERS = ("temperature", "top_p", "seed", "backend", "cache", "mode")
OPTIONS = tuple(name for name in OFFERED if name not in OTHERS)
NUMBERS = {  # fields of ExplainOptions
    "grid": "cells per side of the fine map",
    "coarse": "cells per side of the first map; 0 computes the whole fine map",
    "refined": "coarse cells whose fine cells are computed",
    "batch": "changed inputs that are encoded together",
}
RUN_HELP = "a run that holds the answer: its settings are used, and the explanation is kept with it"


def add(commands: Any) -> None:
    default = ExplainOptions()
    side = f"cells per side that are removed together (default: {default.side}, or the grid if that"
    fill = f"what a removed box of a picture shows (default: {default.fill}); of event pictures the"
    numbers = {
        f"--{name}": flag(int, f"{text} (default: {getattr(default, name)})",
                          getattr(default, name))
        for name, text in NUMBERS.items()
    }  # fmt: skip
    flags = {
        "--sample": flag(str, common.SAMPLE_HELP, required=True),
        "--model": flag(str, "a name of models.toml, also with a variant", required=True),
        "--words": flag(str, "a sentence, phrase or word of the answer", required=True),
        **common.DATASET,
        "--prompt": flag(str, f"the question (default: {DEFAULT_QUESTION!r})"),
        **common.option_flags(OPTIONS),
        **numbers,
        "--side": flag(int, f"{side} is smaller)"),
        "--fill": flag(FILLS, f"{fill} events are dropped", default.fill),
        "--no-time": flag(bool, "leaves out frames and event images"),
        "--out": flag(Path, "writes the map over the pictures", form="PNG"),
        "--run": flag(str, RUN_HELP, form="RUN", dest="kept_in"),
        "--dry-run": flag(bool, "prints the cost only"),
        **common.JSON,
    }
    text = "find which part of the input words rest on"
    common.command(commands, "explain", _explain, text, flags)


@dataclass
class _Printing(ExplainWatcher):
    """Prints the cost and the progress on standard error."""

    model: str

    def planned(self, cost: Cost) -> None:
        common.say(f"{self.model}: {cost.sentence}")

    def done(self, encodings: int, of: int) -> None:
        common.say(f"{self.model}: {encodings:,} of {of:,} inputs")


def _explain(options: argparse.Namespace) -> int:
    side = options.side
    how = ExplainOptions(
        **{name: getattr(options, name) for name in NUMBERS},
        side=max(1, min(ExplainOptions.side, options.grid)) if side is None else side,
        fill=options.fill,
        time=not options.no_time,
    )
    kept = None if options.kept_in is None else _kept_answer(options)
    run = kept[1] if kept else _asked(options)
    request = ExplainRequest(run, options.words, (), how)
    if options.out is not None:
        if options.out.suffix.lower() != ".png":
            raise BadInput(f"--out is {shown(options.out)}: give a name that ends in .png.")
        new_file.refuse(options.out)
    entry = registry.entry(run.model)
    if why := registry.cannot_run(entry, run.sample):
        raise BadInput(why)
    common.say(f"{cut(run.model)}: loading the model ...")
    adapter = registry.load(entry, run.how.decode.max_new_tokens)
    from engine.attribution import explain, heatmap
    from engine.attribution.kept import keep, refuse_other

    if options.dry_run:
        cost = explain.measured_cost(adapter, request)
        value = {name: getattr(cost, name) for name in ("encodings", "prefills", "seconds")}
        common.out(value, f"{run.model}: {cost.sentence}", options)
        return 0
    watcher = _Printing(cut(run.model))
    if kept is not None:
        explain.refuse(adapter)
        ids = explain.answer_ids(adapter, run, watcher)
        refuse_other(ids, kept[2].token_ids, run)
        request = replace(request, token_ids=ids)
    found = explain.explain(adapter, request, watcher)
    if options.out is not None:
        new_file.write(options.out, heatmap.sheet(found))
    if kept is not None:
        folder, _, row = kept
        keep(folder, found, row.repeat)
        common.say(f"Kept in {shown(folder / explanations.EXPLANATIONS)}.")
        if problem := explanations.problem(folder):
            common.say(problem)
    common.out(as_json(found), blocks(found), options)
    return 0


def _asked(options: argparse.Namespace) -> RunRequest:
    """The request for the answer, from the flags."""
    sample = dataset.find(common.read_dataset(options.dataset), options.sample)
    how = RunOptions(**arranged({"cache": "off"} | common.given_options(options)))
    prompt = DEFAULT_QUESTION if options.prompt is None else options.prompt
    return how.ask(sample, options.model, prompt)


def _kept_answer(options: argparse.Namespace) -> tuple[Path, RunRequest, ResultRow]:
    """A run's folder, the request of its answer, and the row of this answer."""
    of_the_run = ("dataset", "prompt", *OPTIONS)
    common.refuse(options, of_the_run, "is that of the run with --run: leave one of them out.")
    run = run_store.read(run_store.find(options.kept_in, settings.load().runs_dir))
    sample = dataset.find(common.read_dataset(Path(run.header.dataset.root)), options.sample)
    rows = [
        row
        for _, row in run.results()
        if (row.model, row.sample, row.phase) == (options.model, sample.id, "measured")
        and row.token_ids
    ]
    if not rows:
        raise BadInput(
            f"The run {shown(run.id)} has no answer of {quoted(options.model)} to sample "
            f"{quoted(sample.id)}: name a model and a sample of this run."
        )
    explanations.read(run.folder)  # refuses a file that is no regular one before the work
    row = min(rows, key=lambda row: row.repeat)
    return run.folder, run.header.plan.ask(sample, row.model, row.prompt or DEFAULT_QUESTION), row


def blocks(found: Explanation) -> Iterator[Block]:
    """The result for a terminal."""
    from engine.report import explanation_part

    run, (first, after) = found.request.run, found.scored
    yield Heading(3, f"{run.model}, sample {run.sample.id}")
    yield Paragraph(found.answer)
    yield Paragraph(f"Words: {found.words} (tokens {first + 1} to {after})")
    yield from explanation_part.figures(found)
    yield from explanation_part.limits()
