"""The page of published files, through AppTest: brought, judged, corrected, kept."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from engine.published.read import imported_sets
from tests.pages.conftest import Open
from tests.pages.reading import html, markup, texts
from tests.published.read import synthetic as made
from ui.published import opened_sets

PAGE = "pages/published.py"
JSON = "application/json"
SIGN = "<img src=x onerror=alert(1)> **bold** [x](http://e)"


def drop(at: AppTest, *files: tuple[str, bytes]) -> AppTest:
    at.file_uploader[0].set_value([(name, data, JSON) for name, data in files]).run()
    assert not at.exception
    return at


def view(at: AppTest, name: str, switch: str = "view") -> AppTest:
    at.segmented_control(key=f"published_{switch}").set_value(name).run()
    assert not at.exception
    return at


def keep(name: str = "original") -> None:
    files = [(f"{letter}.json", made.to_bytes(value)) for letter, value in made.EVERY.items()]
    imported_sets.save(name, files)


@pytest.fixture
def opened(app: Open) -> AppTest:
    """The kept set of one file of every group, opened by its link."""
    keep()
    return app(PAGE, sets="original")


def test_dropped_files_are_listed_and_judged(app: Open) -> None:
    at = drop(
        app(PAGE),
        ("../../x.json", made.to_bytes(made.legacy())),
        ("bad.json", b'{"results": ['),
        ("other.json", b'{"a": 1}'),
    )
    assert "Files of this visit: 3 files, without a link." in texts(at)
    assert "1 file read into this visit." in texts(at)
    assert "2 files cannot be used: bad.json, other.json. See Files and" in texts(at)
    page = html(at)
    assert "x.json" in page and ".." not in page.split("<table", 1)[1]
    assert "not usable" in page and "B 4stage" in page
    assert "bad.json is not JSON" in texts(at) and "(keys 'a'" in texts(at)
    assert any("The prompt is counted as output." in one.label for one in at.expander)


def test_a_file_that_cannot_be_read_is_not_said_to_be(app: Open) -> None:
    at = drop(app(PAGE), ("bad.json", b'{"results": ['))
    assert "1 file cannot be used: bad.json. See Files and findings for the reasons." in texts(at)
    assert "read into this visit" not in texts(at)
    at = drop(at, ("a.json", made.to_bytes(made.flat())))
    assert "1 file read into this visit." in texts(at) and "1 file cannot" not in texts(at)


def test_what_no_link_can_reopen_is_not_in_the_url(app: Open) -> None:
    at = drop(app(PAGE), ("b.json", made.to_bytes(made.legacy())))
    assert "published_sets" not in at.query_params
    view(at, "corrected", "values")
    at.session_state["published_rule_prompt_counted"] = True
    at.run()
    at.toggle(key="published_show_0.1").set_value(True).run()
    assert "tokens_recorded" in html(at) and "published_show_0.1" not in at.query_params
    at.toggle(key="published_show_0.1").set_value(False).run()
    assert "tokens_recorded" not in html(at) and not at.exception
    view(at, "figures")
    at.selectbox(key="published_file").set_value("b.json").run()
    assert not {"published_sets", "published_show_0.1", "published_file"} & set(at.query_params)


def test_a_finding_opens_its_records(opened: AppTest) -> None:
    at = opened
    at.query_params["published_show_1.1"] = "true"
    at.run()
    assert "the prompt is counted as output" in texts(at) and "Correction: " in texts(at)
    assert "tokens_recorded" in html(at)
    table = at.dataframe[0].value
    assert list(table["tokens, recorded"]) == [617] * 4 and "where" in table
    at.toggle(key="published_show_1.1").set_value(False).run()
    assert len(at.dataframe) == 0


def test_every_record_is_there_on_request(opened: AppTest) -> None:
    at = view(opened, "figures")
    assert len(at.dataframe) == 0
    at.toggle(key="published_records").set_value(True).run()
    assert len(at.dataframe[0].value) == 8


def test_acceptance_stands_beside_chance_and_the_files_own_figure(opened: AppTest) -> None:
    at = view(opened, "drafts")
    at.selectbox(key="drafts_of").set_value("D.json").run()
    options = at.selectbox(key="drafts_variant").options
    assert "draft for target, as it is" in options  # no other file's names
    for column in ("position match", "shuffled", "W at g = 5", "ceiling", "predicted speed-up"):
        assert column in html(at)
    assert "stated" in html(at)
    at.slider(key="drafts_length").set_value(3).run()
    assert "W at g = 3" in html(at) and not at.exception


def test_the_switch_reaches_the_files_own_figures(app: Open) -> None:
    value = made.legacy()
    value["speculative_decoding"]["acceptance_rate"] = 0.04
    for index, row in enumerate(value["videollava_results"]):
        row["token_ids"] = [*made.PROMPT, *made.ids(2 * index, 11), *made.ids(99, 9)]
    at = view(drop(app(PAGE), ("b.json", made.to_bytes(value))), "drafts")
    table = html(at).split("Stated acceptance beside", 1)[1]
    assert "100.0%" in table.split("</table>", 1)[0]
    view(at, "recorded", "values")
    table = html(at).split("Stated acceptance beside", 1)[1]
    assert "100.0%" not in table.split("</table>", 1)[0]


def test_what_is_recorded_compares_with_the_prompt(opened: AppTest) -> None:
    at = view(opened, "drafts")
    at.selectbox(key="drafts_of").set_value("B.json").run()
    assert len(at.selectbox(key="drafts_variant").options) == 2
    before = html(at).split("Acceptance by token ids", 1)[1]
    view(at, "recorded", "values")
    assert html(at).split("Acceptance by token ids", 1)[1] != before
    assert len(at.selectbox(key="drafts_variant").options) == 1


def test_the_three_claims_stand_beside_what_the_records_say(opened: AppTest) -> None:
    at = view(opened, "claims")
    heads = [one.value.replace("\\", "") for one in at.subheader]
    assert len(heads) == 3 and "3.3x" in heads[0] and "1.9x" in heads[1] and "8x" in heads[2]
    assert texts(at).count("within 10 %") >= 3
    assert len(at.get("vega_lite_chart")) == 3


def test_reports_are_offered_with_their_command(opened: AppTest) -> None:
    at = view(opened, "report")
    labels = [one.proto.label for one in at.get("download_button")]
    assert labels == ["Report, one HTML file", "Report, Markdown"]
    assert "report --imported original --format html" in at.code[0].value


def test_texts_of_a_file_are_never_markup(app: Open) -> None:
    rows = made.flat()
    for row in rows:
        row["id"] = row["query"] = SIGN
        row["egpt"] = row["llava-1.5-7b-hf"] = f"{SIGN} " * 10
    value = made.failed()
    value["errors"][0]["egpt_error"] = SIGN
    at = drop(app(PAGE), (f"{SIGN}.json", made.to_bytes(rows)), ("f.json", made.to_bytes(value)))
    for name in ("findings", "figures", "drafts", "claims"):
        view(at, name)
        assert "<img" not in markup(at) and "<img" not in "".join(one.value for one in at.markdown)
        assert not any("**bold**" in one.value for one in (*at.markdown, *at.caption))


def test_files_of_a_visit_are_kept_as_a_set_and_forgotten(app: Open) -> None:
    at = drop(app(PAGE), ("a.json", made.to_bytes(made.flat())), ("bad.json", b"no"))
    assert "2 files, without a link" in texts(at)
    at.text_input(key="published_import_name").set_value("../x")
    at.button(key="published_keep").click().run()
    assert "cannot name a set" in texts(at) and imported_sets.names() == ()
    at.text_input(key="published_import_name").set_value("mine")
    at.button(key="published_keep").click().run()
    assert imported_sets.names() == ("mine",) and at.query_params["published_sets"] == "mine"
    assert [file.name for file in imported_sets.load("mine")] == ["a.json"]
    assert "Files of this visit" not in texts(at)
    at.button(key="published_delete_mine").click().run()
    assert imported_sets.names() == () and not at.exception


def test_a_folder_is_read_and_a_wrong_one_is_one_sentence(app: Open, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    at = app(PAGE)
    for path, told in ((folder, "holds no .json file"), (tmp_path / "none", "No such file")):
        at.text_input(key="published_import_folder").set_value(str(path))
        at.button(key="published_import_read").click().run()
        assert told in texts(at) and not at.exception
    (folder / "a.json").write_bytes(made.to_bytes(made.flat()))
    (folder / "b.json").write_text("no")
    at.text_input(key="published_import_folder").set_value(str(folder))
    at.button(key="published_import_read").click().run()
    assert "2 files, without a link" in texts(at) and "b.json is not JSON" in texts(at)


def test_a_public_server_reads_no_folder(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened_sets, "on_loopback", lambda: False)
    at = app(PAGE)
    assert not any(one.key == "published_import_folder" for one in at.text_input)
    assert len(at.file_uploader) == 1


def test_a_link_to_a_set_that_is_gone_says_so(app: Open) -> None:
    keep("elsewhere")
    at = app(PAGE, sets=["gone"])
    assert "set of published files 'gone' in the link is not available here" in texts(at)
    assert at.multiselect(key="published_sets").options == ["elsewhere"]
    assert "'../../etc' in the link" in texts(app(PAGE, sets="../../etc"))


def test_a_set_that_another_visitor_deletes_is_no_longer_open(opened: AppTest) -> None:
    imported_sets.delete("original")
    assert "Import result files" in texts(opened.run()) and not opened.exception


def test_a_claim_lists_the_files_that_say_nothing(opened: AppTest) -> None:
    at = view(opened, "claims")
    assert texts(at).count("Files without evidence") == 3
    assert "the run failed: there is no result" in texts(at) and "no rows of EventGPT" in texts(at)


def test_records_of_one_clip_are_said_to_be(opened: AppTest) -> None:
    at = view(opened, "figures")
    at.selectbox(key="published_file").set_value("G.json").run()
    assert "4 records of 1 clip" in texts(at)
    at.selectbox(key="published_file").set_value("D.json").run()
    assert "4 samples" in texts(at)
