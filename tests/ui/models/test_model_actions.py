"""What a job says of itself, and that nobody starts a second one for the same model."""

import threading
from collections.abc import Iterator

import pytest

from engine.jobs import queue as jobs
from engine.jobs.model_jobs import ModelJob
from engine.jobs.queue import Jobs
from tests.report.test_card_rows import ENTRY
from ui.models import model_actions

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
    assert model_actions.doing(ModelJob(**started | changes)) == words


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    """A queue whose worker never starts."""
    found = Jobs()
    monkeypatch.setattr(found, "_start", lambda: None)
    monkeypatch.setattr(jobs, "manager", lambda: found)
    yield found
