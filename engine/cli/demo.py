"""demo: make the demo dataset or a multiple-choice set of scenes, or evaluate the demo models."""

import argparse
import re
from pathlib import Path
from typing import Any

from engine.cli.common import JSON, command, flag, names, out, refuse, say
from engine.demo import demo_dataset
from engine.demo.demo_dataset import HELD_OUT, TRAINING
from engine.errors import BadInput
from engine.models import registry
from engine.public import read_dataset
from engine.quoting import quoted, shown

SCENES = 40  # of a multiple-choice set


def add(commands: Any) -> None:
    flags = {
        "--evaluate": flag(bool, "accuracy on held-out scenes"),
        "--choices": flag(Path, "write a multiple-choice set of held-out scenes", form="FOLDER"),
        "--scenes": flag(int, f"number of its scenes (default: {SCENES})"),
        "--seeds": flag(str, "held-out scene seeds, FIRST:LAST without LAST"),
        "--models": flag(str, "comma-separated names (default: the demo models)"),
        **JSON,
    }
    command(commands, "demo", _demo, "make the demo dataset, or evaluate the demo models", flags)


def _demo(options: argparse.Namespace) -> int:
    if options.choices is not None:
        return _choices(options)
    refuse(options, ["scenes"], "belongs to --choices: add that, or leave it out.")
    if not options.evaluate:
        refuse(options, ["seeds", "models"], "belongs to --evaluate: add that, or leave it out.")
        print(read_dataset(None).root)
        return 0
    given = options.models
    models = list(demo_dataset.DEMO_MODELS) if given is None else registry.distinct(names(given))
    for model in models:
        registry.entry(model)
    table = demo_dataset.evaluate(_seeds(options.seeds), models, say)
    out(table, demo_dataset.as_text(table), options)
    return 0


def _choices(options: argparse.Namespace) -> int:
    other = ["evaluate", "seeds", "models"]
    refuse(options, other, "does not go with --choices: leave one of them out.")
    scenes = SCENES if options.scenes is None else options.scenes
    if not 1 <= scenes <= len(HELD_OUT):
        raise BadInput(f"--scenes is {scenes:,}: choose a number from 1 to {len(HELD_OUT):,}.")
    count = demo_dataset.write_choices(options.choices, HELD_OUT[:scenes])
    found = {"folder": str(options.choices), "scenes": scenes, "questions": count}
    out(found, f"{shown(options.choices)}: {count:,} questions on {scenes:,} scenes", options)
    return 0


def _seeds(text: str | None) -> range:
    if text is None:
        return HELD_OUT
    ends = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", text)
    seeds = range(*map(int, ends.groups())) if ends else range(0)
    if not seeds:
        raise BadInput(
            f"--seeds is {quoted(text)}: write FIRST:LAST, as in 900000:900400, with numbers of at "
            "most 9 digits."
        )
    if seeds.start < TRAINING.stop:
        raise BadInput(
            f"--seeds is {quoted(text)}, but the demo models were trained on the scenes "
            f"{TRAINING.start} to {TRAINING.stop - 1}: name later ones."
        )
    return seeds
