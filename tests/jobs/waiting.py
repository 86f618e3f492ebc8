"""Waiting for a job that a worker does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def wait(job: Any, until: Callable[[Any], bool] = lambda view: view.ended) -> Any:
    """The job's view, once it is so; by default, once it has ended."""
    end = time.monotonic() + 60
    while not until(view := job.view()):
        assert time.monotonic() < end, view
        time.sleep(0.002)
    return view
