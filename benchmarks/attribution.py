"""Whether the map of an explanation points at the thing that the words are about.

`python -m benchmarks.attribution`: demo models answer about rendered scenes whose things have known
boxes.  (Names of models after it: only these are measured, the figures of the others stay.)  The
sentence of a right answer about a thing is explained.  It counts as found if the strongest cell
touches a box of the thing; chance is the share of cells that touch one.  Controls, where no place
may be named: a sentence about something absent (the model's own words about another scene), random
words, and a model whose weights are shuffled.  A planted fault, the removal of visual rows instead
of parts of the picture, must not point.  Figures go to benchmarks/results/attribution.json.
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.machine import RESULTS, keep, say
from engine import media
from engine.analysis.answer_reading import read_attributes
from engine.analysis.statistics import exact_share
from engine.attribution.explain import explain, scored_words
from engine.attribution.explained import ExplainOptions, ExplainRequest, Explanation, smoothed
from engine.attribution.wording import BY_CHANCE, no_place
from engine.decoding import batched
from engine.demo.demo_dataset import write_dataset
from engine.demo.wordings import DEFAULT_QUESTION
from engine.media import dataset
from engine.models import registry
from engine.models.adapter import Adapter
from engine.pipeline import single_run
from engine.types import Box, RunOptions, RunRequest, Sample

MODELS = ("eventgpt-demo", "video-llava-demo", "llava-demo", "qwen2.5-vl-demo")
SCENES = range(888_000, 888_060)  # no model was trained on them
ROWS_OF = "llava-demo"  # the planted fault
NAMES = {"lead vehicle": "lead vehicle", "pedestrian": "pedestrian",
         "guardrail": "guardrail side", "roadside": "roadside"}  # fmt: skip
DEFAULT = ExplainOptions(time=False)
CHOSEN_BY = ("lead vehicle", "pedestrian")
RANDOM_WORDS = 8
MOST = 40  # cases of each control
SEED = 20_500


@dataclass(frozen=True)
class Said:
    """A right sentence of an answer about a thing, and where the thing is."""

    run: RunRequest
    token_ids: tuple[int, ...]
    thing: str
    sentence: str
    boxes: tuple[Box, ...]

    def explained(self, adapter: Adapter) -> Explanation:
        return explain(adapter, ExplainRequest(self.run, self.sentence, self.token_ids, DEFAULT))


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


def measure(model: str, most: int | None = None) -> dict[str, Any]:
    """All figures of one model, from the first `most` scenes."""
    torch.set_num_threads(1)
    adapter = registry.load(registry.entry(model))
    with tempfile.TemporaryDirectory() as folder:
        samples = dataset.read(write_dataset(Path(folder), SCENES[:most])).samples
        sentences = list(said(adapter, samples))
        found = [one.explained(adapter) for one in sentences]
        hits = [
            pointed(one, explanation.strongest[0].box, DEFAULT.grid)
            for one, explanation in zip(sentences, found, strict=True)
        ]
        say(f"{model}: things")
        return {
            "things": {name: _of(name, hits) for name in NAMES},
            "seen": _seen(sentences, found),
            "rows": rows(adapter, sentences) if model == ROWS_OF else None,
            "controls": controls(adapter, samples, sentences),
            "encodings": found[0].cost.encodings,
            "seconds": float(np.median([one.ms for one in found])) / 1000,
        }


def said(adapter: Adapter, samples: Sequence[Sample]) -> Iterator[Said]:
    """The right sentences of the answers about things that have boxes."""
    for sample in samples:
        run = RunRequest(sample, adapter.info.name, DEFAULT_QUESTION, RunOptions(cache="off"))
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


def pointed(one: Said, strongest: Box, grid: int) -> Pointed:
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
    alone = sum(one.chance.p <= BY_CHANCE for one in found)
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
    say(f"{adapter.info.name}: controls")
    return {name: _named(values) for name, values in found.items()}


def _unsaid(adapter: Adapter, sample: Sample, words: str) -> Explanation:
    run = RunRequest(sample, adapter.info.name, DEFAULT_QUESTION, RunOptions(cache="off"))
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
            hits.append(pointed(one, max(value, key=lambda box: value[box]), side))
    return _figures(hits)


@torch.inference_mode()
def _row_losses(adapter: Adapter, one: Said) -> dict[Box, float]:
    """The loss of each place of the tower's raster, if 3 x 3 rows around it become the mean row."""
    prepared = adapter.preprocess(
        media.load(one.run.sample, adapter.kind, one.run.how), one.run.prompt
    )
    features = adapter.encode(prepared)
    words = scored_words(adapter, one.sentence, one.token_ids)
    first, after = words.scored
    ids = words.token_ids[:after]
    wanted = torch.tensor(ids[first:])[:, None]

    def score(changed: torch.Tensor) -> float:
        prompt = adapter.embed(prepared, features.changed(lambda _: changed))
        return float(batched.forced_logprobs(adapter.decoder, [prompt], ids, wanted).sum())

    whole, losses = features.rows, dict[Box, float]()
    plain, side = score(whole), round(len(whole) ** 0.5)
    for y in range(side):
        for x in range(side):
            raster = whole.clone().reshape(side, side, -1)
            raster[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2] = whole.mean(dim=0)
            box = (x / side, y / side, (x + 1) / side, (y + 1) / side)
            losses[box] = plain - score(raster.reshape(whole.shape))
    return losses


if __name__ == "__main__":
    main()
