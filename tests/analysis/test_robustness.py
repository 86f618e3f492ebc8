"""Curves over the strength of a perturbation: what they count, and what is refused."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.analysis import agreement, results_table, robustness
from engine.analysis.robustness import Curve, Measure, Robustness
from engine.media_options import perturbations
from engine.storage import run_store
from engine.storage.run_header import Header
from engine.storage.run_store import Run
from tests import fabricate

SAMPLES = tuple(f"s{index}" for index in range(12))
RIGHT = "A truck is ahead. It is night."
WRONG = "A car is ahead. It is night."
TRUTH = {"lead vehicle": "truck", "time of day": "night"}
Rows = Callable[[str, str], Mapping[str, Any]]  # model, sample -> fields of the row


def plain(model: str, sample: str) -> Mapping[str, Any]:
    return {"text": RIGHT, "truth": TRUTH}


def changed(first: int) -> Rows:
    """The first samples are answered otherwise, and wrongly."""

    def row(model: str, sample: str) -> Mapping[str, Any]:
        if SAMPLES.index(sample) < first:
            return {"text": WRONG, "truth": TRUTH, "token_ids": [1, 2, 3, 4]}
        return plain(model, sample)

    return row


def run(
    folder: Path,
    text: str,
    rows: Rows = plain,
    *,
    seed: int = 7,
    models: tuple[str, ...] = ("ev", "vl"),
    without: tuple[str, ...] = (),
    headed: Callable[[Header], Header] = lambda header: header,
    **plan: Any,
) -> Run:
    header = fabricate.header(models, SAMPLES)
    how = {"perturb": perturbations(text), "perturb_seed": seed, **plan}
    header = headed(replace(header, plan=replace(header.plan, **how)))
    lines = fabricate.parsed(
        fabricate.row(model, sample, **{"perturb": header.plan.perturbed, **rows(model, sample)})
        for model in models
        for sample in header.plan.samples
        if sample not in without
    )
    with run_store.create(header, folder / f"{text}-{len(list(folder.iterdir()))}") as writer:
        for line in lines:
            writer.append(line)
        writer.finish({})
        return run_store.read(writer.folder)


def failing(*samples: str) -> Rows:
    return lambda model, sample: {"error": "Lost."} if sample in samples else plain(model, sample)


def sweep(folder: Path, *counts: int, **more: Any) -> list[Run]:
    """Runs at 0, 0.1, ... with so many changed answers."""
    return [run(folder, f"drop:{n / 10:g}", changed(one), **more) for n, one in enumerate(counts)]


def curves(found: Robustness | None, measure: Measure) -> dict[str, Curve]:
    assert found is not None and not found.problem, found
    return {curve.model: curve for curve in found.curves if curve.measure == measure}


def shares(curve: Curve) -> list[float]:
    return [point.share for point in curve.points]


def problem(runs: list[Run]) -> str:
    found = robustness.find(runs)
    assert found is not None and not found.curves
    return found.problem


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("reference"), "drop:0")


def test_a_failed_result_is_in_no_share_and_is_counted(tmp_path: Path, reference: Run) -> None:
    part = run(tmp_path, "drop:0.9", failing("s0", "s1"))
    found = robustness.find([reference, part])
    last = curves(found, "changed")["ev"].points[-1]
    assert (last.share, last.failed, last.n) == (0, 2, 10)
    last = curves(found, "attributes")["ev"].points[-1]
    assert (last.share, last.failed, last.n) == (1, 2, 20)
    assert found is not None and not any("no point" in note for note in found.notes)
    found = robustness.find([reference, run(tmp_path, "drop:0.9", failing(*SAMPLES))])
    assert found is not None
    assert any("no point at drop:0.9, because all its 12 results failed" in n for n in found.notes)
    lacking = run(tmp_path, "drop:0", failing("s0"))  # counts nowhere
    points = curves(robustness.find([lacking, part]), "changed")["ev"].points
    assert [point.n for point in points] == [11, 10]


def test_prepared_event_images_at_strength_zero_are_noted(tmp_path: Path) -> None:
    def shown(text: str) -> Rows:
        return lambda model, sample: {"shown": text if model == "ev" else "mp4: frame 3"}

    drawn, prepared = shown("raw events: 10 in 50 ms"), shown("5 event images")
    found = robustness.find([run(tmp_path, "drop:0", prepared), run(tmp_path, "drop:0.5", drawn)])
    assert found is not None and len(found.notes) == 1 and found.notes[0].startswith("ev was shown")
    found = robustness.find([run(tmp_path, "drop:0", drawn), run(tmp_path, "drop:0.5", drawn)])
    assert found is not None and not found.notes


# What is refused.


def test_two_changes_or_two_runs_of_one_strength_are_refused(
    tmp_path: Path, reference: Run
) -> None:
    tenth = run(tmp_path, "drop:0.1")
    twice = [reference, tenth, run(tmp_path, "drop:0.1")]
    assert "both have drop:0.1: leave one out" in problem(twice)
    two = [reference, tenth, run(tmp_path, "jitter:1ms")]
    assert "several changes (drop and jitter)" in problem(two)
    missing = [tenth, run(tmp_path, "drop:0.2")]
    assert problem(missing).startswith("The run with drop:0 is missing")
    assert "perturbed by drop:0.1, so there is no reference" in problem([tenth])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"frames": "spread"}, "differ in frames besides the strength"),
        ({"repeat": 1, "prompt": "What?"}, "differ in question besides"),
        ({"samples": SAMPLES[:6]}, "differ in samples besides"),
        ({"headed": lambda header: replace(header, code="other")}, "differ in the engine's code"),
        (
            {"headed": lambda h: replace(h, environment={"device": "cuda"})},
            "differ in the device besides the strength, which may change answers",
        ),
        (
            {"headed": lambda h: replace(h, models=tuple(replace(m, digest="") for m in h.models))},
            "the checkpoint of ev and the checkpoint of vl",
        ),
        ({"without": ("s3",)}, "has 22 of 24 results: resume it"),
    ],
)  # fmt: skip
def test_runs_that_differ_in_more_are_refused(
    tmp_path: Path, reference: Run, more: dict[str, Any], words: str
) -> None:
    assert words in problem([reference, run(tmp_path, "drop:0.1", **more)])


def test_runs_of_other_seeds_are_refused(tmp_path: Path) -> None:
    runs = [run(tmp_path, f"drop:0.{n}", seed=n) for n in range(3)]
    assert "differ in perturb seed" in problem(runs)
    assert curves(robustness.find(runs[:2]), "changed")  # strength 0 uses no seed


def test_a_model_of_some_runs_has_no_curve(tmp_path: Path, reference: Run) -> None:
    found = robustness.find([reference, run(tmp_path, "drop:0.5", models=("ev",))])
    assert set(curves(found, "changed")) == {"ev"} and found is not None
    assert found.notes == ("Not in all the chosen runs, so without a curve: 'vl'.",)


def test_right_options_are_counted(tmp_path: Path) -> None:
    def rows(right: int) -> Rows:
        def row(model: str, sample: str) -> Mapping[str, Any]:
            text = "B" if SAMPLES.index(sample) < right else "It is A or B."
            return {"text": text, "choices": ["a car", "a truck"], "choice_form": "letters",
                    "right_letter": "B"}  # fmt: skip

        return row

    runs = [run(tmp_path, f"drop:0.{n}", rows(right)) for n, right in enumerate((12, 9))]
    curve = curves(robustness.find(runs), "choices")["ev"]
    assert shares(curve) == [1, 0.75] and curve.points[0].n == 12


def test_answers_are_cut_and_compared_with_those_of_equal_inputs(
    tmp_path: Path, reference: Run
) -> None:
    """A short answer to a perturbed sample does not shorten the plain ones."""
    short = run(tmp_path, "drop:0.1", lambda *_: {"gaps": [2.0], "text": "No word in common"})
    table = results_table.frame([reference, short])
    seen = results_table.look(table, "first")
    assert set(seen.table.groupby("perturb")["new_tokens"].first()) == {4, 2}
    assert len(seen.table) == 48 and "over 12 samples" in seen.note
    assert set(agreement.by_disagreement(table)["overlap"]) == {1.0}
    lost = run(tmp_path, "drop:0.1", failing("s0"), models=("ev",))  # has the label of its run
    assert results_table.labels(results_table.frame([lost])) == ["ev · drop:0.1 seed 7"]
