"""Measures how often the demo models are right about scenes that they were not trained on."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.analysis import answer_reading
from engine.analysis.answer_reading import ATTRIBUTES, MOTION_ASKED, Claims, Score
from engine.demo.demo_dataset import write_dataset
from engine.demo.wordings import ASKED, DEFAULT_QUESTION
from engine.types import Sample

DEMO_MODELS = (
    *("eventgpt-demo", "video-llava-demo", "llava-demo"),
    *("qwen2.5-vl-demo", "qwen2.5-vl-demo@events"),
)
BATCH = 50  # scenes on disk at a time
SCORED = (*ATTRIBUTES, MOTION_ASKED)
Table = dict[str, dict[str, Score]]


def evaluate(seeds: range, models: Sequence[str], say: Callable[[str], None]) -> Table:
    """{model: {attribute: accuracy, majority, n, claimed}} from greedy answers.  accuracy: right
    answers / n; claimed: the share that state the attribute; n: scenes to which it applies;
    majority: the accuracy of always naming the most common value."""
    from engine.media import dataset

    truths: list[Claims] = []
    claims: dict[str, list[Claims]] = {model: [] for model in models}
    for start in range(seeds.start, seeds.stop, BATCH):
        part = range(start, min(start + BATCH, seeds.stop))
        with tempfile.TemporaryDirectory() as folder:
            samples = dataset.read(write_dataset(Path(folder) / "held-out", part)).samples
            truths += [dict(sample.truth) for sample in samples]
            for model in models:
                claims[model] += _claims(model, samples)
        say(f"evaluated scenes {part.start} to {part.stop - 1}")
    return {model: answer_reading.score(truths, claims[model], SCORED) for model in models}


def as_text(table: Table) -> str:
    lines = []
    for model, rows in table.items():
        lines += [model, f"  {'attribute':16s} accuracy  majority  claimed     n"]
        lines += [
            f"  {name:16s} {row['accuracy']:8.3f}  {row['majority']:8.3f} {row['claimed']:8.3f} "
            f"{row['n']:5.0f}"
            for name, row in rows.items()
        ]
    return "\n".join(lines)


def _claims(model: str, samples: Sequence[Sample]) -> list[Claims]:
    """A model's statements about each sample; motion is also asked separately."""
    rows = []
    for sample in samples:
        said = answer_reading.read_attributes(ask(model, sample, DEFAULT_QUESTION))
        asked = answer_reading.read_attributes(ask(model, sample, ASKED["motion"][0]))
        rows.append(said | ({MOTION_ASKED: asked["motion"]} if "motion" in asked else {}))
    return rows


def ask(model: str, sample: Sample, question: str) -> str:
    from engine.models import registry
    from engine.pipeline import feature_cache, single_run
    from engine.types import RunOptions, RunRequest

    request = RunRequest(sample, model, question, RunOptions(cache="off"))
    adapter = registry.load(registry.entry(model))
    return single_run.run(adapter, request, feature_cache.shared()).generation.text
