"""The shipped checkpoints: small, complete, in half precision, and right about unseen scenes."""

from pathlib import Path

import pytest

from engine.analysis.answer_reading import read_attributes, score
from engine.demo import demo_dataset
from engine.demo.demo_dataset import HELD_OUT, write_dataset
from engine.demo.wordings import ASKED, DEFAULT_QUESTION
from engine.media import dataset as readers
from engine.types import Sample

SCENES = 24
HIDDEN = {  # what a model cannot see and must not claim
    **dict.fromkeys(("eventgpt-demo", "qwen2.5-vl-demo@events"), "time of day"),
    **dict.fromkeys(("llava-demo", "qwen2.5-vl-demo"), "motion"),
}


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sample, ...]:
    root = tmp_path_factory.mktemp("held-out") / "root"
    return tuple(readers.read(write_dataset(root, HELD_OUT[:SCENES])).samples)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sample, ...]:
    root = tmp_path_factory.mktemp("few") / "root"
    return tuple(readers.read(write_dataset(root, HELD_OUT[:6])).samples)


@pytest.fixture(autouse=True)
def own_cache(cache_dir: Path) -> None:
    """Nothing is read from or left in the user's cache."""


@pytest.mark.slow
@pytest.mark.parametrize("model", demo_dataset.DEMO_MODELS)
def test_answers_about_unseen_scenes_are_right(model: str, samples: tuple[Sample, ...]) -> None:
    """Far above chance in every attribute the model can know (the commonest value has .3 to .6)."""
    claims = [read_attributes(demo_dataset.ask(model, s, DEFAULT_QUESTION)) for s in samples]
    truths = [dict(sample.truth) for sample in samples]
    table = score(truths, claims, demo_dataset.SCORED)
    hidden = HIDDEN.get(model)
    for name, row in table.items():
        if name == demo_dataset.MOTION_ASKED:
            continue
        if name == hidden:
            assert row["claimed"] == 0.0
        elif row["n"] >= 8:
            assert row["accuracy"] >= 0.8, f"{name}: {row}"


def test_what_cannot_be_seen_is_not_claimed(few: tuple[Sample, ...]) -> None:
    hour = demo_dataset.ask("eventgpt-demo", few[0], ASKED["time"][0])
    assert "time of day" in hour and not read_attributes(hour)
    moving = next(sample for sample in few if "motion" in sample.truth)
    motion = demo_dataset.ask("llava-demo", moving, ASKED["motion"][0])
    assert "single image" in motion and "motion" not in read_attributes(motion)
