"""What a card says about a job and its result."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ui.answers import result, view
from ui.compare import cards


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"position": 1}, "Queued: 1 job ahead"),
        ({"position": 2}, "Queued: 2 jobs ahead"),
        ({"position": 0}, "Queued: next"),
        ({"state": "loading"}, "Loading the model …"),
        ({"state": "running", "stage": "vision"}, "Running: vision …"),
        (
            {"state": "running", "stage": "compile", "stopping": True},
            "Cancelling: compiling cannot be interrupted. A new run waits until it ends.",
        ),
        (
            {"state": "loading", "stopping": True},
            "Cancelling: loading cannot be interrupted. A new run waits until it ends.",
        ),
        ({"state": "running", "stage": "decode", "stopping": True}, "Cancelling …"),
        ({"state": "done", "result": result()}, "Done"),
        ({"state": "failed"}, "Failed"),
        ({"state": "cancelled", "repeat": 5, "repeats": 5}, "Cancelled"),
    ],
)
def test_the_status_says_where_a_job_is(changes: dict[str, Any], words: str) -> None:
    assert cards.status(view(**changes)) == words


def test_a_streaming_job_shows_its_count_and_no_rate_before_the_second_token() -> None:
    one = view(state="running", new_tokens=1, ttft_ms=80.0)
    assert cards.status(one) == "1 token · first after 80.0 ms"
    more = view(state="running", new_tokens=9, ttft_ms=80.0, tokens_per_s=55.5)
    assert cards.status(more) == "9 tokens · first after 80.0 ms · 55.5 tok/s"
