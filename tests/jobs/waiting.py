"""Waiting for a job that a worker does."""

import time
from collections.abc import Callable
from typing import Any


def wait(job: Any, until: Callable[[Any], bool] = lambda view: view.ended) -> Any:
    """The job's view, or the job if it has none, once it is so; by default, once it has ended."""
    end, look = time.monotonic() + 60, getattr(job, "view", lambda: job)
    while not until(view := look()):
        assert time.monotonic() < end, view
        time.sleep(0.002)
    return view
