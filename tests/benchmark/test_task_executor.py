"""Dataset runs in batches: what runs together, what does not fit, what a failure costs."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.benchmark import task_executor
from engine.machine import device
from engine.machine.device import Memory
from engine.models import registry
from engine.storage import run_store
from engine.storage.result_rows import Standing
from engine.storage.run_store import Run
from engine.types import DecodeConfig, RunResult
from tests import recordings
from tests.benchmark import test_execute
from tests.benchmark.test_execute import AfterTokens, Go, Looks, go_on, start
from tests.benchmark.test_execute import rows as rows_of

pytestmark = pytest.mark.loads

go = test_execute.go
COUNT = 7
MODEL = "tiny-llava"


@pytest.fixture
def root(tmp_path: Path, tiny_models: Path) -> Path:
    return recordings.root(tmp_path / "root", COUNT)


def sizes(run: Run, phase: str = "measured") -> list[int]:
    return [row["batch"] for row in rows_of(run, phase) if not row["error"]]


def answers(run: Run) -> dict[tuple[str, str], list[int]]:
    found = [row for row in rows_of(run) if not row["error"]]
    return {(row["model"], row["sample"]): row["token_ids"] for row in found}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A model whose device has no memory for prompts of more than so many samples."""

    def plant(most: int, model: str = MODEL) -> list[int]:
        seen: list[int] = []
        inner = registry.load(registry.entry(model)).decoder.language_model
        forward = inner.forward

        def full(*args: Any, **inputs: Any) -> Any:
            if (embeds := inputs.get("inputs_embeds")) is not None:
                seen.append(len(embeds))
                if len(embeds) > most:
                    raise torch.OutOfMemoryError("CUDA out of memory")
            return forward(*args, **inputs)

        monkeypatch.setattr(inner, "forward", full)
        return seen

    return plant


def test_halving_keeps_the_answers(go: Go, small: Any) -> None:
    single = go(name="single")
    small(2)
    assert answers(go(batch=8)) == answers(single)


def test_a_sample_too_large_by_itself_is_a_row_with_its_reason(go: Go, small: Any) -> None:
    small(0)
    found = rows_of(go(batch=4, warmup=0, stop_after=100))
    assert len(found) == COUNT and all("ran out of memory" in row["error"] for row in found)


def test_on_a_cpu_the_estimate_decides_beforehand(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    one = registry.needed(registry.entry(MODEL), 4).run
    free = Memory("cpu", "system memory", 2**40, 2 * one)
    monkeypatch.setattr(device, "memory_of", lambda _: free)
    run = go(batch=7)
    assert max(sizes(run)) == 2 and max(sizes(run, "warmup")) == 2
    assert [entry["event"] for entry in run.journal].count("halved") == 1


def test_a_broken_sample_leaves_its_batch(tmp_path: Path, tiny_models: Path) -> None:
    root = recordings.root(tmp_path / "root", COUNT, broken=[1])
    run = start(root, tmp_path / "run", batch=4, warmup=0)
    failed = [row for row in rows_of(run) if row["error"]]
    assert [row["sample"] for row in failed] == ["id-1"] and "batch" not in failed[0]
    assert sizes(run) == [3] * 3 + [3] * 3


def test_samples_that_cannot_be_shown_or_asked_are_asked_apart(go: Go, root: Path) -> None:
    for frame in (root / "video" / "q2" / "000000").iterdir():
        frame.unlink()
    index = root / "EventGPT_Instruction_Subset.json"
    index.write_text(index.read_text().replace("What is it?", "What is <image> here?", 1))
    found = rows_of(go(batch=4, warmup=0))
    assert {row["sample"] for row in found if row["error"]} == {"id-0", "id-2"}
    assert Counter(row["sample"] for row in found) == {f"id-{i}": 1 for i in range(COUNT)}
    assert [row["batch"] for row in found if not row["error"]] == [2] * 2 + [3] * 3


def second_sample() -> Callable[[Any], list[bool]]:
    """Says of each prepared sample whether it is the second one of the first batch."""
    sums: list[float] = []

    def spoilt(prepared: Any) -> list[bool]:
        now = [float(one.pixels.sum()) for one in prepared]
        sums.extend(now if not sums else [])
        return [one == sums[1] for one in now]

    return spoilt


def test_a_batch_that_fails_is_asked_one_by_one(
    go: Go, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    adapter = registry.load(registry.entry(MODEL))
    encode, spoilt = adapter.encode_batch, second_sample()

    def odd(prepared: Any) -> Any:
        if any(spoilt(prepared)):
            raise ZeroDivisionError("odd pixels")
        return encode(prepared)

    monkeypatch.setattr(adapter, "encode_batch", odd)
    found = rows_of(go(batch=4, warmup=0))
    failed = [row for row in found if row["error"]]
    assert [row["sample"] for row in failed] == ["id-1"] and "odd pixels" in failed[0]["error"]
    others = [row for row in found[:4] if not row["error"]]
    assert [row["batch"] for row in others] == [1] * 3 and all(row["total_ms"] for row in others)
    assert all("a batch of 4 failed: tiny-llava: ZeroDivisionError" in row["notes"][-1]
               for row in others)  # fmt: skip
    assert [row["batch"] for row in found[4:]] == [3] * 3 and "odd pixels" in caplog.text


class Killed(BaseException):
    """As if the process ended."""


@pytest.mark.parametrize("kept", [1, 3, 4, 5])
def test_a_run_killed_in_a_batch_goes_on_and_doubles_nothing(
    go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    folder, append, seen = tmp_path / "run", run_store.Writer.append, []

    def killed(self: Any, row: dict[str, Any]) -> None:
        if len(seen) == kept:
            raise Killed
        seen.append(row)
        append(self, row)

    with monkeypatch.context() as patch:
        patch.setattr(run_store.Writer, "append", killed)
        with pytest.raises(Killed):
            go(batch=4, warmup=0)
    assert len(rows_of(run_store.read(folder))) == kept
    run = go_on(folder)
    assert run.state == "finished"
    assert Counter(row["sample"] for row in rows_of(run)) == {f"id-{i}": 1 for i in range(COUNT)}
    keys = [row.task for _, row in run.results()]
    assert len(set(keys)) == len(keys)
    assert answers(run) == answers(go(name="single"))
    # Results of the first session stay; the rest of its batch is smaller.
    rest = 4 - kept if kept < 4 else 3 - (kept - 4)
    assert sizes(run)[kept : kept + rest] == [rest] * rest


def test_a_cancelled_batch_leaves_no_row(go: Go) -> None:
    config, watcher = DecodeConfig(max_new_tokens=20, min_new_tokens=20), AfterTokens(4 * 20 + 30)
    run = go(watcher, decode=config, batch=4, warmup=0)
    assert run.state == "stopped" and sizes(run) == [4] * 4
    assert sizes(go_on(run.folder)) == [4] * 4 + [3] * 3


def test_the_device_is_lent_between_batches(go: Go) -> None:
    watcher = Looks(lend=3)  # load, first batch, before the second
    run = go(watcher, batch=4, warmup=0)
    assert [row["paused_ms"] for row in rows_of(run)] == [0.0] * 4 + [25.0] * 3


def test_another_backend_is_not_said_to_have_run(go: Go) -> None:
    """The eager backend decodes batches, whatever was asked for."""
    config = DecodeConfig(max_new_tokens=4, backend="compiled")
    found = rows_of(go(batch=4, decode=config, warmup=0))
    assert [row["backend"] for row in found] == [{"asked": "compiled", "ran": "eager"}] * COUNT
    assert "Batches use the eager backend; compiled was requested." in found[0]["notes"]


def test_a_row_of_a_batch_has_its_standing_too(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_executor.certificates, "certificate_status", _by_batch)
    found = rows_of(go(batch=6, warmup=0))
    assert [row["verified"] for row in found] == [None] * 6 + ["abc"]
    assert found[0]["standing"]["missing"] == ["batch of 6"]


def _by_batch(result: RunResult) -> Standing:
    missing = ("batch of 6",) if result.batch else ()
    return Standing("not covered" if missing else "verified", "abc", missing)
