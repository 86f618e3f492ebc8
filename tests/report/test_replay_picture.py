"""The comparison as a picture, and its replay as one that moves: recorded times, whole texts."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image

from engine.errors import BadInput
from engine.quoting import printable
from engine.report import replay, replay_picture
from engine.report.replay import ReplayLane
from engine.report.replay_picture import LAST_MS, MOST_FRAMES, WIDTH, _svg, _wrap
from engine.storage.result_rows import ResultRow
from tests.report.test_drawers import EVIL
from tests.report.test_replay import lane
from tests.ui.answers import CACHED, result

pytestmark = pytest.mark.loads
ASKED, SAID = "Scene 1: What happens?", ["One was first", "12 ms less"]


def drawn(lanes: list[ReplayLane], at: float) -> ElementTree.Element:
    return ElementTree.fromstring(_svg(lanes, ASKED, SAID, at, ""))


def words(lanes: list[ReplayLane], at: float) -> list[str]:
    return [one.text or "" for one in drawn(lanes, at).iter() if one.tag.endswith("text")]


def widths(lanes: list[ReplayLane], at: float) -> list[float]:
    """Of the bars of stages, as shares of the longest run."""
    tracks = [one for one in drawn(lanes, at).iter() if one.get("height") == "12"]
    whole = float(tracks[0].get("width") or 0)
    return [float(one.get("width") or 0) / whole for one in tracks[1:]]


def test_at_its_end_a_run_has_its_total_and_its_whole_answer() -> None:
    said = words([lane(), replace(lane(), label="Two", total_ms=350.0)], 350.0)
    assert said[:3] == [ASKED, *SAID] and said.count("Because.") == 2
    assert "175 ms, 3 tokens" in said and "350 ms, 3 tokens" in said
    before = words([lane(), replace(lane(), label="Two", total_ms=350.0)], 349.0)  # the control
    assert "175 ms, 3 tokens" in before and "350 ms, 3 tokens" not in before
    assert before[0] == ASKED and SAID[0] not in before


def test_stages_and_words_are_those_of_the_moment() -> None:
    assert [text for text in words([lane()], 109.0) if text in "Because."] == ["Be"]
    assert [text for text in words([lane()], 110.0) if text in "Because."] == ["Because"]
    assert widths([lane()], 175.0) == pytest.approx([ms / 175 for ms in (10, 20, 40, 30, 70)])
    assert widths([lane()], 50.0) == pytest.approx([ms / 175 for ms in (10, 20, 20, 0, 0)])


def test_a_cached_time_is_never_shown_as_measured() -> None:
    cached = replay.lane("One", ResultRow.from_result(result(vision=CACHED)))
    assert cached is not None
    said = "vision 2.00 ms (read from the cache; when computed: 40.0 ms)"
    assert said in words([cached], 175.0)
    assert not any("cache" in text for text in words([lane()], 175.0))  # the control


def test_what_a_model_says_is_text() -> None:
    evil = replace(lane(), label=printable(EVIL), pieces=((100.0, printable(EVIL)),))
    tags = {one.tag.rpartition("}")[2] for one in drawn([evil], 175.0).iter()}
    assert tags == {"svg", "rect", "text"}


@pytest.mark.parametrize("text", ["one two " * 60, "x" * 500, "a\n\nb", "日本語 " * 80, ""])
def test_lines_hold_the_whole_text_in_its_order(text: str) -> None:
    lines = list(_wrap(text, "text", 0.0, 0.0))
    assert "".join(one.text for one in lines).replace(" ", "") == "".join(text.split())
    assert all(text[one.start :].startswith(one.text) for one in lines)
    assert [one.y for one in lines] == sorted(one.y for one in lines)


def test_a_text_without_end_is_cut_and_says_so() -> None:
    *_, last = lines = list(_wrap("word " * 5000, "text", 0.0, 0.0))
    assert len(lines) == replay_picture.MOST_LINES and last.text.endswith(" …")


def test_the_animation_ends_with_the_picture_and_lasts_as_long_as_the_runs() -> None:
    lanes = [replace(lane(), total_ms=4000.0)]
    moving: Any = Image.open(BytesIO(replay_picture.animation(lanes, ASKED, SAID)))
    assert moving.format == "WEBP" and 3 < moving.n_frames <= MOST_FRAMES + 1
    times = []
    for number in range(moving.n_frames):
        moving.seek(number)
        moving.load()
        times.append(moving.info["timestamp"] + moving.info["duration"])
    assert times[-1] == 4000 + LAST_MS
    still = Image.open(BytesIO(replay_picture.picture(lanes, ASKED, SAID)))
    assert still.format == "PNG" and still.width == moving.width == WIDTH


def test_a_short_run_is_slowed_down_and_says_by_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = []

    def svg(*given: Any) -> str:
        clocks.append(given[-1])
        return _svg(*given)

    monkeypatch.setattr(replay_picture, "_svg", svg)
    replay_picture.animation([lane()], ASKED, SAID)
    assert clocks[-1] == "175 ms at 0.1x" and "0.1x" in replay.SPEEDS


def test_a_picture_that_cannot_be_drawn_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_picture, "_DRAW", "raise ValueError('no letters')")
    with pytest.raises(BadInput, match=r"^The picture cannot be drawn \(ValueError: no letters\)"):
        replay_picture.picture([lane()], ASKED, SAID)
