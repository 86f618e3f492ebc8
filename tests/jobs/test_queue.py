"""The queue: order, positions, cancelling, giving way, and failures that stay their own."""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pytest

from engine.errors import BadInput
from engine.jobs import queue as jobs
from engine.jobs.queue import Job


@dataclass(eq=False, kw_only=True)
class Task(Job):
    """Work that a test holds and lets go."""

    name: str = "task"
    work_: Callable[[Job], None] = lambda _: None

    @property
    def title(self) -> str:
        return self.name

    def run(self) -> None:
        self.state = "running"
        self.work_(self)
        self.state = "done"


class Brief(Task):
    brief: ClassVar[bool] = True


def finished(*tasks: Job) -> None:
    end = time.monotonic() + 20
    while not all(task.ended for task in tasks):
        assert time.monotonic() < end, tasks
        time.sleep(0.002)


def test_a_waiting_job_has_its_position_and_may_be_cancelled_before_it_starts() -> None:
    queue, hold = jobs.Jobs(), threading.Event()
    first, second, third = tasks = Task(work_=lambda _: hold.wait(20)), Task(), Task()
    for task in tasks:
        queue.submit(task)
    while first.state != "running":
        time.sleep(0.002)
    assert [task.position for task in tasks] == [0, 1, 2]
    second.cancel()
    assert second.state == "cancelled" and "before it started" in second.error
    assert not first.stopping
    first.cancel()
    assert first.stopping and not first.ended and second.ended and not second.stopping
    hold.set()
    finished(third)
    assert not first.stopping and third.state == "done"


def test_who_sees_the_end_sees_its_reason_as_well() -> None:
    """The state is set last: a view in between would be drawn as an end without a reason."""
    seen: list[tuple[str, str]] = []

    class Watched(Task):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            seen.append((self.state, self.error)) if name in ("state", "failure") else None

    task = Watched()
    task.cancel()
    task.work()
    assert seen[-1] == ("cancelled", task.error) and task.error
    assert all(error for state, error in seen if state in jobs.ENDED)


def test_a_long_job_gives_way_to_brief_ones_only() -> None:
    queue, log = jobs.Jobs(), list[str]()
    brief, other = Brief(name="brief"), Task(name="other")
    brief.work_ = other.work_ = lambda job: log.append(job.title)

    def between(job: Job) -> None:
        queue.submit(other)
        queue.submit(brief)
        assert job.give_way() > 0
        assert brief.state == "done" and other.position == 1
        assert job.give_way() == 0
        log.append("long")

    long = Task(work_=between)
    queue.submit(long)
    finished(long, other)
    assert (long.state, log) == ("done", ["brief", "long", "other"])


def test_a_failure_is_the_jobs_and_the_worker_lives(caplog: pytest.LogCaptureFixture) -> None:
    def odd(job: Job) -> None:
        raise ZeroDivisionError("odd")

    def bad(job: Job) -> None:
        raise BadInput("x is 0: choose 1.")

    queue = jobs.Jobs()
    tasks = [Task(name="one", work_=odd), Task(work_=bad), Task()]
    for task in tasks:
        queue.submit(task)
    finished(*tasks)
    assert [task.state for task in tasks] == ["failed", "failed", "done"]
    assert tasks[0].error == "one failed with ZeroDivisionError: odd"
    assert tasks[1].error == "x is 0: choose 1."
    assert "ZeroDivisionError" in caplog.text


def test_old_jobs_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "KEPT", 1)
    queue = jobs.Jobs()
    tasks = [Task() for _ in range(4)]
    for task in tasks:
        queue.submit(task)
        finished(task)
    assert queue.get(tasks[0].id) is None and queue.get(tasks[-1].id) is tasks[-1]


def test_ids_of_jobs_cannot_be_guessed() -> None:
    """12 hex digits of a random UUID: 48 bits."""
    found = {Task().id for _ in range(100)}
    assert len(found) == 100 and all(re.fullmatch("[0-9a-f]{12}", one) for one in found)
