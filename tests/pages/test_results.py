"""The Results page through AppTest, over run folders made by hand."""

import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine import settings
from engine.prompts import OFF_SCRIPT
from engine.report import bundle
from engine.storage import annotations as marks
from engine.storage import run_store
from engine.storage.plan import Plan, Task
from engine.storage.result_rows import ResultRow
from engine.storage.run_store import Run
from engine.types import DecodeConfig
from tests import fabricate
from tests.pages.conftest import Open
from tests.pages.reading import captions, html, tables, texts
from tests.report.test_bundle import unpacked
from ui.results import overview

PAGE = "pages/results.py"
Make = Callable[..., Run]


@pytest.fixture
def make(app: Open) -> Make:
    """A run folder by this name in the settings' runs folder; `created`: when in January 2026."""

    def made(
        name: str, rows: list[dict[str, object]], finished: bool = True, created: str = ""
    ) -> Run:
        run = fabricate.run(settings.load().runs_dir / name, rows, finished)
        if created:
            path = run.folder / "run.json"
            moment = f"2026-01-{created}+00:00"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"created": moment}))
        return run

    return made


def view(at: AppTest, name: str) -> AppTest:
    at.segmented_control(key="results_view").set_value(name).run()
    assert not at.exception
    return at


def listed(at: AppTest) -> list[str]:
    """The chosen runs, in the order of the list."""
    keys = [one.key for one in at.get("popover")]
    return [key.removeprefix("results_edit_") for key in keys if key.startswith("results_edit_")]


def pick(at: AppTest, *runs: str) -> None:
    at.multiselect(key="results_pick").set_value(list(runs)).run()
    assert not at.exception


def shown(at: AppTest) -> list[str]:
    return at.dataframe[0].value["sample"].tolist()


def test_runs_are_listed_and_chosen(app: Open, make: Make) -> None:
    make("one", fabricate.pair(2))
    make("two", [fabricate.row("im")], finished=False)
    (settings.load().runs_dir / "bad").mkdir()
    (settings.load().runs_dir / "bad" / "run.json").write_text("[]")
    at = app(PAGE)
    field = at.multiselect(key="results_pick")
    assert {words.partition(" · ")[2] for words in field.options} == {
        "dataset run · one · ev, vl · 4 results",
        "dataset run · one · not finished · im · 1 row, including warm-up, 1 result planned",
    }
    assert at.query_params["results_runs"] == "one"  # the only finished one
    assert "Unreadable: 1 run" in [one.label for one in at.expander]
    assert "cannot be used" in texts(at)
    pick(at)
    assert "Choose one or more runs" in texts(at) and "results_runs" not in at.query_params
    pick(at, "two")
    assert at.query_params["results_runs"] == "two"


def test_the_overview_keeps_apart_what_must_not_be_mixed(app: Open, make: Make) -> None:
    rows = fabricate.pair(3)
    rows.append(fabricate.row("ev", "s0", repeat=1, phase="warmup", prefill=500.0))
    rows.append(fabricate.row("ev", "s9", cached_ms=77.0))
    rows.append(fabricate.failed("vl", "s9", "It **broke** <b>here</b>."))
    make("one", rows)
    at = app(PAGE, runs="one")
    found = html(at)
    assert "It **broke** <b>here</b>." in found
    assert "It **broke** &lt;b&gt;here" in "".join(e.proto.body for e in at.get("html"))
    assert "warm-up" in found and "read from the cache" in found
    assert len(at.get("vega_lite_chart")) == 3
    assert "unverified" in " ".join(element.value for element in at.markdown)


def test_nothing_answered_gives_no_figure(app: Open, make: Make) -> None:
    make("one", [fabricate.failed(), fabricate.failed("vl")])
    at = app(PAGE, runs="one")
    assert "There are no answers" in texts(at) and not at.get("vega_lite_chart")


def test_the_lens_changes_the_figures(app: Open, make: Make) -> None:
    rows = [fabricate.row("ev", "s0", gaps=[2.0]), fabricate.row("vl", "s0", gaps=[2.0] * 12)]
    make("one", rows)
    at = app(PAGE, runs="one")
    assert "13.0 (n 1)" in html(at)
    at.segmented_control(key="results_lens").set_value("first").run()
    assert "The first min(N) tokens" in texts(at) and "13.0 (n 1)" not in html(at)
    at.segmented_control(key="results_lens").set_value("forced").run()
    assert "--length forced:64" in texts(at)


def test_a_comparison_in_words_its_waterfall_and_a_scatter(app: Open, make: Make) -> None:
    make("one", fabricate.pair(8))
    at = app(PAGE, runs="one", view="Comparison")
    assert "95 % interval" in texts(at) and "over 8 samples of 8 sequences: less." in texts(at)
    assert (
        "x as fast as vl in the mean of 8 samples" in texts(at)
        and len(at.get("vega_lite_chart")) == 2
    )
    assert "No conclusion about" not in texts(at)
    assert "has the larger value: 0." in texts(at)
    at.toggle(key="results_every").set_value(True).run()
    assert "decode: token steps (ms)" in html(at)
    at.selectbox(key="results_b").set_value("ev").run()
    assert "Model A and Model B are the same" in texts(at)


def test_one_model_cannot_be_compared(app: Open, make: Make) -> None:
    make("one", [fabricate.row()])
    at = app(PAGE, runs="one", view="Comparison")
    assert "needs two models" in texts(at)


def samples(app: Open, **more: str) -> AppTest:
    return app(PAGE, runs="one", view="Samples", **more)


def test_samples_are_filtered_by_words_model_and_outcome(app: Open, make: Make) -> None:
    rows = [*fabricate.pair(2), fabricate.row("ev", "s2", text="A LORRY [ahead](x)")]
    make("one", [*rows, fabricate.failed("vl", "s2")])
    at = samples(app)
    assert shown(at) == ["s0", "s1", "s2"]
    at.text_input(key="results_text").set_value("lorry").run()
    assert shown(at) == ["s2"]
    at.selectbox(key="results_label").set_value("vl").run()
    assert "No sample matches" in captions(at)
    at.text_input(key="results_text").set_value("").run()
    at.selectbox(key="results_outcome").set_value("failed").run()
    assert shown(at) == ["s2"]
    at.selectbox(key="results_outcome").set_value("answered").run()
    assert shown(at) == ["s0", "s1"]


def test_the_cards_of_a_sample_keep_the_order_of_the_models(app: Open, make: Make) -> None:
    make("one", [fabricate.row("ev", "s1"), *reversed(fabricate.pair(1))])  # by turns: vl, ev
    cards = [text.value for text in samples(app, sample="s0").markdown]
    assert [text for text in cards if text in ("**ev**", "**vl**")] == ["**ev**", "**vl**"]


def test_times_of_different_devices_come_with_a_word(app: Open, make: Make) -> None:
    place = {"node": "n1", "host": "vm", "actor": "x", "shares": ["device"]}
    epyc = {"device": "cpu", "processor": "EPYC"}
    rows = [row | {"environment": epyc} for row in fabricate.pair(3)]
    make("same", rows)
    rows = [row | ({"where": place} if row["model"] == "ev" else {}) for row in rows]
    make("one", [fabricate.row("vl", phase="warmup", environment=epyc, where=place), *rows])
    at = app(PAGE, runs="one")
    told = "• For some results other workers of the run shared the device, for some not."
    assert told in texts(at)
    at = app(PAGE, runs="one", view="Comparison")
    told = "Shared differently: ev had a shared device; vl had a device for itself."
    assert told in texts(at)
    assert at.selectbox(key="results_a").options == ["ev · EPYC, shared device", "vl · EPYC"]
    assert told in texts(samples(app, order="Greatest time ratio first"))
    at = samples(app, sample="s0")
    assert "Ran on vm, node n1, worker x: EPYC, shared device." in texts(at)
    at = app(PAGE, runs="same", view="Comparison")
    assert "ifferent devices" not in texts(at)
    assert at.selectbox(key="results_a").options == ["ev", "vl"]


def test_a_model_that_several_devices_answered_for_has_answered_all(app: Open, make: Make) -> None:
    rows = [row | {"environment": {"processor": row["sample"]}} for row in fabricate.pair(2)]
    make("one", [*rows, fabricate.row("ev", "s2"), fabricate.failed("vl", "s2")])
    at = samples(app)
    at.selectbox(key="results_outcome").set_value("answered").run()
    assert shown(at) == ["s0", "s1"]


def test_samples_are_ranked_by_disagreement_and_ratio(app: Open, make: Make) -> None:
    rows = fabricate.pair(3)
    rows[3]["text"] = "Nothing alike."
    rows[4]["total_ms"] = 1000.0
    make("one", rows)
    at = samples(app, order="Least agreement first")
    assert shown(at)[0] == "s1"
    at.selectbox(key="results_order").set_value("ratio").run()
    assert shown(at)[0] == "s2" and "ev / vl" in at.dataframe[0].value


def test_a_long_list_comes_page_by_page(app: Open, make: Make) -> None:
    make("one", [fabricate.row("ev", f"s{i}") for i in range(120)])
    at = samples(app)
    assert len(shown(at)) == 25 and "120 samples" in captions(at)
    assert at.get("pagination")[0].proto.num_pages == 5
    assert shown(samples(app, page="5"))[0] == "s100"
    assert shown(samples(app, page="99999"))[0] == "s0"
    at = samples(app, sample="s70")
    assert shown(at) == ["s70", "s71", "s72", "s73", "s74"]
    next(one for one in at.button if one.label == "Previous sample").click().run()
    assert shown(at)[-1] == "s69" and at.query_params["results_sample"] == "s69"
    next(one for one in at.button if one.label == "Close the sample").click().run()
    assert shown(at)[0] == "s50" and "results_sample" not in at.query_params
    at.text_input(key="results_text").set_value("s11").run()
    assert len(shown(at)) == 11  # one page: the pages before were more


def test_an_answer_to_an_untrained_question_is_said_to_mean_nothing(app: Open, make: Make) -> None:
    make("one", [fabricate.row("ev", off_script=True), fabricate.row("vl", off_script=None)])
    at = samples(app, sample="s0")
    assert texts(at).count(OFF_SCRIPT) == 1 and "The answers" not in texts(at)


def test_a_failed_answer_shows_its_reason_and_no_number(app: Open, make: Make) -> None:
    make("one", [fabricate.failed(error="No <b>file</b>."), fabricate.row("ev", "s1")])
    at = samples(app, sample="s0")
    assert "No <b>file</b>." in texts(at) and not at.metric


def test_notes_and_thumbs_are_kept_with_the_run(app: Open, make: Make) -> None:
    run = make("one", fabricate.pair(2))
    at = samples(app, sample="s1")
    at.text_input(key="results_note_one_ev_s1_0").set_value("  odd ").run()
    found = marks.read(run.folder)
    assert found[Task("ev", "s1", 0, "measured")].note == "odd"
    again = samples(app, sample="s1")
    assert again.text_input(key="results_note_one_ev_s1_0").value == "odd"
    again.selectbox(key="results_outcome").set_value("note").run()
    assert shown(again) == ["s1"]


def test_repeats_can_be_looked_at_one_by_one(app: Open, make: Make) -> None:
    make("one", [fabricate.row(repeat=n, text=f"Answer {n}.") for n in range(2)])
    at = samples(app, sample="s0")
    assert "Answer 0." in texts(at)
    at.selectbox(key="results_repeat").set_value("1").run()
    assert "Answer 1." in texts(at)


def test_what_ran_and_the_reports_are_there(app: Open, make: Make) -> None:
    run = make("one", fabricate.pair(2))
    at = app(PAGE, runs="one", view="Export")
    assert "digest-of-data" in html(at) and "preprocess -> vision" in html(at)
    at = view(at, "Export")
    assert len(at.get("download_button")) == 6
    assert (
        at.code[0].value
        == f"python -m engine report {run.folder.name} --format html --out report.html"
    )


def test_a_run_at_work_stays_as_it_was_until_it_is_read_again(app: Open, tmp_path: Path) -> None:
    folder = settings.load().runs_dir / "one"
    with run_store.create(fabricate.header(("ev",), ("s0", "s1")), folder) as writer:
        writer.append(ResultRow.parse(fabricate.row()))
        at = samples(app)
        writer.append(ResultRow.parse(fabricate.row(sample="s1")))
        at.run()
        assert shown(at) == ["s0"] and "new results" in texts(at)
        at.button(key="results_again").click().run()
        assert shown(at) == ["s0", "s1"]


BATCHES = [
    *fabricate.batch(["s0", "s1", "s2"], ms=123.0, notes=["A note of the batch."]),
    *fabricate.batch(["s3", "s4", "s5"], ms=150.0),
]


def test_a_run_of_batches_beside_a_single_one(app: Open, make: Make) -> None:
    rows = [fabricate.row(sample=f"s{i}") for i in range(6)]
    make("single", rows, created="01T10:15:00"), make("batches", BATCHES, created="01T10:16:00")
    at = app(PAGE, runs=["single", "batches"])
    found = html(at)
    assert "samples at once" in found and "in a batch" in found
    assert "Samples that were answered in a batch are not timed separately" in texts(at)
    bars, spread = (one.proto.alt for one in at.get("vega_lite_chart"))
    assert "ev · 2026-01-01 10:15:00: median" in spread and "10:16" not in spread
    assert "ev · 2026-01-01 10:16:00: not measured." in bars
    view(at, "Comparison")
    assert "ev · 2026-01-01 10:16:00: Samples that were answered in a batch are not" in texts(at)
    assert "no conclusion" not in texts(at)
    assert [one.key for one in at.get("vega_lite_chart")] == [None]  # only the gate's


def test_batches_alone_have_no_figures_but_their_throughput(app: Open, make: Make) -> None:
    make("batches", BATCHES)
    at = app(PAGE, runs="batches")
    assert "no sample was timed alone" in texts(at)
    assert not at.get("vega_lite_chart") and "samples at once" in html(at)


def test_a_bundle_has_the_figures_of_the_page_to_the_last_digit(
    app: Open, make: Make, tmp_path: Path, undrawn: None
) -> None:
    runs = [make("batches", BATCHES), make("single", fabricate.pair(3))]
    folder = bundle.write(runs, tmp_path / "out")
    text = (folder / "data" / "0.js").read_text(encoding="utf-8")
    kept = unpacked(text.partition(',"')[2].removesuffix('");\n'))
    assert len(kept) > 3
    for sample in kept:
        at = app(PAGE, runs=["batches", "single"], view="Samples", sample=sample["id"])
        figures = [tuple(figure) for one in sample["answers"] for figure in one["figures"]]
        shown = [(metric.label, metric.value) for metric in at.metric]
        assert sorted(figures) == sorted(shown)  # runs of one second stand in any order
        assert all(f"{one['stages']}." in texts(at) for one in sample["answers"])


def test_a_tag_that_is_too_long_is_refused_in_its_box_and_taken_back(app: Open, make: Make) -> None:
    run = make("one", [fabricate.row()])
    at = app(PAGE, runs="one")
    at.multiselect(key="results_tags_one").set_value(["rain"]).run()
    at.multiselect(key="results_tags_one").set_value(["rain", "x" * 99]).run()
    (box,) = [one for one in at.main.get("popover") if one.key == "results_edit_one"]
    assert any("has 99 characters: shorten it" in str(one.value) for one in box.get("text"))
    assert at.multiselect(key="results_tags_one").value == ["rain"]
    assert marks.details(run.folder)[0].tags == ("rain",)


def test_damaged_details_are_said_and_ignored(app: Open, make: Make) -> None:
    run = make("one", [fabricate.row()])
    (run.folder / marks.DETAILS).write_text("{")
    (settings.load().runs_dir / marks.BASELINE).write_text("[]")
    at = app(PAGE, runs="one")
    assert "details.json cannot be used" in texts(at) and "baseline.json cannot be" in texts(at)
    assert listed(at) == ["one"] and at.get("vega_lite_chart")


def test_the_baseline_comes_first_and_is_the_reference(app: Open, make: Make) -> None:
    make("old", [fabricate.row()], created="01T00:00:00")
    make("new", [fabricate.row()], created="03T00:00:00")
    make("other", [fabricate.row("im")], created="04T00:00:00")
    at = app(PAGE, runs="old")
    at.button(key="results_pin_old").click().run()
    assert at.multiselect(key="results_pick").options[0].startswith("Baseline")
    at.button(key="results_beside_baseline").click().run()
    assert at.query_params["results_runs"] == ["old", "new"]
    assert at.button(key="results_beside_baseline").disabled
    view(at, "Comparison")
    names = at.selectbox(key="results_a").value, at.selectbox(key="results_b").value
    assert names[0].startswith("ev · ") and names[1].endswith(" (baseline)")
    assert "(baseline)" not in names[0]
    at.button(key="results_pin_old").click().run()
    assert marks.baseline(settings.load().runs_dir) == ("", "")
    assert at.selectbox(key="results_b").value == "ev · 2026-01-01 00:00:00"  # of the older run


def test_deleting_is_asked_in_a_fold_of_its_own(app: Open, make: Make) -> None:
    run, other = make("one", [fabricate.row()]), make("two", [fabricate.row()])
    marks.pin(settings.load().runs_dir, "one")
    at = app(PAGE, runs=["one", "two"])
    fold = next(one for one in at.main.get("expander") if one.label == "Delete …")
    assert "Lost for good: its notes and 1 result" in fold.text[0].value
    assert not fold.proto.expanded
    fold.button[0].click().run()
    assert not run.folder.exists() and other.folder.exists()
    assert listed(at) == ["two"] and at.query_params["results_runs"] == "two"
    assert "Deleted the run" in texts(at) and "not found" not in texts(at)
    assert marks.baseline(settings.load().runs_dir)[0] == ""


def test_the_newest_run_follows_the_last_chosen_one_that_is_deleted(app: Open, make: Make) -> None:
    make("one", [fabricate.row()]), make("two", [fabricate.row()])
    at = app(PAGE, runs="two")
    at.button(key="results_delete_two").click().run()
    assert listed(at) == ["one"] and at.query_params["results_runs"] == "one"
    assert "Deleted the run" in texts(at)


def test_a_run_at_work_and_one_on_a_reachable_server_are_not_deleted(
    app: Open, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = settings.load().runs_dir / "one"
    with run_store.create(fabricate.header(("ev",), ("s0", "s1")), folder) as writer:
        writer.append(ResultRow.parse(fabricate.row()))
        assert app(PAGE, runs="one").button(key="results_delete_one").disabled
    monkeypatch.setattr("ui.widgets.dataset_picker.on_loopback", lambda: False)
    at = app(PAGE, runs="one")
    assert "Others can reach this server" in texts(at)
    assert not [one for one in at.button if one.key == "results_delete_one"]


def test_different_length_rules_begin_with_equal_lengths(app: Open, make: Make) -> None:
    make("free", fabricate.pair(2))
    short = {"gaps": [2.0] * 2, "prefill": 9.0}
    forced = [fabricate.row("im", f"s{n // 2}", **short) for n in range(4)]
    plan = Plan(("im",), ("s0", "s1"), decode=DecodeConfig(3, min_new_tokens=3))
    header = replace(fabricate.header(("im",), ("s0", "s1")), plan=plan)
    with run_store.create(header, settings.load().runs_dir / "forced") as writer:
        for row in forced[::2]:
            writer.append(ResultRow.parse(row))
        writer.finish({})
    at = app(PAGE, runs=["free", "forced"])
    assert at.segmented_control(key="results_lens").value == "first"
    assert "different length rules (" in texts(at) and "forced 3 tokens" in texts(at)
    (told,) = [rows for rows in tables(at) if rows[0][:2] == ["metric", "source"]][:1]
    totals = next(row[2:] for row in told if row[0] == "total (ms)")
    for label, words in zip(told[0][2:], totals, strict=True):  # of the same first tokens
        assert f"{label} {words.partition(' (')[0]} ms" in texts(at).partition("Median totals")[2]
    pick(at, "free")
    assert at.segmented_control(key="results_lens").value == "natural"  # the default again
    pick(at, "free", "forced")
    assert at.segmented_control(key="results_lens").value == "first"
    at = app(PAGE, runs=["free", "forced"], lens="Natural")
    assert at.segmented_control(key="results_lens").value == "natural"  # a link decides
    assert "choose First min(N) tokens" in texts(at)


def test_accuracy_is_shown_of_runs_with_choices_only(app: Open, make: Make) -> None:
    make("exam", fabricate.exam(32))
    at = app(PAGE, runs=["exam"], view="Quality")  # as a link has it
    assert "vl: 25.0% right on 32 questions of 8 sequences" in texts(at)
    chart = at.get("vega_lite_chart")[0].proto
    assert "95 % intervals" in chart.alt
    make("plain", fabricate.pair(3))
    at = app(PAGE, runs=["plain"], view="Quality")
    assert not at.exception and not at.get("vega_lite_chart")


def test_accuracy_without_a_known_answer_says_so(app: Open, make: Make) -> None:
    make("open", [fabricate.question(n, "A", right_letter=None) for n in range(8)])
    at = app(PAGE, runs=["open"], view="Quality")
    assert "No answer can be judged yet" in texts(at) and not at.get("vega_lite_chart")


def medians(at: AppTest) -> dict[tuple[str, str], set[str]]:
    """What the overview tells of each label and metric: in two tables and beside two charts."""
    found: dict[tuple[str, str], set[str]] = {}
    beside, *each = [rows for rows in tables(at) if rows[0][:2] == ["metric", "source"]]
    told = [
        (label, metric, words.partition(" (")[0])
        for metric, _, *cells in beside[1:]
        for label, words in zip(beside[0][2:], cells, strict=True)
    ]
    told += [(label, row[0], row[3]) for label, rows in zip(beside[0][2:], each, strict=True)
             for row in rows[1:]]  # fmt: skip
    _, stages, spread = [chart.proto.alt for chart in at.get("vega_lite_chart")]
    for label, parts in re.findall(r"(\w+): (load [^.]*[^:]*?)\.(?= |$)", stages):
        told += [(label, f"{name} (ms)", value) for name, value in
                 re.findall(r"(\w+) ([\d.,]+) ms", parts)]  # fmt: skip
    told += [(label, "total (ms)", value) for label, value in
             re.findall(r"(\w+): median ([\d.,]*\d)", spread)]  # fmt: skip
    for label, metric, value in told:
        found.setdefault((label, metric), set()).add(f"{float(value.replace(',', '')):g}")
    return found


def test_a_median_that_is_told_in_four_places_is_the_same(
    make: Make, app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    make("one", fabricate.pair(8))
    found = medians(app(PAGE, runs="one"))
    assert {("ev", "total (ms)"), ("vl", "vision (ms)")} <= set(found)
    assert {len(values) for values in found.values()} == {1}
    monkeypatch.setattr(overview, "number", lambda value: f"{value + 1:.3f}")  # a planted one
    assert {len(values) for values in medians(app(PAGE, runs="one")).values()} == {2}


def test_a_bundle_is_opened_and_a_changed_one_is_refused(app: Open, make: Make) -> None:
    run = make("one", fabricate.pair(2))
    data = bundle.zipped([run])
    shutil.rmtree(run.folder)
    at = app(PAGE)
    at.file_uploader(key="results_bundle").set_value(("b.zip", data, "application/zip")).run()
    name = at.query_params["results_runs"]
    assert name.startswith("bundle-") and run.id in texts(at) and not at.exception
    assert not (settings.load().runs_dir / name).exists()
    spoiled = io.BytesIO(data)
    with zipfile.ZipFile(spoiled, "a") as packed:
        packed.writestr("stagescope/more.txt", "x")
    again = app(PAGE)
    file = ("b.zip", spoiled.getvalue(), "application/zip")
    again.file_uploader(key="results_bundle").set_value(file).run()
    assert "'more.txt' was added" in texts(again) and "results_runs" not in again.query_params
