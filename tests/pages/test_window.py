"""Window, split and perturbation on the Compare page, through AppTest."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.viewing import seen_times
from tests.pages.conftest import Open
from tests.pages.reading import badges, press_run, results, texts
from ui.compare.compare_tabs import SEEN

pytestmark = pytest.mark.loads
Recorded = Callable[..., dict[str, str]]
SHORT = {"tokens": "5", "models": "Tiny eventgpt"}


def test_a_clip_says_that_the_window_does_not_cut_it(app: Open) -> None:
    at = press_run(app(tokens="5", models="Tiny video_llava", part="10ms+40ms"))
    assert "The window 10ms+40ms cuts raw events only. Shown: " in texts(at)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """A dataset with one recording of raw events alone; the link that opens it."""
    monkeypatch.setenv("STAGESCOPE_DATASETS", str(tmp_path))

    def made(seconds: float = 2) -> dict[str, str]:
        (tmp_path / "event_npy").mkdir()
        rng = np.random.default_rng(0)
        table = {"x": rng.integers(0, 60, 5_000), "y": rng.integers(0, 40, 5_000)}
        times = np.sort(rng.integers(0, int(seconds * 1e6), 5_000))
        times[[0, -1]] = 0, int(seconds * 1e6) - 1
        table |= {"t": times, "p": rng.integers(0, 2, 5_000)}
        file = tmp_path / "event_npy" / "a.npy"
        np.save(file, np.array(table, dtype=object), allow_pickle=True)
        index = tmp_path / "EventGPT_Instruction_Subset.json"
        index.write_text('[{"event_data": "a.npy"}]')
        return {"root": str(tmp_path), **SHORT, "tab": SEEN}

    return made


def charts(at: AppTest) -> list[str]:
    """The words of the event rate charts."""
    found = [element.proto.alt for element in at.get("vega_lite_chart")]
    return [words for words in found if words.startswith("Events per second")]


@pytest.fixture
def rates_read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    read, rates = list[Path](), seen_times.rates

    def noted(path: Path) -> seen_times.EventRates:
        read.append(path)
        return rates(path)

    monkeypatch.setattr(seen_times, "rates", noted)
    return read


def test_a_long_recording_has_a_chart_of_its_events_and_is_counted_once(
    app: Open, recorded: Recorded, rates_read: list[Path]
) -> None:
    at = app(**recorded())
    (words,) = charts(at)
    assert "over the 2s of the recording" in words and "no window is chosen" in words
    assert "5,000 events in 2s; all of them are shown." in texts(at)
    at.text_input(key="compare_part").set_value("500ms+250ms").run()
    (words,) = charts(at)
    assert "the window 500ms+250ms is marked" in words and len(rates_read) == 1
    slider = at.slider(key="compare_rates_ends")
    assert slider.value == (500, 750)
    slider.set_value((1000.0, 1200.0)).run()
    assert at.text_input(key="compare_part").value == "1s+200ms" and "1s+200ms" in charts(at)[0]
    at.slider(key="compare_rates_ends").set_value((2000.0, 2000.0)).run()  # both at the end
    assert at.text_input(key="compare_part").value == "1.998s+2ms"
    at.slider(key="compare_rates_ends").set_value((0.0, 2000.0)).run()
    assert at.text_input(key="compare_part").value == "" and "no window" in charts(at)[0]
    assert not at.exception


def test_a_short_recording_has_a_chart_only_with_a_window(app: Open, recorded: Recorded) -> None:
    link = recorded(seconds=0.05)
    assert not charts(app(**link))
    assert "over the 50ms of the recording" in charts(app(**link, part="10ms+20ms"))[0]


def test_event_images_are_counted_when_the_tab_opens(app: Open, rates_read: list[Path]) -> None:
    assert not charts(app(**SHORT)) and not rates_read
    assert len(charts(app(**SHORT, tab=SEEN))) == 1 and len(rates_read) == 1


def test_no_chart_without_a_model_that_is_shown_events(app: Open) -> None:
    assert not charts(app(models="Tiny llava", tab=SEEN))


def test_an_unreadable_recording_is_said(app: Open, recorded: Recorded, tmp_path: Path) -> None:
    link = recorded()
    (tmp_path / "event_npy" / "a.npy").write_bytes(b"odd" * 500)
    at = app(**link)
    assert not charts(at) and "a.npy is refused" in texts(at)


@pytest.mark.parametrize(("extent", "words"), [("Per slice", "slice"), ("Common", "stream")])
def test_the_extent_of_event_pictures_reaches_run_and_page(
    app: Open, recorded: Recorded, extent: str, words: str
) -> None:
    at = press_run(app(**recorded(), extent=extent))
    assert f"(sized by {words})" in results(at)[0].result.shown
    assert f"5 slices (sized by {words})" in texts(at)
    assert ("event pictures sized by stream" in badges(at)) == (words == "stream")
