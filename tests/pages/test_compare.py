"""The Compare page through AppTest, over tiny checkpoints in the real registry."""

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
from engine.jobs.model_work import DraftJob
from engine.jobs.queue import Job
from engine.jobs.run_job import RunJob
from engine.media import media_sources
from engine.media.dataset import read
from engine.models import registry
from engine.prompts import OFF_SCRIPT
from engine.types import Doing, RunRequest, Sample
from tests.conftest import picture, slow_unless
from tests.jobs.waiting import wait
from tests.media import clips
from tests.pages.conftest import Open, quantize
from tests.pages.reading import badges, captions, html, press_run, results, tables, texts, told
from tests.report.test_bundle import unpacked
from ui.compare import card_board, shown_inputs
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
    monkeypatch.setattr(card_board, "ms", lambda value: f"{value + 1:.1f} ms")  # a planted one
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


def test_results_outlive_a_look_at_another_page(app: Open) -> None:
    at = press_run(app(**ONE))
    at.switch_page("pages/models.py").run()
    assert not tables(at)
    at.switch_page("pages/compare.py").run()
    assert len(tables(at)) == 1 and at.query_params["compare_jobs"]


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


def test_answers_keep_their_tabs_when_no_model_is_chosen_any_more(app: Open) -> None:
    at = press_run(app(**ONE))
    at.multiselect(key="compare_models").set_value([]).run()
    assert len(tables(at)) == 1 and len(at.tabs) == 5 and not at.exception
    at.session_state["compare_tab"] = DRAFT
    assert "A draft needs a sample and a model" in captions(at.run())


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
    assert 'class="painted-own"' in html(at) and "drafted and rejected" in html(at)
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
    sample, _ = media_sources.own_sample([(name, picture(folder / "1.png", 1))], [""], False)
    assert sample is not None
    return sample


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


def test_one_run_is_repeated_by_turns_and_its_difference_is_drawn(app: Open) -> None:
    at = press_run(app(cache="Off", models=["Tiny llava", "Tiny eventgpt"], **SHORT))
    (chart,) = at.get("vega_lite_chart")
    assert "number of tokens" in chart.proto.alt
    at.button(key="compare_decide").click().run()
    at.run()
    assert [view.model for view in results(at)] == ["tiny-llava", "tiny-eventgpt"] * 10
    assert "compare_decide" not in [one.key for one in at.button] and not at.exception


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
