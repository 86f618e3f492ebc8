"""python -m engine bench: its flags, its exit codes, and a run that outlives its process."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.jobs import benchmark_job
from engine.jobs.queue import Job
from engine.models import registry
from engine.storage import run_store
from tests import recordings
from tests.cli.conftest import Call

pytestmark = pytest.mark.loads

Bench = Callable[..., tuple[int, Any, str]]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def root(tmp_path: Path, tiny_models: Path) -> Path:
    return recordings.root(tmp_path / "root")


@pytest.fixture
def bench(call: Call, root: Path) -> Bench:
    """Gives the exit code, the JSON on standard output (None if there is none), standard error."""

    def called(*more: object, dataset: Path = root, fixed: bool = True) -> tuple[int, Any, str]:
        given = ["--models", "tiny-llava", "--max-new-tokens", "4"] if fixed else []
        code, out, err = call("bench", "--dataset", dataset, *given, "--json", *more)
        return code, json.loads(out) if out else None, err

    return called


def test_a_question_that_cannot_be_asked_fails_with_its_reason(
    call: Call, root: Path, tmp_path: Path
) -> None:
    file = root / "EventGPT_Instruction_Subset.json"
    records = json.loads(file.read_text())[:3]
    for record, options in zip(records, (["a", "b"], ["a", "b"], ["a"]), strict=True):
        record |= {"choices": options, "answer": "a"}
    records[1]["answer"] = "neither"
    file.write_text(json.dumps(records))
    folder = tmp_path / "run"
    given = ("--models", "tiny-llava", "--max-new-tokens", 4, "--out", folder)
    _, out, _ = call("bench", "--dataset", root, *given)
    assert "1 of 3 results answered" in out and "Failed and in no accuracy: 2 results" in out
    rows = [row for _, row in run_store.read(folder).results() if row.phase == "measured"]
    errors = {row.sample: row.error for row in rows}
    fine, answer, options = (errors[record["id"]] for record in records)
    assert fine is None and answer and "means none of its options" in answer
    assert options and "give 2 to 26 different texts" in options
    code, told, _ = call("report", folder)
    assert code == 0 and "Failed and in no accuracy: 2 results of Tiny llava" in told
    assert "give 2 to 26 different texts" in told


def test_ids_are_read_from_a_file(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("id-2\nq0/000000\n\nid-2\n")
    code, found, err = bench("--ids", tmp_path / "ids.txt", "--order", "interleaved")
    assert code == 0 and found["counts"][0]["samples"] == 2 and "more than once" in err
    run = run_store.read(Path(found["folder"]))
    assert run.header.plan.samples == ("id-2", "id-0")


def test_more_samples_than_there_are(bench: Bench) -> None:
    code, found, err = bench("--samples", 10**9)
    assert code == 0 and found["counts"][0]["samples"] == 4
    assert "the dataset has only 4: all are used" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--samples", 0), "samples is 0"),
        (("--samples", -(10**12)), "samples is -1000000000000"),
        (("--repeat", 10**9), "repeat is 1,000,000,000"),
        (("--warmup", -1), "warmup is -1"),
        (("--max-new-tokens", 10**12), "max_new_tokens is 1,000,000,000,000"),
        (("--length", "forced:8"), "leave max_new_tokens out"),
        (("--length", "forced:0x"), "length is 'forced:0x'"),
        (("--length", "long"), "length is 'long'"),
        (("--length", ""), "length is ''"),
        (("--length", "forced:" + "9" * 5000), "length is 'forced:999"),
        (("--repeat", "9" * 4000), "repeat is a very long number"),
        (("--models", "a" * 10_000), "is not a known model"),
        (("--ids", "/dev/zero"), "it is a device"),
        (("--models", "tiny-lava"), "did you mean 'tiny-llava'"),
        (("--models", ","), "name at least one model"),
        (("--prompt", "What is <image>?"), "contains <image>"),
        (("--prompt", "a" * 4001), "shorten it to 4,000"),
        (("--stop-after", 0), "stop-after is 0"),
        (("--dataset", "/no/such/root"), "/no/such/root"),
        (("--force",), "--force goes with --resume"),
        (("--resume", "x"), "--models belongs to a new run"),
        (("--ids", "/no/such/file"), "/no/such/file"),
        (("--batch", 0), "batch is 0: choose a value from 1 to 256"),
        (("--batch", 4, "--mode", "hooked"), "choose decoupled, or batch 1"),
        (("--batch", 4, "--cache", "refresh"), "choose use or off, or batch 1"),
        (("--perturb", "hot:0/0.2,drop:0/0.3"), "is no sweep: give at most"),
        (("--perturb", "hot:0.2/0.2"), "different strengths"),
        (("--perturb", "hot:0/2"), "give a share from 0 to below 1"),
        (("--perturb", "hot:0/"), "is not a perturbation"),
        (("--perturb", "hot:0/0.2", "--executor", "ray"), "runs in this process only"),
        (("--against", "/dev"), "is not a checkout of StageScope"),
        (("--against", ROOT, "--executor", "ray"), "leave out --executor"),
        (("--against", ROOT, "--perturb", "drop:0/0.3"), "leave out a sweep in --perturb"),
        (("--against", ROOT, "--batch", 2), "leave out --batch"),
        (("--against", ROOT, "--plan-only"), "leave out --plan-only"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    bench: Bench, arguments: tuple[object, ...], message: str
) -> None:
    code, found, err = bench(*arguments)
    assert code == 2 and found is None and message in err and err.strip().count("\n") == 0
    assert len(err) < 500


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id-0\nnothing-like-it\nnor-this\n", "(1 more line is not found either)"),
        ("\n\n", "names no sample"),
        ("id-9\n", "did you mean"),
    ],
)
def test_ids_that_do_not_exist(bench: Bench, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "ids").write_text(text)
    code, _, err = bench("--ids", tmp_path / "ids")
    assert code == 2 and message in err and err.strip().count("\n") == 0


def test_an_empty_dataset(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "EventGPT_Instruction_Subset.json").write_text("[]")
    code, _, err = bench(dataset=tmp_path / "empty")
    assert code == 2 and "empty list" in err


def test_models_are_needed(bench: Bench) -> None:
    code, _, err = bench(fixed=False)
    assert code == 2 and "--models is missing" in err


def test_a_model_that_is_given_up_is_exit_code_1(bench: Bench, tmp_path: Path) -> None:
    root = recordings.root(tmp_path / "broken", broken=range(4))
    code, _, err = bench("--stop-after", 2, "--warmup", 0, dataset=root)
    assert code == 1 and "was given up: 2 failures in a row" in err


def interrupt(cancelled: threading.Event) -> None:
    """Ctrl-C, in the thread of the work: the main one gets it."""
    signal.raise_signal(signal.SIGINT)
    assert cancelled.wait(60)


def test_ctrl_c_keeps_the_run_and_names_the_resume_command(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = registry.load(registry.entry("tiny-llava"))
    encode, calls, cancelled = adapter.encode, [], threading.Event()

    def interrupted(prepared: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            interrupt(cancelled)
        return encode(prepared)

    cancel = Job.cancel
    monkeypatch.setattr(Job, "cancel", lambda job: (cancel(job), cancelled.set()))
    monkeypatch.setattr(adapter, "encode", interrupted)
    folder = tmp_path / "a run"
    code, found, err = bench("--out", folder)
    assert code == 130 and found is None and f"--resume '{folder}'" in err
    assert len(list(run_store.read(folder).results())) == 3
    code, found, _ = bench("--resume", folder, fixed=False)
    assert code == 0 and found["counts"][0]["answered"] == 4


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX's")
def test_a_run_killed_by_sigkill_is_resumed_without_doubles(
    bench: Bench, root: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    plan = ["--models", "tiny-llava,tiny-eventgpt", "--length", "forced:60", "--repeat", "5"]
    arguments = ["bench", "--dataset", str(root), *plan, "--out", str(folder)]
    _until_two_results(arguments, folder, signal.SIGKILL)
    kept = [row for _, row in run_store.read(folder).results()]
    assert 2 <= len(kept) < 40 and run_store.read(folder).state == "stopped"
    with (folder / run_store.RESULTS).open("ab") as stream:  # the line in flight
        stream.write(b'{"model": "tiny-llava", "samp')
    code, found, _ = bench("--resume", folder, fixed=False)
    assert code == 0 and [count["answered"] for count in found["counts"]] == [20, 20]
    rows = [row for _, row in run_store.read(folder).results()]
    assert rows[: len(kept)] == kept
    assert max(Counter(row.task for row in rows).values()) == 1
    assert any(entry["event"] == "torn" for entry in run_store.read(folder).journal)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGTERM is POSIX's")
def test_sigterm_stops_a_run_and_names_the_resume_command(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    plan = ["--models", "tiny-llava", "--length", "forced:60", "--repeat", "9"]
    arguments = ["bench", "--dataset", str(root), *plan, "--out", str(folder)]
    code, err = _until_two_results(arguments, folder, signal.SIGTERM)
    assert code == 130 and err.strip().endswith(f"bench --resume {folder}")
    assert run_store.read(folder).journal[-1]["event"] == "stopped"


def _until_two_results(arguments: list[str], folder: Path, last: int) -> tuple[int, str]:
    """Exit code and standard error of a run that gets this signal after two results."""
    child = subprocess.Popen(
        [sys.executable, "-m", "engine", *arguments], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    try:
        end = time.monotonic() + 120
        while _results(folder) < 2:
            assert child.poll() is None and time.monotonic() < end
            time.sleep(0.005)
    finally:
        child.send_signal(last)
        _, err = child.communicate()
    return child.returncode, err


def _results(folder: Path) -> int:
    path = folder / run_store.RESULTS
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_progress_is_said_now_and_then(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark_job, "EVERY_S", 0.0)
    _, _, err = bench()
    assert "2 of 4 results, " in err and "per second, about" in err


def test_samples_at_once(bench: Bench, call: Call, tmp_path: Path) -> None:
    code, found, _ = bench("--out", tmp_path / "run", "--batch", 3)
    (alone, together) = found["throughput"]
    assert code == 0 and (alone["batch"], together["batch"], together["n"]) == (1, 3, 1)
    assert found["counts"][0]["batched"] == 3
    code, out, _ = call("report", tmp_path / "run")
    assert code == 0 and "Throughput of batches" in out
    code, _, err = bench("--resume", tmp_path / "run", "--batch", 4, fixed=False)
    assert code == 2 and "--batch belongs to a new run: leave it or --resume out." in err


def test_rows_of_lettered_questions_have_what_scoring_needs(
    bench: Bench, root: Path, tmp_path: Path
) -> None:
    index = root / "EventGPT_Instruction_Subset.json"
    records = json.loads(index.read_text())
    for record in records[:2]:
        record |= {"choices": ["a road", "a field"], "answer": "a field", "task": "place"}
    index.write_text(json.dumps(records))
    for batch in (1, 4):
        out = tmp_path / f"run-{batch}"
        code, _, _ = bench("--batch", batch, "--warmup", 0, "--out", out)
        rows = {row.sample: row for _, row in run_store.read(out).results()}
        assert code == 0 and len(rows) == 4
        asked, plain = rows["id-1"], rows["id-3"]
        assert asked.choices == ("a road", "a field") and asked.right_letter == "B"
        assert (asked.choice_form, asked.question_task) == ("letters", "place")
        assert set(asked.letter_logprobs or {}) == {"A", "B"}
        assert not plain.choices and not plain.letter_logprobs and not plain.right_letter
    other = tmp_path / "other"
    bench("--prompt", "Why?", "--out", other)
    assert not any(row.letter_logprobs for _, row in run_store.read(other).results())


@pytest.fixture
def raw(tmp_path: Path, tiny_models: Path) -> Path:
    return recordings.root(tmp_path / "raw", raw=True)


SWEEP = ("--models", "tiny-eventgpt", "--perturb")


def test_a_sweep_is_a_run_per_strength_and_its_curves(
    bench: Bench, raw: Path, tmp_path: Path
) -> None:
    sweep = (*SWEEP, "hot:0/0.2,drop:0.1", "--perturb-seed", 5, "--out", tmp_path / "night")
    code, found, err = bench(*sweep, dataset=raw)
    names = [Path(folder).name for folder in found["folders"]]
    assert code == 0 and names == ["night-hot-0", "night-hot-0.2"]
    assert "Run 2 of 2: drop:0.1,hot:0.2\n" in err and "Report: python -m" in err
    curves = found["robustness"]
    assert (curves["change"], curves["others"], curves["seed"]) == ("hot", "drop:0.1", 5)
    assert [point["strength"] for point in curves["curves"][0]["points"]] == [0, 0.2]
    seeds = [run_store.read(Path(one)).header.plan.perturb_seed for one in found["folders"]]
    assert seeds == [5, 5]
    code, again, err = bench(*sweep, dataset=raw)  # everything is finished: nothing runs
    assert code == 0 and again == found


def test_a_stopped_sweep_names_the_command_to_repeat(
    bench: Bench, raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel, cancelled = Job.cancel, threading.Event()
    monkeypatch.setattr(Job, "cancel", lambda job: (cancel(job), cancelled.set()))
    sweep = (*SWEEP, "hot:0/0.2", "--out", tmp_path / "night")
    with monkeypatch.context() as patch:
        patch.setattr(
            "engine.benchmark.execute.RunSession.warm_ups", lambda *_: interrupt(cancelled) or []
        )
        code, found, err = bench(*sweep, dataset=raw)
    assert code == 130 and found is None
    assert f"Repeat the command with --out {tmp_path / 'night'}: finished runs are skipped" in err
    assert bench(*sweep, dataset=raw)[0] == 0


@pytest.mark.slow
def test_two_checkouts_take_turns(bench: Bench, tmp_path: Path) -> None:
    given = ("--against", ROOT, "--repeat", 2, "--samples", 2, "--out", tmp_path / "x")
    code, found, _ = bench(*given)
    assert code == 0 and found["gate"].endswith("x-base " + str(tmp_path / "x-new"))
    base, new = (run_store.read(Path(folder)) for folder in found["folders"])
    assert base.header.together and base.header.together == new.header.together
    begun = []
    for run in (base, new):
        loads = [row.machine_load for _, row in run.results() if row.phase == "measured"]
        begun.append([load.began_s for load in loads if load is not None])
    turns = [side for _, side in sorted((at, side) for side in (0, 1) for at in begun[side])]
    assert turns == [1, 0, 1, 0, 0, 1, 0, 1]  # after one turn to load and one to warm up
    (new.folder / run_store.SUMMARY).unlink()
    results = new.folder / run_store.RESULTS
    results.write_bytes(b"".join(results.read_bytes().splitlines(keepends=True)[:-1]))
    code, _, err = bench("--resume", new.folder, fixed=False)
    assert code == 2 and "took turns with another run" in err
