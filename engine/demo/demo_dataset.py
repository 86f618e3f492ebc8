"""The demo dataset, and a multiple-choice dataset of demo scenes, in the form of a real dataset,
and how often the demo models are right about scenes that they were not trained on."""

import json
import random
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from engine.analysis import answer_reading
from engine.analysis.answer_reading import ATTRIBUTES, MOTION_ASKED, Claims, Score
from engine.demo.wordings import ASKED, DEFAULT_QUESTION
from engine.errors import DatasetError
from engine.plain_files import read_limited, reason
from engine.prompts import WORDS
from engine.quoting import shown
from engine.types import RunOptions, RunRequest, Sample

# Raise it when scenes, simulator or layout change (then run python -m tools.first_scenes): datasets
# are made anew.
VERSION = "2"
BEGUN = f"{VERSION}, first scenes"
FIRST = Path(__file__).with_name("first_scenes.zip")
SHIPPED = 2  # of SEEDS, in FIRST
MARKER = "demo-version.txt"
MAX_MARKER = 100  # bytes
INDEX = "EventGPT_Instruction_Subset.json"
# Seeds of the scenes that the demo checkpoints were trained and evaluated on.
TRAINING = range(0, 3200)
HELD_OUT = range(900_000, 900_400)
# Chosen so that every value of every attribute occurs; none is trained on or held out.
SEEDS: tuple[int, ...] = (
    200_052, 200_002, 200_037, 200_006, 200_011, 200_003, 200_000, 200_009,
    200_014, 200_015, 200_010, 200_031, 200_043, 200_020,
)  # fmt: skip

# The trained question about each attribute.
QUESTION_ABOUT: Mapping[str, str] = {
    "curve": ASKED["road"][0],
    "lead vehicle": ASKED["vehicles"][0],
    "motion": ASKED["motion"][0],
    "roadside": ASKED["roadside"][0],
    "guardrail side": "On which side is the guardrail?",
    "pedestrian": ASKED["pedestrian"][0],
    "time of day": ASKED["time"][0],
}
DEMO_MODELS = (
    *("eventgpt-demo", "video-llava-demo", "llava-demo"),
    *("qwen2.5-vl-demo", "qwen2.5-vl-demo@events"),
)
BATCH = 50  # scenes on disk at a time
SCORED = (*ATTRIBUTES, MOTION_ASKED)
Table = dict[str, dict[str, Score]]


def ensure_dataset(root: Path, before_each: Callable[[], None] = lambda: None) -> Path:
    """The demo dataset at root, made if it is not there or of another version; returns root.
    before_each: called before each scene that is made."""
    if version(first_scenes(root)) != VERSION:
        with _writing(root) as fresh:
            _complete(root, fresh, before_each)
    return root


def first_scenes(root: Path) -> Path:
    """At least the first scenes at root, which ship ready-made; ensure_dataset() makes others."""
    if version(root) not in (VERSION, BEGUN):
        with _writing(root) as fresh:
            with zipfile.ZipFile(FIRST) as ready:
                ready.extractall(fresh)
            (fresh / MARKER).write_text(BEGUN, encoding="utf-8")
            if version(root) in (VERSION, BEGUN):  # another process was faster
                return root
            stale = fresh.with_name(fresh.name + "-old")
            try:
                if root.exists():
                    root.rename(stale)
                fresh.rename(root)
            except OSError:
                if not version(root):
                    raise
            finally:
                shutil.rmtree(stale, ignore_errors=True)
    return root


@contextmanager
def _writing(root: Path) -> Iterator[Path]:
    """A folder beside root, removed at the end if still there; DatasetError if none can be made."""
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{root.name}-", dir=root.parent))
        try:
            yield fresh
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise DatasetError(
            f"The demo dataset cannot be made in {shown(root)} ({reason(error)}): set "
            "STAGESCOPE_CACHE_DIR to a folder that can be written."
        ) from error


def _complete(root: Path, fresh: Path, before_each: Callable[[], None]) -> None:
    """Adds the scenes that do not ship, whole folders first, then the index and the marker; those
    that are there stay as they are, and another process may do the same."""
    first = json.loads((root / INDEX).read_text(encoding="utf-8"))[:SHIPPED]
    _write_index(fresh, [*first, *_scenes(fresh, SEEDS[SHIPPED:], before_each)])
    (fresh / MARKER).write_text(VERSION, encoding="utf-8")
    for folder in fresh.glob("*/*"):
        if not (place := root / folder.relative_to(fresh)).exists():
            try:
                folder.rename(place)
            except OSError:
                if not place.exists():  # the other process was faster
                    raise
    for name in (INDEX, MARKER):
        (fresh / name).replace(root / name)


def write_dataset(root: Path, seeds: Iterable[int]) -> Path:
    """The scenes of the seeds below root, with their index; returns root."""
    _write_index(root, list(_scenes(root, seeds)))
    return root


def _scenes(
    root: Path, seeds: Iterable[int], before_each: Callable[[], None] = lambda: None
) -> Iterator[dict[str, Any]]:
    """The record of each scene, whose files are written below root."""
    from engine.demo.scenes import render  # needed once: scenes that are there import nothing
    from engine.demo.writing import write_scene

    root.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        before_each()
        yield write_scene(root, render(seed))


def _write_index(root: Path, records: list[dict[str, Any]]) -> None:
    text = json.dumps(records, indent=2, ensure_ascii=False)
    (root / INDEX).write_text(text + "\n", encoding="utf-8")


def version(root: Path) -> str:
    """That of the demo dataset at root; BEGUN if it has the first scenes only, "" for none."""
    with suppress(OSError):  # what is no regular file, or too large, is no marker
        if (root / INDEX).is_file():
            return read_limited(root / MARKER, MAX_MARKER).decode(errors="replace")
    return ""


def write_choices(root: Path, seeds: Iterable[int]) -> int:
    """The scenes of the seeds and a question about each of their attributes, below root, which must
    be new or empty; returns the number of questions."""
    try:
        if root.exists() and any(root.iterdir()):
            raise DatasetError(f"{shown(root)} is not empty: name a new folder for the demo set.")
        records = [one for scene in _scenes(root, seeds) for one in questions(scene)]
        _write_index(root, records)
    except OSError as error:
        raise DatasetError(
            f"The demo set cannot be written to {shown(root)} ({reason(error)}): choose a folder "
            "that can be written."
        ) from error
    return len(records)


def questions(scene: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A record for each attribute that is known of the scene, given as its record.

    The demo models know only their trained questions, so the question is asked without its options
    ("words"), and the answer is read by its words.  The options are shuffled: the letter of the
    right one says nothing.
    """
    for name, question in QUESTION_ABOUT.items():
        value = scene["truth"].get(name)
        if value is None:
            continue
        options = list(ATTRIBUTES[name])
        random.Random(f"0 {scene['id']} {name}").shuffle(options)
        yield {
            **scene,
            "id": f"{scene['id']}-{name.replace(' ', '-')}",
            "conversations": [{"from": "human", "value": f"<event>\n{question}"}],
            "choices": options,
            "choice_form": WORDS,
            "answer": ascii_uppercase[options.index(value)],
            "task": name,
        }


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

    request = RunRequest(sample, model, question, RunOptions(cache="off"))
    adapter = registry.load(registry.entry(model))
    return single_run.run(adapter, request, feature_cache.shared()).generation.text
