"""Reports the progress of hashing or loading a checkpoint.

Boundary: one context variable.  The code that reads a checkpoint calls `report`; a job listens;
the code between them does not pass anything on.  A listener may raise Cancelled, which stops the
reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

Step = Literal["hash", "weights"]
Listener = Callable[[Step, int, int], None]  # (step, amount done, total amount)


def _no_listener(step: Step, done: int, total: int) -> None: ...


_listener: ContextVar[Listener] = ContextVar("listener", default=_no_listener)


@contextmanager
def reported_to(listener: Listener) -> Iterator[None]:
    """Sends every report of this thread to the listener inside the `with`."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def report(step: Step, done: int, total: int) -> None:
    """Reports progress: bytes hashed, or weights loaded, out of `total`."""
    _listener.get()(step, done, total)
