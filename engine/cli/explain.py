"""explain: which part of the input chosen words of an answer rest on."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import settings
from engine.attribution.explained import (
    FILLS,
    ExplainOptions,
    ExplainRequest,
    ExplainWatcher,
    Explanation,
    as_json,
)
from engine.cli.common import (
    DATASET_HELP,
    add_json,
    add_options,
    flag_of,
    given_options,
    out,
    read_dataset,
    say,
)
from engine.errors import BadInput
from engine.media import dataset
from engine.models import registry
from engine.prompts import DEFAULT_QUESTION
from engine.quoting import cut, quoted, shown
from engine.report.blocks import Block, Heading, Paragraph
from engine.storage import explanations, new_file, run_store
from engine.storage.explanations import Cost
from engine.types import OFFERED, RunOptions, RunRequest, arranged

if TYPE_CHECKING:
    from engine.models.adapter import Adapter

# The answer is greedy, and neither the cache nor the mode is used.
OTHERS = ("temperature", "top_p", "seed", "backend", "cache", "mode")
OPTIONS = tuple(name for name in OFFERED if name not in OTHERS)


def add(commands: Any) -> None:
    sub = commands.add_parser("explain", help="find which part of the input words rest on")
    sub.add_argument("--sample", required=True, help="an id, the start of an id, or sequence/clip")
    sub.add_argument("--model", required=True, help="a name of models.toml, also with a variant")
    sub.add_argument("--words", required=True, help="a sentence, phrase or word of the answer")
    sub.add_argument("--dataset", type=Path, help=DATASET_HELP)
    sub.add_argument("--prompt", help=f"the question (default: {DEFAULT_QUESTION!r})")
    add_options(sub, OPTIONS)
    _add_map(sub)
    sub.add_argument("--out", type=Path, metavar="PNG", help="writes the map over the pictures")
    sub.add_argument(
        "--run",
        dest="kept_in",
        metavar="RUN",
        help="a run that holds the answer: its settings are used, and the explanation is kept "
        "with it",
    )
    sub.add_argument("--dry-run", action="store_true", help="prints the cost only")
    add_json(sub)
    sub.set_defaults(run=_explain)


def _add_map(sub: argparse.ArgumentParser) -> None:
    default = ExplainOptions()
    numbers = {
        "grid": "cells per side of the fine map",
        "side": "cells per side that are removed together",
        "coarse": "cells per side of the first map; 0 computes the whole fine map",
        "refined": "coarse cells whose fine cells are computed",
        "batch": "changed inputs that are encoded together",
    }
    for name, text in numbers.items():
        given = getattr(default, name)
        told = f"{text} (default: {given}, or the grid if that is smaller)"
        told = told if name == "side" else f"{text} (default: {given})"
        value = None if name == "side" else given
        sub.add_argument(f"--{name}", type=int, default=value, help=told)
    sub.add_argument(
        "--fill",
        choices=FILLS,
        default=default.fill,
        help=f"what a removed box of a picture shows (default: {default.fill}); of event pictures "
        "the events are dropped",
    )
    sub.add_argument("--no-time", action="store_true", help="leaves out frames and event images")


@dataclass
class _Printing(ExplainWatcher):
    """Prints the cost and the progress on standard error."""

    model: str

    def planned(self, cost: Cost) -> None:
        say(f"{self.model}: {cost.sentence}")

    def done(self, encodings: int, of: int) -> None:
        say(f"{self.model}: {encodings:,} of {of:,} inputs")


@dataclass(frozen=True)
class _Kept:
    """The row of a run whose answer is explained."""

    folder: Path
    repeat: int
    token_ids: tuple[int, ...] | None


def _explain(options: argparse.Namespace) -> int:
    side = options.side
    how = ExplainOptions(
        **{name: getattr(options, name) for name in ("grid", "coarse", "refined", "batch")},
        side=max(1, min(ExplainOptions.side, options.grid)) if side is None else side,
        fill=options.fill,
        time=not options.no_time,
    )
    run, kept = _of_run(options) if options.kept_in is not None else (_asked(options), None)
    request = ExplainRequest(run, options.words, (), how)
    if options.out is not None:
        if options.out.suffix.lower() != ".png":
            raise BadInput(f"--out is {shown(options.out)}: give a name that ends in .png.")
        new_file.refuse(options.out)
    entry = registry.entry(run.model)
    if why := registry.cannot_run(entry, run.sample):
        raise BadInput(why)
    say(f"{cut(run.model)}: loading the model ...")
    adapter = registry.load(entry, run.decode.max_new_tokens)
    if options.dry_run:
        return _cost(adapter, request, options)
    found = _found(adapter, request, kept)
    if options.out is not None:
        from engine.attribution import heatmap

        new_file.write(options.out, heatmap.png(found))
    if kept is not None:
        from engine.attribution.kept import keep

        keep(kept.folder, found, kept.repeat)
        say(f"Kept in {shown(kept.folder / explanations.EXPLANATIONS)}.")
        if problem := explanations.problem(kept.folder):
            say(problem)
    out(as_json(found), text(found), options)
    return 0


def _asked(options: argparse.Namespace) -> RunRequest:
    """The request for the answer, from the flags."""
    sample = dataset.find(read_dataset(options.dataset), options.sample)
    how = RunOptions(**arranged({"cache": "off"} | given_options(options)))
    prompt = DEFAULT_QUESTION if options.prompt is None else options.prompt
    return how.ask(sample, options.model, prompt)


def _of_run(options: argparse.Namespace) -> tuple[RunRequest, _Kept]:
    """The request of a run's answer, and where its explanation is kept."""
    of_the_run = ("dataset", "prompt", *OPTIONS)
    if given := [name for name in of_the_run if getattr(options, name) is not None]:
        raise BadInput(f"{flag_of(given[0])} is that of the run with --run: leave one of them out.")
    run = run_store.read(run_store.find(options.kept_in, settings.load().runs_dir))
    sample = dataset.find(read_dataset(Path(run.header.dataset.root)), options.sample)
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
    request = run.header.plan.ask(sample, row.model, row.prompt or DEFAULT_QUESTION)
    return request, _Kept(run.folder, row.repeat, row.token_ids)


def _cost(adapter: Adapter, request: ExplainRequest, options: argparse.Namespace) -> int:
    from engine.attribution import explain

    found = explain.measured_cost(adapter, request)
    value = {"encodings": found.encodings, "prefills": found.prefills, "seconds": found.seconds}
    out(value, f"{request.run.model}: {found.sentence}", options)
    return 0


def _found(adapter: Adapter, request: ExplainRequest, kept: _Kept | None) -> Explanation:
    from dataclasses import replace

    from engine.attribution import explain
    from engine.attribution.kept import refuse_other

    watcher = _Printing(cut(request.run.model))
    if kept is not None:
        explain.refuse(adapter)
        ids = explain.answer_ids(adapter, request.run, watcher)
        refuse_other(ids, kept.token_ids, request.run)
        request = replace(request, token_ids=ids)
    return explain.explain(adapter, request, watcher)


def text(found: Explanation) -> str:
    """The result for a terminal."""
    from engine.report import drawers, explanation_part

    run, (first, after) = found.request.run, found.scored
    head: list[Block] = [
        Heading(3, f"{run.model}, sample {run.sample.id}"),
        Paragraph(found.answer),
        Paragraph(f"Words: {found.words} (tokens {first + 1} to {after})"),
    ]
    return drawers.terminal((*head, *explanation_part.figures(found), *explanation_part.limits()))
