"""The replay: recorded times, cached stages that say so, and nothing that runs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from msgspec import structs

from engine.palette import DECODE_COLOURS, STAGE_COLOURS
from engine.report import replay
from engine.report.replay import ReplayLane
from engine.storage.result_rows import ResultRow
from tests import fabricate
from tests.report.test_drawers import EVIL, read
from tests.ui.answers import CACHED, result

pytestmark = pytest.mark.loads

AT = re.compile(r'class="at" style="--at:([0-9.]+)">([^<]*)<')


def row(**changes: object) -> ResultRow:
    """Tokens "Be", "cause" and "." at 100, 110 and 120 ms."""
    return structs.replace(ResultRow.from_result(result()), **{"text_ends": (2, 7, 8)} | changes)


def lane(**changes: object) -> ReplayLane:
    found = replay.lane("One", row(**changes))
    assert found is not None
    return found


def test_each_token_has_its_recorded_time_and_its_text() -> None:
    found = lane()
    assert found.pieces == ((100.0, "Be"), (110.0, "cause"), (120.0, "."))
    assert "".join(text for _, text in found.pieces) == "Because."
    assert [(name, span.start_ms, span.ms) for name, span in found.stages] == [
        ("load", 0, 10), ("preprocess", 10, 20), ("vision", 30, 40), ("prefill", 70, 30),
        ("steps", 100, 70),
    ]  # fmt: skip
    assert (found.total_ms, found.tokens, found.notes) == (175.0, 3, ())
    assert [name for name, _ in lane(prefill=None).stages][-1] == "decode"  # of an older row


def test_parts_have_the_colours_of_the_stage_bars() -> None:
    drawn = replay.section([lane()])
    for colour in (*DECODE_COLOURS.values(),)[:2]:
        assert f"background:{colour}" in drawn
    assert f"background:{STAGE_COLOURS['decode']}" not in drawn  # control: of undivided decode


def test_a_cached_stage_plays_at_its_cached_time_and_says_so() -> None:
    found = replay.lane("One", ResultRow.from_result(result(vision=CACHED)))
    assert found is not None
    assert (found.stages[2][1].start_ms, found.stages[2][1].ms) == (30, 2.0)
    assert "vision 2.00 ms (read from the cache; when computed: 40.0 ms)" in replay.section([found])
    assert ">vision 40.0 ms<" in replay.section([lane()])  # control


def test_a_row_without_the_text_of_its_tokens_shows_it_with_the_last_one() -> None:
    for ends in ((), (2, 8)):
        found = lane(text_ends=ends)
        assert found.pieces == ((120.0, "Because."),) and found.notes == (replay.NO_TEXT_TIMES,)
    for ends in ((9, 99, 3), (5, 2, 8)):  # of a damaged row
        assert "".join(text for _, text in lane(text_ends=ends).pieces) == "Because."
    noted = replay.lane("One", row(), "median run of 5")
    assert noted is not None and noted.notes == ("median run of 5",)
    cold = replay.lane("One", ResultRow.from_result(result(cold=True)))
    assert cold is not None and replay.COLD in cold.notes


def test_a_failure_and_a_sample_of_a_batch_have_no_replay() -> None:
    rows = fabricate.parsed([fabricate.failed(), *fabricate.batch(["a", "b"])])
    assert [replay.lane("One", one) for one in rows] == [None, None, None]
    (single,) = fabricate.parsed([fabricate.row()])
    assert replay.lane("One", single) is not None  # control


def test_the_section_has_every_event_at_its_time() -> None:
    events = [(float(at), text) for at, text in AT.findall(replay.section([lane()]))]
    assert (100.0, "Be") in events and (10.0, "load 10.0 ms") in events
    assert (175.0, "175 ms · 3 tokens") in events


def test_nothing_runs_and_what_a_model_says_is_text() -> None:
    evil = replace(lane(), label=EVIL, pieces=((1.0, EVIL),))
    html = replay.section([evil])
    found = read(html)
    assert not {"script", "img", "svg", "iframe", "link", "form"} & set(found.tags)
    assert not [name for name, _ in found.attributes if name.startswith("on") or name == "src"]
    assert EVIL in found.words
    assert "://" not in html and "url(" not in html


def test_long_answers_appear_in_groups_and_never_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MOST_PIECES", 3)
    html = replay.section([lane(), lane()])
    assert AT.findall(html).count(("110.000", "Because")) == 2
    assert AT.findall(html).count(("120.000", ".")) == 2
    assert replay.GROUPED.format(2) in html
    assert "appear together" not in replay.section([lane()])  # control
