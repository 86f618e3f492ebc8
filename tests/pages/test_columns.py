"""Variants and up to six columns on the pages, over tiny checkpoints."""

from streamlit.testing.v1 import AppTest

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


def test_variants_are_chosen_on_verify(app: Open) -> None:
    at = app("pages/verify.py", models=["Tiny llava · shown events"])
    assert names(at, "verify") == ["tiny-llava@events"]
    add(at, "Tiny llava · shown video", "verify")
    assert names(at, "verify") == ["tiny-llava@events", "tiny-llava@video"]
    assert not at.exception
