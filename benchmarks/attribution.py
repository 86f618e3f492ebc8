"""Whether the map of an explanation points at the thing that the words are about.

`python -m benchmarks.attribution`: demo models answer about rendered scenes whose things have known
boxes.  (Names of models after it: only these are measured, the figures of the others stay.)  The
sentence of a right answer about a thing is explained.  It counts as found if the strongest cell
touches a box of the thing; chance is the share of cells that touch one.  Settings are compared on
the scenes of CHOOSING; the tables of single things and of the controls are of HELD_OUT scenes, with
the defaults.  Controls, where no place may be named: a sentence about something absent (the model's
own words about another scene), random words, and a model whose weights are shuffled.  A planted
fault, the removal of visual rows instead of parts of the picture, must not point.  Figures go to
benchmarks/results/attribution.json, tables to docs/attribution.md.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.machine import RESULTS, keep
from engine import media
from engine.analysis.answer_reading import read_attributes
from engine.analysis.statistics import exact_share
from engine.attribution.explain import explain, scored_words
from engine.attribution.explained import ExplainOptions, ExplainRequest, Explanation, smoothed
from engine.attribution.wording import BY_CHANCE, LEAST_PROBABLE, no_place
from engine.decoding import forced
from engine.demo.demo_dataset import write_dataset
from engine.demo.wordings import DEFAULT_QUESTION
from engine.media import dataset
from engine.models import registry
from engine.models.adapter import Adapter
from engine.pipeline import single_run
from engine.types import Box, RunRequest, Sample

MODELS = ("eventgpt-demo", "video-llava-demo", "llava-demo", "qwen2.5-vl-demo")
CHOOSING, HELD_OUT = range(777_000, 777_010), range(888_000, 888_060)
ROWS_OF = "llava-demo"  # the planted fault
NAMES = {"lead vehicle": "lead vehicle", "pedestrian": "pedestrian",
         "guardrail": "guardrail side", "roadside": "roadside"}  # fmt: skip
DEFAULT = ExplainOptions(time=False)
WHOLE = replace(DEFAULT, coarse=0)
SETTINGS: dict[str, ExplainOptions] = {
    "8 x 8, 3 together, blur, coarse to fine (default)": DEFAULT,
    "8 x 8, 3 together, blur": WHOLE,
    "8 x 8, 2 together, blur": replace(WHOLE, side=2),
    "8 x 8, 1 alone, blur": replace(WHOLE, side=1),
    "8 x 8, 3 together, mean colour": replace(WHOLE, fill="neutral"),
    "6 x 6, 2 together, blur": replace(WHOLE, grid=6, side=2),
}
CHOSEN_BY = ("lead vehicle", "pedestrian")
CONTROLS = ("absent", "random words", "shuffled weights")
RANDOM_WORDS = 8
MOST = 40  # cases of each control
SEED = 20_500
PAGE = Path(__file__).resolve().parents[1] / "docs" / "attribution.md"
BELOW = "<!-- Below this line: python -m benchmarks.attribution -->\n"


@dataclass(frozen=True)
class Said:
    """A right sentence of an answer about a thing, and where the thing is."""

    run: RunRequest
    token_ids: tuple[int, ...]
    thing: str
    sentence: str
    boxes: tuple[Box, ...]

    def explained(self, adapter: Adapter, options: ExplainOptions) -> Explanation:
        return explain(adapter, ExplainRequest(self.run, self.sentence, self.token_ids, options))


def main() -> None:
    if sys.argv[1:] == ["--quick"]:  # two scenes of one model, keeps nothing
        print(measure(MODELS[0], 2))
        return
    names = sys.argv[1:] or list(MODELS)
    with ProcessPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        # The slowest model is not the first of the table: it begins first.
        each = {name: pool.submit(measure, name) for name in reversed(names)}
        found = {name: each[name].result() for name in names}
    if len(names) < len(MODELS):
        earlier = json.loads((RESULTS / "attribution.json").read_text(encoding="utf-8"))["models"]
        found = {name: found.get(name) or earlier[name] for name in MODELS}
    keep("attribution", {"models": found})
    head = PAGE.read_text(encoding="utf-8").partition(BELOW)[0]
    PAGE.write_text(f"{head}{BELOW}\n{markdown(found)}", encoding="utf-8")


def measure(model: str, most: int | None = None) -> dict[str, Any]:
    """All figures of one model, from the first `most` scenes."""
    torch.set_num_threads(1)
    adapter = registry.load(registry.entry(model))
    with tempfile.TemporaryDirectory() as folder:
        choosing = _scenes(Path(folder) / "choosing", CHOOSING[:most])
        held_out = _scenes(Path(folder) / "held-out", HELD_OUT[:most])
        first = [one for one in said(adapter, choosing) if one.thing in CHOSEN_BY]
        settings = {
            name: _figures([pointed(one, one.explained(adapter, options)) for one in first])
            for name, options in SETTINGS.items()
        }
        _say(f"{model}: settings")
        sentences = list(said(adapter, held_out))
        found = [one.explained(adapter, DEFAULT) for one in sentences]
        hits = [pointed(*pair) for pair in zip(sentences, found, strict=True)]
        _say(f"{model}: things")
        return {
            "settings": settings,
            "things": {name: _of(name, hits) for name in NAMES},
            "seen": _seen(sentences, found),
            "rows": rows(adapter, sentences) if model == ROWS_OF else None,
            "controls": controls(adapter, held_out, sentences),
            "encodings": found[0].cost.encodings,
            "seconds": float(np.median([one.ms for one in found])) / 1000,
        }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _scenes(folder: Path, seeds: range) -> tuple[Sample, ...]:
    return tuple(dataset.read(write_dataset(folder, seeds)).samples)


def said(adapter: Adapter, samples: Sequence[Sample]) -> Iterator[Said]:
    """The right sentences of the answers about things that have boxes."""
    for sample in samples:
        run = RunRequest(sample, adapter.info.name, DEFAULT_QUESTION, cache="off")
        answer = single_run.run(adapter, run, None).generation
        for sentence in re.split(r"(?<=[.!?])\s+", answer.text):
            claims = read_attributes(sentence)
            for thing, attribute in NAMES.items():
                right = claims.get(attribute) == sample.truth.get(attribute, "none")
                if attribute in claims and right and (boxes := sample.boxes.get(thing)):
                    yield Said(run, answer.token_ids, thing, sentence, boxes)


@dataclass(frozen=True)
class Pointed:
    """Whether the strongest cell touches the thing, and the share of cells that do.

    `side`: whether it lies on the thing's half of the picture; None if the thing is on both.
    """

    thing: str
    hit: bool
    chance: float
    side: bool | None


def pointed(one: Said, found: Explanation) -> Pointed:
    grid = found.request.options.grid
    return _pointed(one, found.strongest[0].box, grid)


def _pointed(one: Said, strongest: Box, grid: int) -> Pointed:
    every = [(x / grid, y / grid, (x + 1) / grid, (y + 1) / grid)
             for y in range(grid) for x in range(grid)]  # fmt: skip
    touching = sum(touches(cell, one.boxes) for cell in every) / len(every)
    halves = {(box[0] + box[2]) / 2 > 0.5 for box in one.boxes}
    here = (strongest[0] + strongest[2]) / 2 > 0.5
    side = here in halves if len(halves) == 1 and one.thing in ("pedestrian", "guardrail") else None
    return Pointed(one.thing, touches(strongest, one.boxes), touching, side)


def touches(cell: Box, boxes: Sequence[Box]) -> bool:
    """Whether a cell and one of the boxes share an area."""
    return any(
        min(cell[2], box[2]) > max(cell[0], box[0]) and min(cell[3], box[3]) > max(cell[1], box[1])
        for box in boxes
    )


def _figures(hits: Sequence[Pointed]) -> dict[str, Any]:
    return {name: _of(name, hits) for name in CHOSEN_BY}


def _of(thing: str, hits: Sequence[Pointed]) -> dict[str, Any] | None:
    some = [one for one in hits if one.thing == thing]
    if not some:
        return None
    sides = [one.side for one in some if one.side is not None]
    return {
        **_share([one.hit for one in some]),
        "chance": float(np.mean([one.chance for one in some])),
        "side": _share(sides) if sides else None,
    }


def _share(values: Sequence[bool]) -> dict[str, Any]:
    low, high = exact_share(sum(values) / len(values), len(values))
    return {"found": sum(values), "n": len(values), "low": low, "high": high}


def _seen(sentences: Sequence[Said], found: Sequence[Explanation]) -> dict[str, Any]:
    """How often a place is named for right sentences about each thing."""
    kept: dict[str, list[Explanation]] = {}
    for one, explanation in zip(sentences, found, strict=True):
        kept.setdefault(one.thing, []).append(explanation)
    return {name: _named(values) for name, values in kept.items()}


def _named(found: Sequence[Explanation]) -> dict[str, Any]:
    """How often a place is named; `alone`: how often the test alone would name one."""
    tests = [one.chance for one in found if one.chance is not None]
    alone = sum(test.p <= BY_CHANCE for test in tests)
    return _share([not no_place(one) for one in found]) | {"alone": alone}


def controls(
    adapter: Adapter, samples: Sequence[Sample], sentences: Sequence[Said]
) -> dict[str, dict[str, Any]]:
    """How often a place is named where there is none.  Shuffles the model at the end."""
    generator = np.random.default_rng(SEED)
    wrong = [
        (sample, str(generator.choice([one.sentence for one in sentences if one.thing == thing])))
        for sample in samples
        for thing in CHOSEN_BY
        if sample.truth.get(thing) == "none"
    ]
    random = [(one.run.sample, _random_words(adapter, generator)) for one in sentences[::3]]
    found = {
        "absent": [_unsaid(adapter, *pair) for pair in wrong[:MOST]],
        "random words": [_unsaid(adapter, *pair) for pair in random[:MOST]],
    }
    _shuffle(adapter)
    true = [(one.run.sample, one.sentence) for one in sentences if one.thing in CHOSEN_BY][::2]
    found["shuffled weights"] = [_unsaid(adapter, *pair) for pair in true[:MOST]]
    _say(f"{adapter.info.name}: controls")
    return {name: _named(values) for name, values in found.items()}


def _unsaid(adapter: Adapter, sample: Sample, words: str) -> Explanation:
    run = RunRequest(sample, adapter.info.name, DEFAULT_QUESTION, cache="off")
    ids = tuple(adapter.eos_ids[:1])  # an answer without words, so that these are scored alone
    return explain(adapter, ExplainRequest(run, words, ids, DEFAULT))


def _random_words(adapter: Adapter, generator: np.random.Generator) -> str:
    words = [
        word.replace("\u2581", "").replace("\u0120", "") for word in adapter.tokenizer.get_vocab()
    ]
    plain = sorted({word for word in words if word.isascii() and word.isalpha() and len(word) > 2})
    return " ".join(generator.choice(plain, RANDOM_WORDS))


def _shuffle(adapter: Adapter) -> None:
    """Puts the weights of each tensor into a random order."""
    order = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for tensor in adapter.model.parameters():
            flat = tensor.reshape(-1)
            tensor.copy_(flat[torch.randperm(len(flat), generator=order)].reshape(tensor.shape))


def rows(adapter: Adapter, sentences: Sequence[Said]) -> dict[str, Any]:
    """The planted fault: where the removal of visual rows points."""
    hits = []
    for one in sentences:
        if one.thing in CHOSEN_BY:
            losses = _row_losses(adapter, one)
            side = round(len(losses) ** 0.5)
            value = smoothed(losses, side)
            hits.append(_pointed(one, max(value, key=lambda box: value[box]), side))
    return _figures(hits)


@torch.inference_mode()
def _row_losses(adapter: Adapter, one: Said) -> dict[Box, float]:
    """The loss of each place of the tower's raster, if 3 x 3 rows around it become the mean row."""
    prepared = adapter.preprocess(media.load(one.run.sample, adapter.kind, one.run), one.run.prompt)
    features = adapter.encode(prepared)
    words = scored_words(adapter, one.sentence, one.token_ids)
    first, after = words.scored

    def score(changed: torch.Tensor) -> float:
        prompt = adapter.embed(prepared, features.changed(lambda _: changed))
        logs = forced.logprobs(adapter.decoder, [prompt], words.token_ids[:after])
        return float(logs[0, first:].sum())

    whole, losses = features.rows, dict[Box, float]()
    plain, side = score(whole), round(len(whole) ** 0.5)
    for y in range(side):
        for x in range(side):
            raster = whole.clone().reshape(side, side, -1)
            raster[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2] = whole.mean(dim=0)
            box = (x / side, y / side, (x + 1) / side, (y + 1) / side)
            losses[box] = plain - score(raster.reshape(whole.shape))
    return losses


def markdown(found: dict[str, dict[str, Any]]) -> str:
    """The tables, from the figures of each model."""
    lines = ["### Things", "", f"Scenes {HELD_OUT.start} to {HELD_OUT.stop - 1}, default settings: "
             "found (95 % interval), chance; for things on one side also how often the strongest "
             "cell lies on that side (chance 50 %).", ""]  # fmt: skip
    lines += _table(["thing", *found], [
        [name, *(_thing(one["things"][name]) for one in found.values())] for name in NAMES
    ])  # fmt: skip
    lines += ["", "### Settings", "", f"Scenes {CHOOSING.start} to {CHOOSING.stop - 1}: found of "
              "all sentences about the lead vehicle / the pedestrian. Event images are emptied "
              "whatever the filling is.", ""]  # fmt: skip
    lines += _table(["setting", *found], [
        [name, *(" / ".join(_short(one["settings"][name][thing]) for thing in CHOSEN_BY)
                 for one in found.values())] for name in SETTINGS
    ])  # fmt: skip
    lines += ["", "### Is a place named?", "", "How often (95 % interval): wanted for right "
              f"sentences, and in {BY_CHANCE:.0%} or less of the controls. Where it differs: how "
              f"often the test alone, at p of {BY_CHANCE:g} or less, would name one for words of "
              f"any probability, also below {LEAST_PROBABLE:g}.", ""]  # fmt: skip
    lines += _table(["words", *found], [
        *([f"right: {name}", *(_seen_text(one["seen"].get(name)) for one in found.values())]
          for name in NAMES),
        *([name, *(_seen_text(one["controls"][name]) for one in found.values())]
          for name in CONTROLS),
    ])  # fmt: skip
    lines += ["", "### Cost and a planted fault", ""]
    costs = [f"{name} {one['encodings']} encodings, {one['seconds']:.2f} s"
             for name, one in found.items()]  # fmt: skip
    lines += [f"Median of one explanation on one thread: {'; '.join(costs)}."]
    for name, one in found.items():
        if one["rows"]:
            told = "; ".join(f"{thing}: {_thing(one['rows'][thing])}" for thing in CHOSEN_BY)
            lines += ["", f"Rows of {name} after the projector removed instead of parts of the "
                      f"picture: {told}."]  # fmt: skip
    return "\n".join(lines) + "\n"


def _thing(one: dict[str, Any] | None) -> str:
    if one is None:
        return "not said"
    side = one["side"]
    told = f"; side {side['found']} of {side['n']}" if side else ""
    return f"{_interval(one)}, chance {one['chance']:.0%}{told}"


def _seen_text(one: dict[str, Any] | None) -> str:
    if one is None:
        return "not said"
    told = f"; test alone {one['alone']}" if one["alone"] != one["found"] else ""
    return _interval(one) + told


def _short(one: dict[str, Any] | None) -> str:
    return f"{one['found']} of {one['n']}" if one else "not said"


def _interval(one: dict[str, Any]) -> str:
    return f"{one['found']} of {one['n']} ({one['low']:.0%} to {one['high']:.0%})"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


if __name__ == "__main__":
    main()
