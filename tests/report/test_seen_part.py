"""The time lines in a report: those of the run's own dataset, as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.media import dataset
from engine.report import export, seen_part
from engine.report.blocks import Block, Bullets, ChartBlock, Heading, Paragraph
from engine.storage import provenance
from engine.storage.run_store import Run
from engine.viewing import seen_times
from tests import fabricate, recordings
from tests.report.test_drawers import read


def recorded(folder: Path, count: int = 2) -> Run:
    """A run over a dataset of `count` records, each with 5 event images and 10 frames."""
    found = dataset.read(recordings.root(folder / "data", count))
    names = tuple(sample.id for sample in found.samples)
    run = fabricate.run(folder / "r", fabricate.pair(3))
    header = run.header
    described = provenance.describe_dataset(found.root, found.samples)
    header = replace(header, dataset=described, plan=replace(header.plan, samples=names))
    return replace(run, header=header)


def words(blocks: list[Block]) -> str:
    return " ".join(block.text for block in blocks if isinstance(block, Paragraph | Heading))


def test_a_time_line_per_sample_with_the_models_of_each_row(tmp_path: Path) -> None:
    blocks = list(seen_part.seen(recorded(tmp_path)))
    charts = [block for block in blocks if isinstance(block, ChartBlock)]
    assert len(charts) == 2 and "q0 · id-0" in words(blocks) and "q1 · id-1" in words(blocks)
    drawn = str(charts[0].draw())
    assert drawn.count('tabindex="0"') == 5 + 8
    assert "ev: 5 event images" in drawn and "vl: frame folder: frames 0, 1, 2, 3" in drawn
    notes = [block.items for block in blocks if isinstance(block, Bullets)]
    assert notes == [(seen_times.UNKNOWN_IMAGES, seen_times.UNKNOWN_FRAMES)] * 2


def test_only_the_first_samples_are_drawn(tmp_path: Path) -> None:
    blocks = list(seen_part.seen(recorded(tmp_path, 5)))
    assert sum(isinstance(block, ChartBlock) for block in blocks) == seen_part.SAMPLES
    assert "first 3 of the 5 samples" in words(blocks)


def test_a_dataset_that_is_not_here_is_a_sentence(tmp_path: Path) -> None:
    blocks = list(seen_part.seen(fabricate.run(tmp_path / "r", fabricate.pair(3))))
    assert "left out: The dataset root '/data/one' does not exist" in words(blocks)


def test_a_dataset_that_has_changed_is_a_sentence(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    picture = next((tmp_path / "data").glob("event_image/*/*.png"))
    picture.write_bytes(picture.read_bytes() + b"more")
    blocks = list(seen_part.seen(run))
    assert "changed since the run" in words(blocks)
    assert not any(isinstance(block, ChartBlock) for block in blocks)


@pytest.mark.loads
def test_the_html_report_has_them_and_asks_for_nothing(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    found = read("".join(export.write([run], "html")))
    sources = [value or "" for name, value in found.attributes if name == "src"]
    assert len(sources) == 2 * (5 + 8)
    assert all(source.startswith("data:image/webp;base64,") for source in sources)
    assert "What each model saw" not in "".join(export.write([run], "md"))
