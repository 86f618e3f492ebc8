"""Dataset runs on tiny models: what is kept, in what order, and what costs what."""

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.benchmark import execute
from engine.errors import BadInput, DatasetError, ModelUnavailable, StoreError
from engine.media import dataset
from engine.models import registry
from engine.pipeline import Watcher
from engine.storage import provenance, run_store
from engine.storage.plan import Plan
from engine.storage.run_store import Run
from engine.types import DecodeConfig
from tests import fabricate, recordings
from tests.served.fake_server import in_turn, says, serving, streams, whole

pytestmark = pytest.mark.loads

ALL = ("tiny-eventgpt", "tiny-video_llava", "tiny-llava")
SHORT = DecodeConfig(max_new_tokens=4)
Go = Callable[..., Run]


@pytest.fixture
def root(tmp_path: Path, tiny_models: Path) -> Path:
    return recordings.root(tmp_path / "root")


def plan(root: Path, **more: Any) -> Plan:
    samples = tuple(sample.id for sample in dataset.read(root).samples)
    return Plan(**({"models": ("tiny-llava",), "samples": samples, "decode": SHORT} | more))


def start(root: Path, folder: Path, watcher: Watcher | None = None, **more: Any) -> Run:
    ready = execute.prepare(plan(root, **more), dataset.read(root), folder)
    with ready.writer:
        ready.run(watcher)
    return run_store.read(folder)


@pytest.fixture
def go(root: Path, tmp_path: Path) -> Go:
    def run(watcher: Watcher | None = None, name: str = "run", **more: Any) -> Run:
        return start(root, tmp_path / name, watcher, **more)

    return run


def go_on(folder: Path, **more: Any) -> Run:
    ready = execute.resume(folder, **more)
    with ready.writer:
        ready.run()
    return run_store.read(folder)


def rows(run: Run, phase: str = "measured") -> list[dict[str, Any]]:
    return [row for row in fabricate.stored(run) if row["phase"] == phase]


class Looks(Watcher):
    """Counts the looks between two tasks: it lends the device at look `lend`, and cancels after
    look `stop`."""

    def __init__(self, stop: int = 10**6, lend: int = 0) -> None:
        self.looks, self.stop, self.lend = 0, stop, lend

    def cancelled(self) -> bool:
        return self.looks >= self.stop

    def give_way(self) -> float:
        self.looks += 1
        return 25.0 if self.looks == self.lend else 0.0


class AfterTokens(Watcher):
    """Cancels after `left` tokens."""

    def __init__(self, left: int) -> None:
        self.left = left

    def token(self, token: int, ms: float) -> None:
        self.left -= 1

    def cancelled(self) -> bool:
        return self.left <= 0


@contextmanager
def full_disk() -> Iterator[None]:
    """There is no space for a row after the second measured one."""
    append, kept = run_store.Appender.append, []

    def full(self: Any, value: dict[str, Any]) -> None:
        if "model" in value and len(kept) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(self, value)
        kept.extend([1] if value.get("phase") == "measured" else [])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_store.Appender, "append", full)
        with pytest.raises(StoreError, match=r"No space left.*--resume"):
            yield


def test_every_sample_model_and_repeat_has_one_whole_row(go: Go) -> None:
    run = go(models=ALL, repeat=2, warmup=1, order="sequential")
    found = rows(run)
    assert run.state == "finished" and len(found) == 3 * 4 * 2
    assert len({fabricate.task(row) for row in found}) == len(found)
    assert [row["model"] for row in found] == [name for name in ALL for _ in range(8)]
    for row in found:
        assert row["new_tokens"] == len(row["token_ids"]) == len(row["token_ms"]) == 4
        assert row["prompt"] == "What is it?" and row["reference"] == "A road."
        assert row["stages"]["vision"]["source"] == "measured" and not row["cold"]
        assert {"start_ms", "ms"} <= set(row["stages"]["decode"]) and row["tensors"]
    warm = rows(run, "warmup")
    assert [row["model"] for row in warm] == list(ALL)
    file = run.folder / run_store.SUMMARY
    summary = file.read_text()
    assert '"results": 24' in summary and '"median"' in summary
    file.write_text(summary[:100])  # damaged: resuming writes it again and computes nothing
    before = run.folder.joinpath(run_store.RESULTS).read_bytes()
    assert run_store.read(run.folder).state == "stopped"
    with (ready := execute.resume(run.folder)).writer:
        assert ready.run() == "finished"
    assert run_store.read(run.folder).state == "finished" and '"results": 24' in file.read_text()
    assert run.folder.joinpath(run_store.RESULTS).read_bytes() == before


def test_the_rate_of_a_run_that_is_over_falls_no_more(root: Path, tmp_path: Path) -> None:
    only = (plan(root).samples[0],)
    for name, repeat, watcher in (("whole", 1, None), ("cancelled", 5, Looks(4))):
        wanted = plan(root, samples=only, repeat=repeat)
        ready = execute.prepare(wanted, dataset.read(root), tmp_path / name)
        with ready.writer:
            assert ready.run(watcher) == ("cancelled" if watcher else "finished")
        first, later = ready.tracker.view(), ready.tracker.view()
        assert first.done == 1 and first.per_s == later.per_s is not None


@pytest.mark.parametrize("mode", ["decoupled", "hooked"])
def test_an_answer_cut_by_cancel_is_no_row(go: Go, mode: str) -> None:
    config = DecodeConfig(max_new_tokens=20, min_new_tokens=20)
    watcher = AfterTokens(50)  # warm-up, first, and ten tokens of the second
    run = go(watcher, decode=config, mode=mode)
    assert [row.new_tokens for _, row in run.results()] == [20, 20]
    assert [row["new_tokens"] for row in rows(go_on(run.folder))] == [20] * 4


def test_a_record_without_what_a_model_needs(go: Go, root: Path) -> None:
    for frame in (root / "video" / "q2" / "000000").iterdir():
        frame.unlink()
    found = rows(go(models=ALL, stop_after=1))
    failed = {(row["model"], row["sample"]) for row in found if row["error"]}
    assert failed == {("tiny-video_llava", "id-2"), ("tiny-llava", "id-2")}
    assert len(found) == 12  # nothing was given up for it


def test_a_dataset_without_usable_samples_is_refused(go: Go, root: Path, tmp_path: Path) -> None:
    for picture in (root / "event_image").rglob("*.png"):
        picture.unlink()
    with pytest.raises(BadInput, match="None of the 4 samples can be shown to tiny-eventgpt"):
        go(models=ALL[:1])
    assert not (tmp_path / "run").exists()


def test_a_model_that_fails_on_each_sample_is_given_up_and_others_go_on(
    go: Go, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    models = ("tiny-llava", "tiny-eventgpt")
    with monkeypatch.context() as patch:
        patch.setattr(registry.load(registry.entry("tiny-llava")), "encode", lambda *_: 1 / 0)
        how = {"models": models, "warmup": 0, "stop_after": 2, "order": "sequential"}
        run = go(**how)
    found = rows(run)
    assert [bool(row["error"]) for row in found] == [True] * 2 + [False] * 4
    assert "ZeroDivisionError: division by zero" in found[0]["error"]
    (given_up,) = [e for e in run.journal if e["event"] == "given up"]
    assert "tiny-llava was given up: 2 failures in a row" in given_up["text"]
    assert "division by zero" in caplog.text and run.state == "finished"
    with (stopped := execute.resume(tmp_path / "run")).writer:
        assert stopped.run(Looks(2)) == "cancelled"
    assert run_store.read(tmp_path / "run").state == "stopped"
    again = go_on(tmp_path / "run")
    assert Counter(row["model"] for row in rows(again)) == dict.fromkeys(models, 4)


def test_warm_up_failures_count_too(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.load(registry.entry("tiny-llava")), "encode", lambda *_: 1 / 0)
    run = go(warmup=5, stop_after=3)
    assert len(rows(run, "warmup")) == 3 and not rows(run)


def test_other_models_run_if_one_does_not_load(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    load = registry.load

    def refuse(entry: Any, tokens: int) -> Any:
        if entry.name == "tiny-llava":
            raise ModelUnavailable("tiny-llava does not fit.")
        return load(entry, tokens)

    monkeypatch.setattr(registry, "load", refuse)
    run = go(models=("tiny-llava", "tiny-eventgpt"))
    assert {row["model"] for row in rows(run)} == {"tiny-eventgpt"}
    assert any("does not fit" in entry["text"] for entry in run.journal)


def test_a_full_disk_stops_the_run_and_keeps_its_rows(go: Go, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with full_disk():
        go()
    run = run_store.read(folder)
    assert run.state == "stopped" and len(rows(run)) == 2
    assert len(rows(go_on(folder))) == 4


@pytest.mark.parametrize("what", ["record", "file", "code", "checkpoint"])
def test_what_has_changed_is_refused_unless_forced(
    go: Go, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    folder = tmp_path / "run"
    go(Looks(3))
    if what == "record":
        index = root / "EventGPT_Instruction_Subset.json"
        index.write_text(index.read_text().replace("What is it?", "Why is it?"))
    elif what == "file":
        with (root / "event_image" / "q3" / "000000_1.png").open("ab") as stream:
            stream.write(b"more")
    elif what == "code":
        monkeypatch.setattr(provenance, "describe_code", lambda: "other")
    else:
        monkeypatch.setattr(provenance.checkpoint_files, "digest", lambda *_, **__: "other")
    words = {"record": "samples", "file": "samples", "code": "code", "checkpoint": "checkpoint"}
    with pytest.raises(StoreError, match=f"{words[what]}.*--force"):
        execute.resume(folder)
    run = go_on(folder, force=True)
    assert len(rows(run)) == 4
    assert any("forced although" in entry["text"] for entry in run.journal)


def test_a_moved_dataset_is_the_same_and_another_is_not(go: Go, root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    go(Looks(3))
    moved = root.rename(tmp_path / "moved")
    with pytest.raises(DatasetError, match="does not exist"):
        execute.resume(folder)
    other = recordings.root(tmp_path / "other", 2)
    with pytest.raises(BadInput, match="2 of 4 samples are not in"):
        execute.resume(folder, other)
    assert len(rows(go_on(folder, root=moved))) == 4


def test_a_line_that_is_there_twice_is_one_result(go: Go, tmp_path: Path) -> None:
    go()
    results = tmp_path / "run" / run_store.RESULTS
    lines = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join([*lines, lines[-1]]))
    ready = execute.resume(tmp_path / "run")
    with ready.writer:
        found = ready.tracker.view()
    assert found.done == found.planned == 4
    (told,) = found.notes
    assert told == ready.writer.problem
    assert told.startswith("1 of 6 lines of results.jsonl cannot be used (line 6: it repeats")


def test_a_server_takes_several_samples_at_once_and_is_asked_for_the_rest_when_it_is_back(
    go: Go, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as fake:
        file = tmp_path / "served.toml"
        entry = f'name = "ours"\nserver = "{fake.url}"\nmodel = "m"\nparallel = 2\n'
        file.write_text(f"[[model]]\n{entry}", encoding="utf-8")
        monkeypatch.setenv("STAGESCOPE_MODELS", str(file))
        fake.answer = in_turn(*[streams(*whole())] * 2, says(401, "another key"))
        wanted = DecodeConfig(max_new_tokens=4)
        run = go(models=("ours",), decode=wanted, warmup=0)
        first = rows(run)
        assert len(first) == 2
        assert not any(row.get("error") for row in first)  # who did not answer has no row
        assert all("Asked together with 1 other request." in row["notes"] for row in first)
        fake.answer, before = streams(*whole()), len(fake.asked)
        run = go_on(tmp_path / "run")
        assert run.state == "finished" and len(fake.asked) - before == 2
        assert len({row["sample"] for row in rows(run)}) == len(rows(run)) == 4
        with pytest.raises(BadInput, match="which workers of a cluster do not ask"):
            execute.prepare(plan(root, models=("ours",)), dataset.read(root), elsewhere=True)
