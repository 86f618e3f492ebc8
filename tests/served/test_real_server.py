"""A hundred answers of `transformers serve` equal the local model's own."""

from dataclasses import replace
from importlib.util import find_spec
from itertools import islice, product
from pathlib import Path

import numpy as np
import pytest

from engine.demo.wordings import QUESTIONS
from engine.media import dataset
from engine.models import registry
from engine.pipeline import Watcher, single_run
from engine.prompts import DEFAULT_QUESTION
from engine.served import capabilities, column
from engine.types import Media, MediaKind, MediaOptions, RunOptions, RunRequest, Sample
from tests.served import transformers_serve

REQUESTS = 100
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("fastapi") is None, reason="transformers serve needs fastapi"),
]


class Mirrored(Watcher):
    """Shows other pictures than were asked for."""

    def load(self, sample: Sample, kind: MediaKind, how: MediaOptions) -> Media:
        loaded = super().load(sample, kind, how)
        turned = tuple(np.ascontiguousarray(one[:, ::-1]) for one in loaded.images)
        return replace(loaded, images=turned)


def test_a_hundred_answers_are_those_of_the_local_model(
    tmp_path: Path, demo_scenes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGESCOPE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("STAGESCOPE_DEVICE", "cpu")
    samples = dataset.read(demo_scenes).samples
    asked = list(islice(product(QUESTIONS, samples), REQUESTS))
    assert len(asked) == REQUESTS
    local = registry.load(registry.entry("llava-demo"))
    with transformers_serve.serving(tmp_path) as server:
        assert capabilities.probe(server).kind == "transformers"
        entry = replace(registry.entry("llava-demo"), name="served", server=server)
        for question, sample in asked:
            request = RunRequest(sample, "served", question, RunOptions())
            theirs = column.answer(entry, request)
            ours = single_run.run(local, replace(request, model="llava-demo"), None)
            assert theirs.generation.text == ours.generation.text, (sample.id, question)
            assert theirs.generation.prompt_tokens == ours.generation.prompt_tokens
            assert theirs.new_tokens == ours.new_tokens
        request = RunRequest(samples[0], "served", DEFAULT_QUESTION)
        plain, control = (column.answer(entry, request, how) for how in (Watcher(), Mirrored()))
        assert control.generation.text != plain.generation.text
    registry.unload(registry.entry("llava-demo"))
