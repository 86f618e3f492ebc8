"""The tab "What each model saw" on the Compare page."""

import pytest
from streamlit.testing.v1 import AppTest

from engine import settings
from engine.errors import MediaError
from engine.types import Sample
from engine.viewing import playing, seen_times
from tests.pages.conftest import Open
from tests.pages.reading import captions, texts
from ui.compare import recording_view
from ui.compare.compare_tabs import SEEN


def markup(at: AppTest) -> str:
    bodies = [str(element.proto.body) for element in at.get("html")]
    return "".join(body for body in bodies if '<div class="seen"' in body)


def windows(at: AppTest) -> list[str]:
    return [slider.label for slider in at.slider if slider.key == recording_view.MOMENT]


def test_nothing_is_read_before_the_tab_opens(app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def refuse(sample: Sample, *_: object) -> None:
        read.append(sample.id)
        raise MediaError("Not now.")

    monkeypatch.setattr(seen_times, "timeline", refuse)
    monkeypatch.setattr(playing, "playable", refuse)
    at = app()
    assert SEEN in [tab.label for tab in at.tabs]
    assert not markup(at) and not at.get("video") and not read
    assert "Not now." in texts(app(tab=SEEN)) and len(read) == 2  # control


def test_the_time_line_the_clip_and_the_events(app: Open) -> None:
    at = app(tab=SEEN)
    assert not at.exception
    text = markup(at)
    assert text.count('tabindex="0"') == 5 + 8 + 1
    assert "Frame 12 of 20: 600,000 µs" in text and "Event image 5 of 5" in text
    assert seen_times.SAME_IMAGES in texts(at)
    assert len(at.get("video")) == 1
    assert "0.0 to 20.0 ms" in captions(at)


def test_another_moment_and_length_draw_another_window(app: Open) -> None:
    at = app(tab=SEEN)
    first = [words for words in captions(at).splitlines() if "brighter (red)" in words]
    slider = at.slider(key=recording_view.MOMENT)
    slider.set_value(slider.max / 2).run()
    second = [words for words in captions(at).splitlines() if "brighter (red)" in words]
    assert len(first) == len(second) == 1 and first != second
    at.selectbox(key=recording_view.LENGTH).select("1000").run()
    assert not at.exception and not windows(at)
    assert "whole recording" in captions(at)


def test_broken_files_are_sentences_and_the_page_goes_on(app: Open) -> None:
    at = app()
    root = settings.load().demo_dir
    for pattern in ("event_npy/*/*.npy", "mp4/*/*.mp4", "video/*/*/*.png"):
        for path in root.glob(pattern):
            path.unlink()
            path.write_bytes(b"odd" * 500)
    at = app(tab=SEEN)
    assert not at.exception
    assert "odd" not in markup(at) and "Event image 1 of 5: time unknown" in markup(at)
    assert "000000.npy" in texts(at) and "000000.mp4" in texts(at)
    assert not at.get("video") and not windows(at)
    assert not at.button(key="compare_run").disabled
