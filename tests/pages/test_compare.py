"""The Compare page through AppTest, over tiny checkpoints in the real registry."""

from __future__ import annotations

import base64
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit import net_util
from streamlit.testing.v1 import AppTest
from streamlit.web.server import server_util

from engine import settings
from engine.analysis.compared import RunVerdict, verdict
from engine.jobs import queue
from engine.jobs.draft_job import DraftJob
from engine.jobs.queue import Job
from engine.jobs.run_job import RunJob
from engine.media import own_files
from engine.media.dataset import read
from engine.models import registry
from engine.pipeline.drafts import DraftRequest
from engine.prompts import MAX_QUESTION_CHARS, OFF_SCRIPT
from engine.types import DecodeConfig, Doing, RunOptions, RunRequest, Sample
from tests.conftest import picture, slow_unless
from tests.jobs.waiting import wait
from tests.media import clips
from tests.pages.conftest import Ends, Open, quantize
from tests.pages.reading import (
    badges,
    captions,
    html,
    keys,
    press_run,
    results,
    tables,
    texts,
    told,
)
from tests.report.test_bundle import unpacked
from ui.compare import cards, shown_inputs
from ui.compare.compare_tabs import AGREEMENT, DRAFT
from ui.widgets import dataset_picker, followed_runs, preparation, uploads

SHORT: dict[str, Any] = {"tokens": "5"}
ONE = SHORT | {"models": ["Tiny llava"]}
THREE = ["Tiny eventgpt", "Tiny video_llava", "Tiny llava"]


def figures(at: AppTest) -> list[str]:
    """The total and the number of tokens of each card, as HTML."""
    found = [element.proto.body for element in at.get("html")]
    return [html for html in found if 'class="card-total"' in html]


def verdict_of(at: AppTest) -> RunVerdict:
    """What the results of the page say."""
    entries = {entry.name: entry for entry in registry.entries()}
    found = followed_runs.grouped(results(at))
    models = [one.compared(entries[one.shown.model]) for one in found]
    return verdict([model for model in models if model], {})


def questions(at: AppTest) -> list[str]:
    """The common questions, as they are offered."""
    return [text.replace("\\", "") for text in at.menu_button(key="compare_common").options]


def test_an_end_while_the_page_is_drawn_offers_run(app: Open, ends_meanwhile: Ends) -> None:
    at = press_run(app(models=["Tiny llava"], tokens="8"))
    found = queue.manager().get(at.session_state["compare_jobs"][0])
    assert isinstance(found, RunJob)
    ends_meanwhile(found)
    at.run()
    assert not at.button(key="compare_run").disabled and "compare_cancel" not in keys(at)


def test_the_first_page_is_ready_to_run(app: Open) -> None:
    at = app()
    assert not at.button(key="compare_run").disabled
    assert "compare_cancel" not in keys(at)
    assert len(at.multiselect(key="compare_models").value) == 3
    assert not tables(at)


def test_one_click_gives_three_answers_a_chart_and_a_table(app: Open) -> None:
    at = press_run(app(**SHORT))
    done = results(at)
    assert [view.state for view in done] == ["done"] * 3
    assert all(view.text in texts(at) for view in done)
    assert html(at).count('class="run-bar"') == 3
    shown = figures(at)
    assert len(shown) == 3
    assert all(">5 tokens</span>" in html for html in shown)
    assert [one for name, one in told(at) if name.startswith("New tokens")] == ["5"] * 6
    assert len(re.findall("unverified|busy machine|cold run", badges(at))) == 3  # one each


def told_twice(at: AppTest) -> dict[str, set[str]]:
    """The values of each figure that the page tells more than once."""
    found: dict[str, list[str]] = {}
    for name, value in told(at):
        found.setdefault(name, []).append(value)
    return {name: set(values) for name, values in found.items() if len(values) > 1}


def test_a_figure_told_twice_is_the_same(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = press_run(app(repeat="3", cache="Off", **SHORT))
    found = told_twice(at)
    assert len(found) == 6 and {len(values) for values in found.values()} == {1}
    assert f"<h2>{verdict_of(at).headline}</h2>" in html(at)
    monkeypatch.setattr(cards, "ms", lambda value: f"{value + 1:.1f} ms")  # a planted one
    assert max(len(values) for values in told_twice(at.run()).values()) == 2


def test_no_outside_server_is_asked_for_the_ip(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit asks one when a page of another origin connects."""
    monkeypatch.setattr(net_util, "_external_ip", None)
    monkeypatch.setattr(net_util, "_make_blocking_http_get", lambda *_, **__: pytest.fail())
    app()
    assert not server_util.is_url_from_allowed_origins("http://elsewhere.example")
    assert server_util.is_url_from_allowed_origins("http://localhost:8501")  # a control


def test_changed_inputs_dim_the_answers_and_offer_run(app: Open) -> None:
    at = press_run(app(**ONE))
    assert "Changed since these runs" not in texts(at)
    before = results(at)
    at.number_input(key="compare_tokens").set_value(7).run()
    assert "Changed since these runs: max new tokens." in texts(at)
    assert results(at) == before and len(tables(at)) == 1
    at.button(key=shown_inputs.RUN).click().run()
    assert [view.new_tokens for view in results(at)] == [7]
    assert "Changed since these runs" not in texts(at)
    at.text_area(key="compare_question").set_value(" ").run()
    assert "Changed since these runs: question." in texts(at)


def test_a_newly_chosen_sample_is_previewed_beside_run(app: Open) -> None:
    at = press_run(app(**ONE))
    samples = at.selectbox(key="compare_sample")
    before = len(at.get("image"))
    samples.set_value(samples.options[3]).run()
    assert f"The new sample is {samples.options[3]}." in texts(at)
    assert len(at.get("image")) == before + 1


def test_a_second_run_reads_the_cache_and_says_both_times(app: Open) -> None:
    at = press_run(app(**ONE))
    assert "without cache" not in "".join(figures(at))
    at = press_run(at)
    assert all(" ms without cache" in html for html in figures(at))
    assert html(at).count("read from the cache (computing time") == 1


def test_the_answers_are_copied_to_the_letter(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = press_run(app(**ONE))
    (view,) = results(at)
    assert "ClipboardItem" not in html(at)  # control
    at.button(key="compare_copy").click().run()
    (copied,) = set(re.findall('data:text/plain;base64,([^"]+)', html(at)))
    words = base64.b64decode(copied).decode()
    assert view.request.prompt in words and words.endswith(f"\n\nTiny llava:\n{view.text}\n")


def test_a_link_reopens_the_choice_and_the_runs(app: Open) -> None:
    at = app(tokens="4", question="Is it dark?", models=["Tiny llava"], cache="Off", mode="Hooked")
    at = press_run(at)
    (view,) = results(at)
    assert view.request.prompt == "Is it dark?" and view.request.how.cache == "off"
    assert view.request.how.mode == "hooked" and view.request.how.decode.max_new_tokens == 4
    assert view.request.how.decode.backend == "auto"
    again = app(jobs=[view.id])
    assert view.text in texts(again) and len(tables(again)) == 1


@pytest.mark.parametrize(
    ("link", "decode"),
    [
        (
            {"sample_tokens": "true", "temperature": "1.5", "top_p": "0.5", "seed": "7"},
            DecodeConfig(5, temperature=1.5, top_p=0.5, seed=7),
        ),
        ({"temperature": "1.5", "backend": "Eager"}, DecodeConfig(5, backend="eager")),  # greedy
    ],
)
def test_a_link_sets_the_decoding(app: Open, link: dict[str, str], decode: DecodeConfig) -> None:
    assert results(press_run(app(**link, **ONE)))[0].request.how.decode == decode


def test_a_link_that_names_runs_twice_shows_each_model_once(app: Open) -> None:
    at = app(**ONE)
    first = results(press_run(at))[0].id
    second = results(press_run(at))[0].id
    again = app(jobs=[first, first, second])
    assert len(figures(again)) == 1
    assert [runs.shown.repeats for runs in followed_runs.grouped(results(again))] == [2]


def test_results_outlive_a_look_at_another_page(app: Open) -> None:
    at = press_run(app(**ONE))
    at.switch_page("pages/models.py").run()
    assert not tables(at)
    at.switch_page("pages/compare.py").run()
    assert len(tables(at)) == 1 and at.query_params["compare_jobs"]


def test_a_link_to_runs_of_another_server_says_so(app: Open) -> None:
    at = app(jobs=["gone1", "gone2"])
    assert "no longer in memory" in texts(at)
    assert not at.button(key="compare_run").disabled


def test_a_number_in_a_link_that_cannot_be_used_falls_back(app: Open) -> None:
    link = {"tokens": "many", "seed": "9" * 400, "temperature": "1e400", "top_p": "nan"}
    at, usual = app(**link), app()
    assert len(usual.number_input) > 2 and len(usual.slider) == 2
    for found, default in ((at.number_input, usual.number_input), (at.slider, usual.slider)):
        assert [one.value for one in found] == [one.value for one in default]
    assert not at.button(key="compare_run").disabled


def test_a_question_that_cannot_be_used_is_a_sentence_not_a_run(app: Open) -> None:
    at = app(**SHORT)
    at.text_area(key="compare_question").set_value("   ")
    at = press_run(at)
    assert "The question is empty" in texts(at)
    assert at.session_state["compare_jobs"] == []


def test_a_question_of_100000_characters_is_cut_and_waits_for_a_second_look(app: Open) -> None:
    at = app(**SHORT)
    at.text_area(key="compare_question").set_value("x" * 100_000)
    at = press_run(at)
    assert f"was cut to {MAX_QUESTION_CHARS:,} characters" in texts(at)
    assert at.text_area(key="compare_question").value == "x" * MAX_QUESTION_CHARS
    assert at.session_state["compare_jobs"] == []
    too_long = press_run(app(question="y" * 9000, **SHORT))
    assert "has 9,000 characters" in texts(too_long)


def test_a_failure_is_a_sentence_and_no_number(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    quantize("demo = true", monkeypatch)
    at = press_run(app(models=THREE, **SHORT))
    assert [view.state for view in results(at)] == ["failed"] * 3
    assert captions(at).count("Failed") == 3
    assert all(view.error in texts(at) for view in results(at))
    assert not tables(at) and not figures(at)


def test_one_failure_leaves_the_other_answers(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    quantize('"./video_llava"', monkeypatch)
    at = press_run(app(models=THREE, **SHORT))
    assert [view.state for view in results(at)] == ["done", "failed", "done"]
    assert html(at).count('class="model-head"') == 2
    assert "do not work here" in texts(at)
    assert "Not counted: Tiny video_llava failed." in html(at)


def test_what_is_known_is_shown_on_demand(app: Open) -> None:
    sample = read(settings.load().demo_dir).samples[0]
    at = press_run(app(tab=AGREEMENT, **ONE))
    assert sample.reference not in texts(at) and "known content" not in html(at)
    at.toggle(key="compare_truth").set_value(True).run()
    assert sample.reference in texts(at)
    assert {metric.label for metric in at.metric} == set(sample.truth)


def test_a_common_question_fills_the_field(app: Open) -> None:
    at = app()
    common = at.menu_button(key="compare_common")
    common.click_index(5).run()
    assert at.text_area(key="compare_question").value == questions(at)[5]


def test_answers_keep_their_tabs_when_no_model_is_chosen_any_more(app: Open) -> None:
    at = press_run(app(**ONE))
    at.multiselect(key="compare_models").set_value([]).run()
    assert len(tables(at)) == 1 and len(at.tabs) == 5 and not at.exception
    at.session_state["compare_tab"] = DRAFT
    assert "A draft needs a sample and a model" in captions(at.run())


def test_no_models_is_a_hint(app: Open) -> None:
    at = app()
    at.multiselect(key="compare_models").set_value([]).run()
    assert "choose one to six in the sidebar" in texts(at)
    assert at.button(key="compare_run").disabled


@pytest.fixture
def full_disk(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache folder, in which no demo scene can be made."""

    def full(*arguments: object, **named: object) -> Path:
        raise OSError("No space left on device")

    monkeypatch.setattr("engine.demo.demo_dataset.ensure_dataset", full)
    st.cache_resource.clear()
    shutil.rmtree(settings.load().demo_dir)
    preparation.demo_scenes(settings.load().demo_dir).exception()


def test_scenes_that_ship_need_no_others(app: Open, full_disk: None) -> None:
    at = app()
    assert at.selectbox(key="compare_sample").label == "Sample (2)"
    assert "No space left on device" in texts(at)
    assert not at.button(key="compare_run").disabled


@pytest.mark.usefixtures("full_disk")
def test_scenes_that_cannot_be_made_are_said(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.demo.demo_dataset.FIRST", Path("/nowhere.zip"))
    at = app()
    assert at.button(key="compare_run").disabled
    assert "The demo dataset cannot be made in" in texts(at)


@pytest.mark.parametrize(
    ("root", "words"),
    [("/nowhere/at/all", "/nowhere/at/all"), ("~nobody-of-that-name/x", "is not a usable path")],
)
def test_a_root_without_a_dataset_is_a_sentence(app: Open, root: str, words: str) -> None:
    at = app(root=root)
    assert words in texts(at)
    assert at.button(key="compare_run").disabled


def test_a_public_server_refuses_a_typed_root(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_picker, "on_loopback", lambda: False)
    at = app(root="/nowhere/at/all")
    assert at.selectbox(key="compare_root").value == dataset_picker.DEMO


@pytest.mark.parametrize(
    ("address", "local"), [("127.0.0.1", True), ("192.168.1.5", False), (None, False)]
)
def test_only_loopback_addresses_are_local(
    address: str | None, local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(st, "get_option", lambda _: address)
    assert dataset_picker.on_loopback() is local


def test_own_files_without_a_file_say_what_to_do(app: Open) -> None:
    at = app(source="Own files")
    assert "drop your own files" in texts(at)
    assert "64 MB" in captions(at)


def test_an_own_clip_of_another_kind_is_previewed_and_can_be_asked(app: Open) -> None:
    at = app(source="Own files", **SHORT)
    data = clips.encoded("webm", "libvpx", range(0, 500, 50))
    at.file_uploader[0].set_value([("one.webm", data, "video/mp4")]).run()
    assert not at.exception and not at.button(key="compare_run").disabled
    assert "done" in [view.state for view in results(press_run(at))]


def test_a_bad_file_is_named_and_the_good_one_runs(app: Open, tmp_path: Path) -> None:
    good = picture(tmp_path / "good.png", 1).read_bytes()
    at = app(source="Own files", **SHORT)
    needs = "Run needs a file that can be used: the sidebar says what is wrong with yours."
    at.file_uploader[0].set_value([("*bad*.png", b"", "image/png")]).run()
    assert "'*bad*.png' is empty (0 bytes): export it again." in texts(at)
    assert at.button(key="compare_run").disabled and needs in texts(at)
    files = [("*bad*.png", b"", "image/png"), ("good.png", good, "image/png")]
    at.file_uploader[0].set_value(files).run()
    assert "'*bad*.png' is empty (0 bytes): export it again." in texts(at)
    assert not at.button(key="compare_run").disabled and needs not in texts(at)
    left_out = [words for words in texts(at).splitlines() if "is left out." in words]
    assert left_out == [
        "Tiny eventgpt is left out. Needs event images or a raw .npy.",
        "Tiny video_llava is left out. Needs a video or several frames.",
    ]
    assert len(at.multiselect(key="compare_models").value) == 3  # they run again with other input
    answers = results(press_run(at))
    assert [(view.model, view.state) for view in answers] == [("tiny-llava", "done")]


def test_a_new_file_leaves_the_files_of_earlier_results(app: Open, tmp_path: Path) -> None:
    at = app(source="Own files", **SHORT)
    for number, name in enumerate(("first", "second"), 1):
        data = picture(tmp_path / f"{name}.png", number).read_bytes()
        at.file_uploader[0].set_value([(f"{name}.png", data, "image/png")]).run()
        if name == "first":
            press_run(at)
    (view,) = results(at)
    assert view.request.sample.id == "first.png" and view.request.sample.images[0].exists()
    assert view.text in texts(at) and not at.exception


def test_previous_and_next_step_through_the_samples(app: Open) -> None:
    at = app()
    ids = [sample.id for sample in read(settings.load().demo_dir).samples]
    assert at.button(key="compare_sample_previous").disabled
    for key, place in (("next", 1), ("next", 2), ("previous", 1)):
        at.button(key=f"compare_sample_{key}").click().run()
        assert at.selectbox(key="compare_sample").value == ids[place]
    at.selectbox(key="compare_sample").set_value(ids[-1]).run()
    assert at.button(key="compare_sample_next").disabled and not at.exception


def test_an_unreadable_models_file_is_said(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAGESCOPE_MODELS", "/nowhere/models.toml")
    at = app()
    assert "/nowhere/models.toml" in texts(at)
    assert not at.button


def test_the_records_own_question_is_offered_and_named_beside_its_answer(
    app: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "own"
    monkeypatch.setenv("STAGESCOPE_DATASETS", str(root))
    picture(root / "event_image" / "seq" / "000000_0.png", 1)
    talk = [{"from": "human", "value": "<event>\nWho waves?"}, {"from": "gpt", "value": "Nobody."}]
    record = {"id": "one", "event_image": ["seq/000000_0.png"], "conversations": talk}
    (root / "EventGPT_Instruction_Subset.json").write_text(json.dumps([record]))
    at = press_run(app(root=str(root), models=["Tiny eventgpt"], truth="true", tab=AGREEMENT))
    assert questions(at)[0] == "Who waves?"
    shown = texts(at)
    assert shown.index("Who waves?") < shown.index("Nobody.")


def test_results_name_the_settings_they_were_made_with(app: Open) -> None:
    at = press_run(app(**ONE))
    at.toggle(key="compare_sample_tokens").set_value(True).run()
    assert "at most 5 new tokens" in badges(at) and "sampled" not in badges(at)
    at = press_run(at)
    assert "sampled (temperature 0.7, top p 0.95, seed 0)" in badges(at)


def test_a_link_to_what_is_not_here_says_so_until_the_next_run(app: Open) -> None:
    at = app(sample="gone", models=["EventGPT-9b"], **SHORT)
    said = [
        words for words in texts(at).splitlines() if "in the link is not available here" in words
    ]
    assert len(said) == 2 and "'gone'" in said[0] and "'EventGPT-9b'" in said[1]
    at = press_run(at)
    assert "in the link" not in texts(at)


def test_going_back_shows_the_runs_of_that_link(app: Open) -> None:
    at = press_run(app(**ONE))
    before = list(at.session_state["compare_jobs"])
    at = press_run(at)
    assert list(at.session_state["compare_jobs"]) != before
    at.query_params["compare_jobs"] = before
    at.run()
    assert list(at.session_state["compare_jobs"]) == before


def test_a_restored_file_is_seen(app: Open, tmp_path: Path) -> None:
    root = tmp_path / "own"
    file = picture(root / "event_image" / "seq" / "000000_0.png", 1)
    record = {"id": "one", "event_image": ["seq/000000_0.png"]}
    (root / "EventGPT_Instruction_Subset.json").write_text(json.dumps([record]))
    data = file.read_bytes()
    file.unlink()
    at = app(root=str(root))
    assert "does not exist" in texts(at)
    file.write_bytes(data)
    at = app(root=str(root))
    assert "does not exist" not in texts(at)


@pytest.fixture
def copied(app: Open, demo_scenes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenes that do not ship are copied, which takes no time; tests/demo makes them."""

    def copy(root: Path, before_each: Callable[[], None]) -> Path:
        before_each()
        return shutil.copytree(demo_scenes, root, dirs_exist_ok=True)

    monkeypatch.setattr("engine.demo.demo_dataset.ensure_dataset", copy)


def test_an_emptied_cache_folder_gets_its_scenes_again(app: Open, copied: None) -> None:
    at = app()
    shutil.rmtree(settings.load().demo_dir)
    preparation.demo_scenes.clear()
    at.run()
    preparation.demo_scenes(settings.load().demo_dir).result()
    at.run()
    assert at.selectbox(key="compare_sample").label == "Sample (14)"
    assert not at.button(key="compare_run").disabled


@pytest.mark.usefixtures("copied")
def test_a_scene_does_not_wait_for_models(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "warm_up", Future)  # still at work
    preparation.SCENES_NOW.clear()
    preparation.demo_scenes.clear()
    shutil.rmtree(settings.load().demo_dir)
    app()
    making = preparation.demo_scenes(settings.load().demo_dir)
    with pytest.raises(TimeoutError):
        making.result(2 * preparation.LOOK_S)
    app(sample="junction-4")
    making.result(60)


def drafting_of(at: AppTest) -> DraftJob:
    job = queue.manager().get(at.session_state["compare_draft_job"][0])
    assert isinstance(job, DraftJob)
    wait(job)
    return job


def test_a_run_that_no_page_shows_says_why_it_stopped(tiny_models: Path) -> None:
    job = RunJob(patience_s=0.0, request=RunRequest(Sample("s", ""), "tiny-llava", "Why?"))
    job.work()
    assert job.state == "cancelled" and "no page had shown this run for 0 s" in job.error


def test_a_draft_is_painted_with_measured_beside_predicted(app: Open) -> None:
    at = app(**SHORT, draft_gamma="3", draft_runs="1", tab=DRAFT)
    at.button(key="compare_draft_run").click().run()
    assert not at.exception
    job = drafting_of(at)
    assert job.state == "done" and job.request.gamma == 3
    assert (job.request.target, job.request.draft) == ("tiny-video_llava", "tiny-eventgpt")
    at.run()
    shown = "".join(element.proto.body for element in at.get("html"))
    assert 'class="painted-own"' in shown and "drafted and rejected" in shown
    assert {"Measured", "Predicted", "Whole run"} <= {metric.label for metric in at.metric}
    assert "The drafted answer equals the target's own, token by token." in texts(at)
    assert "eager steps, at most" in texts(at)
    assert not at.button(key="compare_draft_run").disabled


def test_a_sampled_draft_is_refused_in_a_sentence(app: Open) -> None:
    at = app(**SHORT, sample_tokens="true", tab=DRAFT)
    at.button(key="compare_draft_run").click().run()
    assert "Drafting is greedy, but temperature is 0.7" in texts(at)
    assert not at.exception


@pytest.mark.usefixtures("declared_llava")
def test_an_answer_to_an_untrained_question_is_said_to_mean_nothing(app: Open) -> None:
    at = press_run(app(question="What colour is the car?", **SHORT))
    assert [view.result.off_script for view in results(at)] == [None, None, True]
    assert texts(at).count(OFF_SCRIPT) == 1
    at.text_area(key="compare_question").set_value("is it dark")
    at = press_run(at)
    assert [view.result.off_script for view in results(at)] == [None, None, False]
    assert OFF_SCRIPT not in texts(at)


@pytest.mark.usefixtures("declared_llava")
def test_a_drafted_answer_to_an_untrained_question_too(app: Open) -> None:
    at = app(draft_runs="1", draft_target="Tiny llava", question="Why?", tab=DRAFT, **SHORT)
    at.button(key="compare_draft_run").click().run()
    assert drafting_of(at).report.off_script == ("tiny-llava",)
    at.run()
    assert f"Tiny llava: {OFF_SCRIPT}" in texts(at)


def cancel_in(phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cancels every run when the first one reaches a phase, and stays in it while the page draws.

    Compiling is a stage that the pipeline names before the run's clock starts; here it takes the
    place of loading the media, because tiny models are compiled in no time.
    """
    stage, load, stopped = RunJob.stage, registry.load, list[bool]()

    def stop() -> None:
        while sum(not job.ended for job in queue.manager().all()) < 3 and not stopped:
            time.sleep(0.01)  # Run is still queueing the others
        stopped.append(True)
        for job in queue.manager().all():
            job.cancel()
        time.sleep(4 * followed_runs.REDRAW_S)

    def staged(self: RunJob, name: Doing) -> None:
        stage(self, "compile" if phase == "compile" and name == "load" else name)
        if self._stage == phase:
            stop()

    def loaded(*arguments: Any, **named: Any) -> Any:
        if phase == "loading":
            stop()
        return load(*arguments, **named)

    monkeypatch.setattr(RunJob, "stage", staged)
    monkeypatch.setattr(registry, "load", loaded)


@pytest.mark.loads
@pytest.mark.parametrize(
    "phase",
    slow_unless(
        ["queued", "loading", "decode"], ["queued", "loading", "compile", "vision", "decode"]
    ),
)
def test_run_is_offered_after_cancel(
    app: Open, monkeypatch: pytest.MonkeyPatch, phase: str
) -> None:
    at = app(**SHORT)
    with monkeypatch.context() as patch, hold_device(phase == "queued"):
        cancel_in(phase, patch)
        press_run(at)
    assert [view.state for view in results(at)] == ["cancelled"] * 3
    assert captions(at).count("Cancelled") == 3
    assert not at.button(key="compare_run").disabled
    assert texts(at).count("before it started") >= 2
    press_run(at)
    assert [view.state for view in results(at)] == ["done"] * 3


@contextmanager
def hold_device(wanted: bool) -> Iterator[None]:
    """Another job has the device while the runs that wait for it are cancelled, one by one."""

    class Holding(Job):
        title = "another job"

        def run(self) -> None:
            waiting: list[RunJob] = []
            while len(waiting) < 3:
                time.sleep(0.01)
                known = queue.manager().all()
                waiting = [job for job in known if isinstance(job, RunJob) and not job.ended]
            time.sleep(2 * followed_runs.REDRAW_S)
            waiting[1].cancel()
            time.sleep(4 * followed_runs.REDRAW_S)
            waiting[0].cancel()
            waiting[2].cancel()
            self.end("done")

    if wanted:
        queue.manager().submit(Holding())
    yield


def own(name: str, folder: Path) -> Sample:
    sample, _ = own_files.gather([(name, picture(folder / "1.png", 1))], [""], False)
    assert sample is not None
    return sample


def test_runs_of_another_visits_files_are_shown_to_nobody_else(app: Open, tmp_path: Path) -> None:
    """By their ids or as what is at work now; a run of a dataset's sample is shown by its link."""
    sample = own("secret.png", tmp_path)
    mine = RunRequest(
        sample, "tiny-llava", "Why?", RunOptions(decode=DecodeConfig(max_new_tokens=3))
    )
    hidden = RunJob(request=mine, owner="another visit")
    drafting_ = DraftJob(request=DraftRequest((sample,), "tiny-llava", "lookup"), owner="another")
    shared = RunJob(request=mine)
    for job in (hidden, shared):
        queue.manager().submit(job)
    while not (hidden.ended and shared.ended):
        time.sleep(0.01)
    queue.manager().submit(drafting_)
    at = app(jobs=[hidden.id], draft_job=drafting_.id)
    assert "no longer in memory: press Run" in texts(at)
    assert "secret.png" not in texts(at) and not tables(at)
    assert "drafted by" not in texts(at)
    at = app(jobs=[shared.id])  # control
    assert "secret.png" in texts(at) and len(tables(at)) == 1
    drafting_.cancel()


def test_a_run_of_own_files_is_this_visits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    visit = uploads.Visit()
    monkeypatch.setattr(uploads, "visit", lambda: visit)
    sample = own("one.png", tmp_path)
    assert uploads.owner(sample) == str(visit.root) and uploads.owner(None) == ""
    assert uploads.owner(Sample("s", "q")) == ""
    job = RunJob(request=RunRequest(sample, "m", "Why?"), owner=uploads.owner(sample))
    assert uploads.may_see(job) and uploads.may_see(RunJob(request=job.request))
    other = uploads.Visit()
    monkeypatch.setattr(uploads, "visit", lambda: other)
    assert not uploads.may_see(job)


def test_repeats_take_turns_and_every_model_gets_a_median(app: Open) -> None:
    at = press_run(app(repeat="3", cache="Off", **SHORT))
    done = results(at)
    assert [view.model for view in done] == [view.model for view in done[:3]] * 3
    assert "".join(figures(at)).count("median run of ") == 3


def test_one_run_is_repeated_by_turns_and_its_difference_is_drawn(app: Open) -> None:
    at = press_run(app(cache="Off", models=["Tiny llava", "Tiny eventgpt"], **SHORT))
    (chart,) = at.get("vega_lite_chart")
    assert "number of tokens" in chart.proto.alt
    at.button(key="compare_decide").click().run()
    at.run()
    assert [view.model for view in results(at)] == ["tiny-llava", "tiny-eventgpt"] * 10
    assert "compare_decide" not in keys(at) and not at.exception


def test_a_link_with_too_many_repeats_runs_the_offered_number(app: Open) -> None:
    at = press_run(app(repeat="5000", **ONE))
    assert len(results(at)) == 1


@pytest.mark.loads
def test_cancel_stops_all_repeats(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    at = app(repeat="10", **SHORT)
    with monkeypatch.context() as patch:
        cancel_in("decode", patch)
        press_run(at)
    done = results(at)
    assert len(done) == 30 and {view.state for view in done} == {"cancelled"}
    assert sum("before it started" in view.error for view in done) == 29
    assert not at.button(key="compare_run").disabled


def test_the_replay_shows_recorded_times_and_says_what_was_cached(app: Open) -> None:
    at = app(replay="true", **SHORT)
    assert not at.get("iframe")
    at = press_run(press_run(at))
    (shown,) = at.get("iframe")
    (packed,) = re.findall('data-number="0">([^<]+)<', shown.proto.srcdoc)
    answers = unpacked(packed)[0]["answers"]
    for view, answer in zip(results(at), answers, strict=True):
        assert view.result is not None
        assert answer["pieces"][0][0] == round(10 * view.result.generation.token_ms[0])
        assert "read from the cache; when computed" in answer["stages"]
    at.button(key="compare_play").click().run()
    assert not at.get("iframe") and not at.exception
