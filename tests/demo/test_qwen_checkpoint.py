"""The checkpoint in Qwen2.5-VL's form: right about unseen scenes with transformers alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForImageTextToText

from engine import media
from engine.analysis.answer_reading import read_attributes, score
from engine.analysis.scene_attributes import ATTRIBUTES
from engine.demo.demo_dataset import HELD_OUT, write_dataset
from engine.demo.demo_questions import ASKED, DEFAULT_QUESTION
from engine.demo.scene_answers import Voice
from engine.media import dataset as readers
from engine.types import Sample
from tools.demo_training.qwen_answers import SHOWN, Witness
from tools.demo_training.qwen_network import IMAGES, NAME
from tools.demo_training.train import CHECKPOINTS

FOLDER = CHECKPOINTS / NAME
SCENES = 24
HIDDEN: dict[Voice, str] = {"image": "motion", "event": "time of day"}


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sample, ...]:
    root = tmp_path_factory.mktemp("held-out") / "root"
    return tuple(readers.read(write_dataset(root, HELD_OUT[:SCENES])).samples)


@pytest.fixture(scope="module")
def witness() -> Witness:
    return Witness(FOLDER)


def shown(samples: tuple[Sample, ...], voice: Voice) -> list[Any]:
    pictures = [media.load(sample, SHOWN[voice], "").images for sample in samples]
    assert {len(scene) for scene in pictures} == {IMAGES[voice]}
    return pictures


def test_folder_is_in_the_published_form() -> None:
    names = {path.name for path in FOLDER.iterdir()}
    assert names == {
        "chat_template.jinja", "config.json", "generation_config.json", "model.safetensors",
        "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json",
        "trained_questions.json",
    }  # fmt: skip
    assert sum((FOLDER / name).stat().st_size for name in names) < 10_000_000
    _, report = AutoModelForImageTextToText.from_pretrained(
        FOLDER, dtype=torch.float32, output_loading_info=True
    )
    assert not report["missing_keys"] and not report["unexpected_keys"]


@pytest.mark.parametrize("voice", IMAGES)
def test_answers_about_unseen_scenes_are_right(
    voice: Voice, witness: Witness, samples: tuple[Sample, ...]
) -> None:
    """Far above chance in every attribute that this input shows; nothing else is claimed."""
    answers = witness.ask(shown(samples, voice), DEFAULT_QUESTION)
    truths = [dict(sample.truth) for sample in samples]
    table = score(truths, [read_attributes(answer) for answer in answers], ATTRIBUTES)
    for name, row in table.items():
        if name == HIDDEN[voice]:
            assert row["claimed"] == 0.0
        elif row["n"] >= 8:
            assert row["accuracy"] >= 0.8, f"{name}: {row}"


@pytest.mark.parametrize("voice", IMAGES)
def test_short_answers_agree_with_the_long_one(
    voice: Voice, witness: Witness, samples: tuple[Sample, ...]
) -> None:
    pictures = shown(samples[:6], voice)
    long = [read_attributes(answer) for answer in witness.ask(pictures, DEFAULT_QUESTION)]
    agree = []
    for kind in ("road", "vehicles", "roadside", "pedestrian"):
        for claims, answer in zip(long, witness.ask(pictures, ASKED[kind][0]), strict=True):
            agree += [claims.get(name) == value for name, value in read_attributes(answer).items()]
    assert len(agree) >= 24 and np.mean(agree) > 0.9


def test_what_cannot_be_seen_is_not_claimed(witness: Witness, samples: tuple[Sample, ...]) -> None:
    hour = witness.ask(shown(samples[:1], "event"), ASKED["time"][0])[0]
    assert "time of day" in hour and not read_attributes(hour)
    moving = tuple(sample for sample in samples if "motion" in sample.truth)[:1]
    motion = witness.ask(shown(moving, "image"), ASKED["motion"][0])[0]
    assert "single image" in motion and "motion" not in read_attributes(motion)


def test_the_answer_comes_from_the_picture(witness: Witness, samples: tuple[Sample, ...]) -> None:
    pictures = shown(samples[:6], "image")
    blank = [[np.full_like(scene[0], 128)] for scene in pictures]
    seen, unseen = (witness.ask(given, DEFAULT_QUESTION) for given in (pictures, blank))
    assert len(set(seen)) > 1 and len(set(unseen)) == 1
