"""The facts of a card as HTML, and what a job says of itself."""

import threading

import pytest

from engine.jobs.model_work import ModelJob
from tests.report.test_card_rows import ENTRY
from ui.models import memory_view

SLY = '<img src=x onerror="1">'


def test_facts_let_nothing_in_and_break_paths_at_slashes() -> None:
    html = memory_view.facts([("From", f"/a/b{SLY}"), (SLY, "1")], SLY)
    assert "<img" not in html and html.count("&lt;img") == 3
    assert "<dd>/<wbr>a/<wbr>b&lt;img" in html


CANCEL = threading.Event()
CANCEL.set()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "Loading … 3 s"),
        (
            {"step": "hash", "progress": (2**30, 2**31)},
            "Loading: 1.0 GiB of 2.0 GiB read for the hash … 3 s",
        ),
        ({"step": "weights", "progress": (7, 1200)}, "Loading: 7 of 1,200 weights … 3 s"),
        ({"_cancel": CANCEL}, "Cancelling … 3 s"),
        ({"action": "unload"}, "Unloading … 3 s"),
    ],
)
def test_what_a_job_does_now(changes: dict[str, object], words: str) -> None:
    started = {"entry": ENTRY, "state": "loading", "_started": 1.0, "_ended": 4.4}
    assert memory_view.doing(ModelJob(**started | changes)) == words
