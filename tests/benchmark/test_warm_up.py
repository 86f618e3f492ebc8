"""What a dataset run asks before it measures, without a model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from engine.benchmark.execute import RunSession
from engine.storage.plan import Plan, Task


def test_each_warm_up_is_a_whole_batch_and_goes_round_the_samples() -> None:
    asked: list[list[Task]] = []
    session: Any = SimpleNamespace(
        plan=Plan(("m",), ("s0", "s1", "s2", "s3", "s4"), warmup=3, batch=4),
        done=set(),
        task_executor=SimpleNamespace(missing=lambda task: ""),
        _ask=lambda tasks, _: asked.append(tasks),
    )
    RunSession._warm_up(session, "m", None)  # type: ignore[arg-type]
    assert [[task.sample for task in tasks] for tasks in asked] == [
        ["s0", "s1", "s2", "s3"],
        ["s4", "s0", "s1", "s2"],
        ["s3", "s4", "s0", "s1"],
    ]
    assert [task.repeat for tasks in asked for task in tasks] == list(range(12))
