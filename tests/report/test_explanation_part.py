"""Explanations in a report: the map of the run's own dataset, and the figures without it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.attribution import explained as kept
from engine.attribution.explained import ExplainRequest
from engine.media import dataset
from engine.report import drawers, explanation_part
from engine.report.blocks import ChartBlock, Heading, Paragraph
from engine.report.explanation_part import TITLE, explained
from engine.storage import explanations, provenance
from engine.storage.explanations import Chance
from engine.storage.run_store import Run
from tests import fabricate, recordings
from tests.attribution import made

pytestmark = [pytest.mark.loads, pytest.mark.usefixtures("undrawn")]

MARKUP = "<script>alert(1)</script> a car"


def recorded(folder: Path, count: int = 2) -> Run:
    """A run over a dataset of `count` records, each with 5 event images and 10 frames."""
    found = dataset.read(recordings.root(folder / "data", count))
    names = tuple(sample.id for sample in found.samples)
    run = fabricate.run(folder / "r", fabricate.pair(3))
    header = run.header
    described = provenance.describe_dataset(found.root, found.samples)
    header = replace(header, dataset=described, plan=replace(header.plan, samples=names))
    return replace(run, header=header)


def words(run: Run, several: bool = False) -> str:
    blocks = explained(run, several=several)
    return " ".join(block.text for block in blocks if isinstance(block, Paragraph | Heading))


def with_explanation(folder: Path, **more: Any) -> Run:
    """A run with an explanation of the first sample's answer by "ev"."""
    run = recorded(folder)
    keep(run, **more)
    return run


def keep(run: Run, said: str = "a car", **more: Any) -> None:
    sample = dataset.read(Path(run.header.dataset.root)).samples[0]
    asked = run.header.plan.ask(sample, "ev", "What is it?")
    request = ExplainRequest(asked, said, options=made.SMALL)
    kept.keep(run.folder, made.explanation(request=request, words=said, **more), 0)


def page(run: Run) -> str:
    return drawers.html("t", list(explained(run)))


def test_without_its_dataset_the_figures_stand_alone(tmp_path: Path) -> None:
    run = with_explanation(tmp_path)
    for path in (tmp_path / "data").glob("event_image/*/*.png"):
        path.write_bytes(b"other")
    assert "The maps are left out: The samples in" in words(run)
    assert "<img" not in page(run) and "+2.00 nats" in page(run)
    assert sum(isinstance(block, ChartBlock) for block in explained(run)) == 1  # the time line


@pytest.mark.parametrize("test", [made.NO_CHANCE, made.UNLIKELY])
def test_that_no_place_is_named_is_said_and_the_map_is_pale(tmp_path: Path, test: Chance) -> None:
    run = with_explanation(tmp_path, chance=test)
    assert test.sentence in words(run) and "The map is pale" in page(run)


def test_words_of_a_model_are_no_markup(tmp_path: Path) -> None:
    text = page(with_explanation(tmp_path, said=MARKUP, notes=(MARKUP,)))
    assert "<script>alert" not in text and "&lt;script&gt;alert" in text


def test_what_is_damaged_or_impossible_is_a_sentence(tmp_path: Path) -> None:
    run = with_explanation(tmp_path)
    path = run.folder / explanations.EXPLANATIONS
    good = path.read_text()
    for stored, said in (
        (good.replace('"grid":2', '"grid":99'), "Left out: An explanation of the run cannot be"),
        ("{}\n", explanations.EXPLANATIONS),
        (good.replace('"model":"ev"', '"model":"who"'), "has no model"),
    ):
        path.write_text(stored)
        assert said in words(run)


def test_only_the_first_ones_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanation_part, "MOST", 2)
    run = with_explanation(tmp_path)
    for number in range(2):
        keep(run, said=f"a car {number}")
    assert "The first 2 of the 3 explanations" in words(run)


def test_of_several_runs_each_is_named(tmp_path: Path) -> None:
    run = with_explanation(tmp_path)
    assert f"{TITLE}: {run.id}" in words(run, several=True)
