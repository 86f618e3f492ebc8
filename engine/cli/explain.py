"""explain: which part of the input chosen words of an answer rest on."""

import argparse
from pathlib import Path
from typing import Any

from engine import public, settings
from engine.attribution.explained import FILLS, ExplainOptions, ExplainRequest, as_json
from engine.cli import common
from engine.cli.common import flag
from engine.errors import BadInput
from engine.jobs.model_work import ExplainJob
from engine.media import dataset
from engine.models import registry
from engine.prompts import DEFAULT_QUESTION
from engine.quoting import cut, quoted, shown
from engine.storage import explanations, new_file, run_store
from engine.storage.result_rows import ResultRow
from engine.types import RunOptions, RunRequest, arranged

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
        **common.option_flags(public.EXPLAINED),
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


def _explain(options: argparse.Namespace) -> int:
    own = {name: getattr(options, name) for name in (*NUMBERS, "side", "fill")}
    how = public.explain_options(own | {"time": not options.no_time})
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
    if options.dry_run:
        from engine.attribution import explain

        common.say(f"{cut(run.model)}: loading the model ...")
        adapter = registry.load(entry, run.how.decode.max_new_tokens)
        cost = explain.measured_cost(adapter, request)
        value = {name: getattr(cost, name) for name in ("encodings", "prefills", "seconds")}
        common.out(value, f"{run.model}: {cost.sentence}", options)
        return 0
    job = ExplainJob(request=request, kept=kept and (kept[0], kept[2]))
    explained = public.explained(job, common.say)
    if options.out is not None:
        new_file.write(options.out, explained.picture)
    common.out(as_json(explained.found), explained.blocks(False), options)
    return 0


def _asked(options: argparse.Namespace) -> RunRequest:
    sample = dataset.find(public.read_dataset(options.dataset), options.sample)
    how = RunOptions(**arranged({"cache": "off"} | common.given_options(options)))
    prompt = DEFAULT_QUESTION if options.prompt is None else options.prompt
    return how.ask(sample, options.model, prompt)


def _kept_answer(options: argparse.Namespace) -> tuple[Path, RunRequest, ResultRow]:
    """A run's folder, the request of its answer, and the row of this answer."""
    of_the_run = ("dataset", "prompt", *public.EXPLAINED)
    common.refuse(options, of_the_run, "is that of the run with --run: leave one of them out.")
    run = run_store.read(run_store.find(options.kept_in, settings.load().runs_dir))
    sample = dataset.find(public.read_dataset(Path(run.header.dataset.root)), options.sample)
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
