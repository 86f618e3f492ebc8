"""Variants and up to six columns on the pages, over tiny checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from streamlit.testing.v1 import AppTest

from engine import settings
from engine.benchmark import execute
from engine.jobs import queue
from engine.jobs.benchmark_job import BenchmarkJob
from engine.models import registry
from engine.storage import run_store
from tests.conftest import slow_unless
from tests.jobs.waiting import wait
from tests.pages.conftest import Open
from tests.pages.reading import press_run, results, texts

SIX = [
    "Tiny eventgpt",
    "Tiny eventgpt · shown video",
    "Tiny video_llava",
    "Tiny llava",
    "Tiny llava · shown events",
    "Tiny llava · float16",
]


def heads(at: AppTest) -> list[str]:
    return [element.value.replace("\\", "") for element in at.subheader]


def names(at: AppTest, page: str = "compare") -> list[str]:
    found: list[str] = at.multiselect(key=f"{page}_models").value
    return found


def test_six_columns_answer_with_labels_that_say_what_differs(app: Open) -> None:
    at = app(models=SIX, tokens="5")
    press_run(at)
    assert [view.error for view in results(at) if view.result is None] == []
    done = {view.model: view.result for view in results(at)}
    assert heads(at)[:6] == [
        "Tiny eventgpt · shown events",
        "Tiny eventgpt · shown video",
        "Tiny video_llava",
        "Tiny llava · shown image · float32",
        "Tiny llava · shown events · float32",
        "Tiny llava · shown image · float16",
    ]
    shown, half = done["tiny-llava@events"], done["tiny-llava@float16"]
    assert shown is not None and half is not None
    assert shown.shown == "5 event images" and half.model.dtype == "float16"
    notes = [
        text for text in texts(at).splitlines() if text.startswith("Shown event images as separate")
    ]
    assert len(notes) == 1
    assert at.query_params["compare_models"] == SIX  # a link reopens the same columns
    assert "The link" not in texts(at)


def test_a_link_with_more_columns_says_how_many_are_shown(app: Open) -> None:
    at = app(models=[*SIX, "Tiny video_llava · shown image"])
    assert len(names(at)) == 6
    assert "The link names 7 columns; the first 6 are shown: a page has up to 6." in texts(at)
    assert "up to 6 columns: remove one" in at.menu_button(key="compare_add").help


def offered(at: AppTest, page: str = "compare") -> list[str]:
    return [text.replace("\\", "") for text in at.menu_button(key=f"{page}_add").options]


def add(at: AppTest, name: str, page: str = "compare") -> AppTest:
    menu = at.menu_button(key=f"{page}_add")
    return menu.click_index(offered(at, page).index(name)).run()


def test_a_column_is_added_and_removed(app: Open) -> None:
    at = app(models=["Tiny llava"], tokens="5")
    assert "Tiny llava" not in offered(at) and "Tiny eventgpt · shown video" not in offered(at)
    add(at, "Tiny llava · shown events")
    assert names(at) == ["tiny-llava", "tiny-llava@events"]
    add(at, "Tiny llava · shown events · float16")
    assert names(at) == ["tiny-llava", "tiny-llava@events", "tiny-llava@events+float16"]
    assert heads(at)[-1] == "Tiny llava · shown events · float16"
    assert "Tiny llava · shown events" not in offered(at)  # twice
    at.multiselect(key="compare_models").set_value(["tiny-llava@events+float16"]).run()
    assert heads(at)[:1] == ["Tiny llava · shown events · float16"]
    assert not at.exception


@pytest.mark.parametrize("seed", slow_unless([0], range(3)))
def test_any_order_of_choices_is_taken(
    app: Open, tiny_models: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Models of different dtypes and inputs, one of them not installed."""
    text = settings.load().models_file.read_text(encoding="utf-8")
    text = text.replace('"./llava"\ndtype = "float32"', '"./llava"\ndtype = "bfloat16"')
    mixed = tiny_models / "mixed.toml"
    mixed.write_text(text.replace('"./video_llava"', '"./nowhere"'), encoding="utf-8")
    monkeypatch.setenv("STAGESCOPE_MODELS", str(mixed))
    at, random = app(models=["Tiny llava"], tokens="5"), Random(seed)
    assert at.multiselect(key="compare_models").options == ["Tiny eventgpt", "Tiny llava"]
    for _ in range(5):
        menu = at.menu_button(key="compare_add")
        menu.click_index(random.randrange(len(menu.options))).run()
        assert not at.exception, at.exception
    assert len({*names(at)}) == 6 and at.menu_button(key="compare_add").disabled


def test_an_unknown_variant_in_a_link_is_named(app: Open) -> None:
    at = app(models=["Tiny llava", "Tiny llava · shown sound"])
    assert names(at) == ["tiny-llava"]
    assert "'Tiny llava · shown sound'" in texts(at)


def test_variants_are_benchmarked_and_named_in_results(app: Open) -> None:
    parameters = {"models": ["Tiny llava", "Tiny llava · shown events"], "which": "The first"}
    at = app("pages/benchmark.py", samples="2", tokens="4", **parameters)
    at.button(key="benchmark_start").click().run()
    assert not at.exception
    job = queue.manager().get(at.session_state["benchmark_job"][0])
    assert isinstance(job, BenchmarkJob)
    wait(job)
    assert job.folder is not None
    run = run_store.read(job.folder)
    rows = [row for _, row in run.results() if row.phase == "measured"]
    assert {(row.model, row.shows) for row in rows} == {
        ("tiny-llava", "image"),
        ("tiny-llava@events", "events"),
    }
    labels = [(model.label, model.shows) for model in run.header.models]
    assert labels == [("Tiny llava", "image"), ("Tiny llava · shown events", "events")]
    header = json.loads((run.folder / "run.json").read_text(encoding="utf-8"))
    assert header["plan"]["models"] == ["tiny-llava", "tiny-llava@events"]
    ready = execute.resume(run.folder)
    ready.writer.close()
    assert registry.entry("tiny-llava@events") in ready.entries.values()


def test_variants_are_chosen_on_verify(app: Open) -> None:
    at = app("pages/verify.py", models=["Tiny llava · shown events"])
    assert names(at, "verify") == ["tiny-llava@events"]
    add(at, "Tiny llava · shown video", "verify")
    assert names(at, "verify") == ["tiny-llava@events", "tiny-llava@video"]
    assert not at.exception
