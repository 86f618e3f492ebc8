"""The gate on the Results page, through AppTest, over run folders made by hand."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from engine import settings
from engine.storage import annotations
from engine.storage.run_store import Run
from tests import fabricate
from tests.pages.conftest import Open
from tests.pages.reading import html, texts
from tests.pages.test_results import PAGE
from tests.ui.results.test_comparison_view import rows


def kept(name: str, slow: float = 1.0, ids: tuple[int, ...] = (), vl: str = "vl") -> Run:
    """A run in the runs folder; `ids` replace those of the first sample's answer by ev; `vl`: the
    label of this model."""
    made: list[dict[str, Any]] = rows(slow, 14)
    if ids:
        made[0]["token_ids"] = list(ids)
    folder = settings.load().runs_dir / name
    return fabricate.run(folder, made, titles={"vl": vl}, together="one")


def opened(app: Open, *runs: str, **more: str | list[str]) -> AppTest:
    return app(PAGE, runs=[*runs], view="Comparison", **more)


def test_a_slower_run_is_worse_than_the_pinned_baseline(app: Open) -> None:
    for name, slow in (("old", 1.0), ("new", 1.3)):
        kept(name, slow, ids=(100, 9, 102, 103) if name == "new" else ())
    annotations.pin(settings.load().runs_dir, "old")
    at = opened(app, "new", "old")
    assert "BASE: " in texts(at) and "· old\nNEW: " in texts(at)
    assert "Worse: total of vl +30.0 %" in texts(at) and "adjusted by Holm" in texts(at)
    chart = at.get("vega_lite_chart")[0]
    assert "vl: total" in chart.proto.alt and "no worse" in html(at)
    assert "ev: 1 of 14 answers changed" in texts(at)
    (link,) = [one.proto for one in at.get("page_link") if one.proto.label.startswith("s0")]
    assert "token 2 is id 9 instead of id 101" in texts(at)
    assert "results_sample=s0" in link.query_string and "results_runs=old" in link.query_string
    assert "python -m engine gate old new" in [code.value for code in at.code]
    assert len(at.get("download_button")) == 2


@pytest.mark.parametrize(("label", "told"), [("Vicuna", "Vicuna"), ("Another", "vl")])
def test_models_have_their_labels_unless_these_changed_and_programs_get_names(
    app: Open, monkeypatch: pytest.MonkeyPatch, label: str, told: str
) -> None:
    written: dict[str, Callable[[], str]] = {}

    def keep(title: str, data: Callable[[], str], *arguments: object, **named: object) -> bool:
        written[title] = data
        return False

    monkeypatch.setattr(st, "download_button", keep)
    kept("old", vl="Vicuna")
    kept("new", 1.3, vl=label)
    annotations.pin(settings.load().runs_dir, "old")
    at = opened(app, "new", "old")
    assert f"total of {told} +30.0 %" in texts(at)
    results = json.loads(written["JSON"]())["results"]
    assert {one["label"] for one in results} == {"ev", "vl"}


def test_a_link_reopens_the_same_comparison(app: Open) -> None:
    for name, slow in (("old", 1.0), ("new", 1.3)):
        kept(name, slow)
    annotations.pin(settings.load().runs_dir, "old")
    at = opened(app, "new", "old", gate_margin="40", gate_metrics=["total", "answers"])
    assert "No worse" in texts(at) and "with a margin of 40 %" in texts(at)
    command = "python -m engine gate old new --metric total,answers --margin 40%"
    assert command in [code.value for code in at.code]


def test_runs_that_cannot_be_compared_are_one_sentence(app: Open) -> None:
    kept("new")
    fabricate.run(settings.load().runs_dir / "old", rows()[:6], together="one")
    at = opened(app, "new", "old", gate_margin="much")
    told = [one.value for one in at.text if "differ in samples" in one.value]
    assert len(told) == 1 and told[0].startswith("The runs differ in samples (")
    assert not at.get("download_button")
    at.multiselect(key="results_gate_metrics").set_value([]).run()
    assert "Choose at least one metric." in texts(at) and not at.exception
