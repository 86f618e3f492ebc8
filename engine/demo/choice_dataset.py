"""A multiple-choice dataset of demo scenes, whose right answers are known.

One record per scene and attribute that the scene has.  The demo models know only their trained
questions, so the question is asked without its options ("words"), and the answer is read by its
words.  The order of the options is shuffled: the letter of the right one says nothing.

Boundary: seeds in, a folder out, in the form of the demo dataset.  analysis reads the answers.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from engine.analysis.scene_attributes import ATTRIBUTES
from engine.demo.demo_dataset import INDEX
from engine.demo.demo_questions import ASKED
from engine.errors import DatasetError
from engine.plain_files import reason
from engine.prompts import WORDS
from engine.quoting import shown

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


def write(root: Path, seeds: Iterable[int], order_seed: int = 0) -> int:
    """The scenes of the seeds and their questions below root, which must be new or empty.

    Returns the number of questions.  The media files are written once per scene.
    """
    from engine.demo.scenes import render
    from engine.demo.writing import write_scene

    try:
        root.mkdir(parents=True, exist_ok=True)
        if any(root.iterdir()):
            raise DatasetError(f"{shown(root)} is not empty: name a new folder for the demo set.")
        scenes = (write_scene(root, render(seed)) for seed in seeds)
        records = [one for scene in scenes for one in questions(scene, order_seed)]
        text = json.dumps(records, indent=2, ensure_ascii=False)
        (root / INDEX).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise DatasetError(
            f"The demo set cannot be written to {shown(root)} ({reason(error)}): choose a folder "
            "that can be written."
        ) from error
    return len(records)


def questions(scene: Mapping[str, Any], order_seed: int) -> Iterator[dict[str, Any]]:
    """A record for each attribute that is known of the scene, given as its record."""
    for name, question in QUESTION_ABOUT.items():
        value = scene["truth"].get(name)
        if value is None:
            continue
        options = list(ATTRIBUTES[name])
        random.Random(f"{order_seed} {scene['id']} {name}").shuffle(options)
        yield {
            **scene,
            "id": f"{scene['id']}-{name.replace(' ', '-')}",
            "conversations": [{"from": "human", "value": f"<event>\n{question}"}],
            "choices": options,
            "choice_form": WORDS,
            "answer": ascii_uppercase[options.index(value)],
            "task": name,
        }
