"""What is trained on is what the engine will show, and its mirror image is consistent."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from engine.demo.camera import KIND
from engine.demo.scenes import render
from engine.media.video import choose, middle
from tools.demo_training import corpus
from tools.demo_training.corpus import MIRRORED, WIDE, Corpus, load_corpus, mirrored, truth_of

pytestmark = pytest.mark.loads

SEEDS = range(4_000_000, 4_000_002)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("corpus")


@pytest.fixture(scope="module")
def small(folder: Path) -> Corpus:
    return load_corpus(folder, SEEDS, workers=1)


def test_shapes(small: Corpus) -> None:
    assert small.frames.shape == (2, 8, 96, 96, 3)
    assert small.events.shape == (2, 5, 96, 96, 3)
    assert small.frame_patches.shape == (2, 8, 6, 6, len(KIND))
    assert small.event_patches.shape == (2, 5, 6, 6, len(KIND))


def test_a_wide_canvas_shows_the_same_scene(folder: Path, small: Corpus) -> None:
    wide = load_corpus(folder / "wide", SEEDS[:1], workers=1, canvas=WIDE)
    assert wide.frames.shape == (1, 8, 112, 168, 3) and wide.events.shape == (1, 5, 112, 168, 3)
    assert wide.frame_patches.shape == (1, 8, 8, 12, len(KIND))
    assert np.array_equal(wide.truth, small.truth[:1])
    shares = [one.frame_patches[0].mean((1, 2)) for one in (wide, small)]
    assert np.abs(shares[0] - shares[1]).max() < 3  # of 255


def test_frames_are_those_the_engine_chooses(small: Corpus) -> None:
    assert corpus.SHOWN.tolist() == choose(20, "arange")
    assert middle(20)[0] == corpus.SHOWN[4]


def test_truth_survives_as_numbers(small: Corpus) -> None:
    for row, seed in zip(small.truth, SEEDS, strict=True):
        assert truth_of(row) == render(seed).truth


def test_patches_add_up(small: Corpus) -> None:
    total = small.frame_patches.astype(int).sum(-1)
    assert total.min() > 240 and total.max() <= 255


def test_a_second_load_reads_the_chunk(folder: Path, small: Corpus) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    again = load_corpus(folder, SEEDS, workers=1)
    assert np.array_equal(again.frames, small.frames)
    assert before == {path: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_mirroring_twice_changes_nothing(small: Corpus) -> None:
    twice = mirrored(mirrored(small))
    for field in fields(Corpus):
        kept, back = getattr(small, field.name), getattr(twice, field.name)
        assert np.array_equal(kept, back, equal_nan=kept.dtype.kind == "f")


def test_mirrored_words_and_pixels_go_together(small: Corpus) -> None:
    other = mirrored(small)
    assert np.array_equal(other.frames[0, 0, :, 0], small.frames[0, 0, :, -1])
    assert np.array_equal(other.event_patches[:, :, :, 0], small.event_patches[:, :, :, -1])
    swap = {"left": "right", "right": "left"}
    for ours, theirs in zip(small.truth, other.truth, strict=True):
        wanted = {k: swap.get(v, v) if k in MIRRORED else v for k, v in truth_of(ours).items()}
        assert truth_of(theirs) == wanted
