"""What is trained on is what the engine will show, and its mirror image is consistent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.media.video import choose, middle
from tools.demo_training import corpus
from tools.demo_training.corpus import MIRRORED, Corpus, load_corpus, mirrored, truth_of

pytestmark = pytest.mark.loads

SEEDS = range(4_000_000, 4_000_002)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("corpus")


@pytest.fixture(scope="module")
def small(folder: Path) -> Corpus:
    return load_corpus(folder, SEEDS, workers=1)


def test_frames_are_those_the_engine_chooses(small: Corpus) -> None:
    assert corpus.SHOWN.tolist() == choose(20, "arange")
    assert middle(20)[0] == corpus.SHOWN[4]


def test_mirrored_words_and_pixels_go_together(small: Corpus) -> None:
    other = mirrored(small)
    assert np.array_equal(other.frames[0, 0, :, 0], small.frames[0, 0, :, -1])
    assert np.array_equal(other.event_patches[:, :, :, 0], small.event_patches[:, :, :, -1])
    swap = {"left": "right", "right": "left"}
    for ours, theirs in zip(small.truth, other.truth, strict=True):
        wanted = {k: swap.get(v, v) if k in MIRRORED else v for k, v in truth_of(ours).items()}
        assert truth_of(theirs) == wanted
