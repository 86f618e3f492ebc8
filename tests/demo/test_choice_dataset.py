"""The multiple-choice set: trained questions, known answers, letters that say nothing."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from engine.__main__ import main
from engine.analysis.scene_attributes import ATTRIBUTES
from engine.demo import choice_dataset, demo_dataset
from engine.demo.choice_dataset import QUESTION_ABOUT, questions
from engine.demo.demo_questions import attributes_asked
from engine.demo.scenes import draw_truth
from engine.errors import DatasetError
from engine.media import dataset

SCENES = 2


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("choices") / "set"
    choice_dataset.write(folder, demo_dataset.HELD_OUT[:SCENES])
    return folder


def test_each_question_is_trained_and_asks_for_its_attribute() -> None:
    assert set(QUESTION_ABOUT) == set(ATTRIBUTES)
    for name, question in QUESTION_ABOUT.items():
        assert name in (attributes_asked(question) or ())


@pytest.mark.slow
def test_the_set_is_a_dataset_without_problems(root: Path) -> None:
    samples = dataset.read(root).samples
    assert not any(one.problems or one.missing for one in samples)
    assert len({one.sequence for one in samples}) == SCENES
    for one in samples:
        assert one.choice_form == "words" and one.question == QUESTION_ABOUT[one.task]
        assert sorted(one.choices) == sorted(ATTRIBUTES[one.task])
        assert one.choices["ABCD".index(one.answer)] == one.truth[one.task]
    assert {one.task for one in samples} >= {"curve", "lead vehicle", "pedestrian"}


@pytest.mark.slow
def test_the_media_are_written_once_per_scene(root: Path) -> None:
    assert len(list(root.rglob("*.npy"))) == len(list(root.rglob("*.mp4"))) == SCENES
    by_scene = Counter(one.events for one in dataset.read(root).samples)
    assert len(by_scene) == SCENES and min(by_scene.values()) > 3


def test_the_letters_say_nothing() -> None:
    """Over 400 scenes: always the same letter is as good as chance."""
    truths = {
        seed: draw_truth(np.random.default_rng([seed, 0x57A6E])) for seed in demo_dataset.HELD_OUT
    }
    records = [
        record
        for seed, truth in truths.items()
        for record in questions({"id": str(seed), "truth": truth}, 0)
    ]
    for name, values in ATTRIBUTES.items():
        found = Counter(record["answer"] for record in records if record["task"] == name)
        total, chance = sum(found.values()), 1 / len(values)
        spread = 4 * (chance * (1 - chance) / total) ** 0.5
        assert len(found) == len(values)
        assert all(abs(count / total - chance) < spread for count in found.values()), name
    values = Counter(r["choices"]["ABCD".index(r["answer"])] for r in records)
    assert max(values.values()) / len(records) > 0.1  # control: values themselves are uneven


def test_the_order_depends_on_the_seed_alone() -> None:
    scene = {"id": "one", "truth": {"curve": "left", "roadside": "trees"}}
    first = list(questions(scene, 0))
    assert first == list(questions(scene, 0))
    orders = {tuple(list(questions(scene, seed))[1]["choices"]) for seed in range(20)}
    assert len(orders) > 5


@pytest.mark.slow
def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "set"
    assert main(["demo", "--choices", str(folder), "--scenes", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["questions"] == len(dataset.read(folder).samples) and found["scenes"] == 1
    assert main(["demo", "--choices", str(folder), "--scenes", "1"]) == 2
    assert "is not empty: name a new folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--scenes", "3"], "--scenes belongs to --choices"),
        (["--choices", "x", "--scenes", "0"], "choose a number from 1 to 400"),
        (["--choices", "x", "--scenes", "401"], "choose a number from 1 to 400"),
        (["--choices", "x", "--evaluate"], "--choices only takes --scenes"),
        (["--choices", "x", "--seeds", "1:2"], "--choices only takes --scenes"),
    ],
)
def test_options_that_do_not_fit(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert not Path("x").exists()


def test_folders_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(DatasetError, match="cannot be written to"):
        choice_dataset.write(tmp_path / "file", [])
