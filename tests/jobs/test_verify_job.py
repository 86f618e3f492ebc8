"""A verification in the queue, and on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.__main__ import main
from engine.jobs import queue as jobs
from engine.jobs.model_work import VerifyJob
from engine.types import Sample
from engine.verify import certificates, runner
from engine.verify.verdict import VerifyRequest
from tests.faults import FAULTS
from tests.jobs.waiting import wait
from tests.test_main import root  # noqa: F401 - a fixture
from tests.verify.conftest import only

Captured = pytest.CaptureFixture[str]
QUICK = ("--samples", "1", "--runs", "1", "--max-new-tokens", "8")


@pytest.fixture(autouse=True)
def few_pairs(monkeypatch: pytest.MonkeyPatch, tiny_models: Path) -> None:
    monkeypatch.setattr(runner, "PAIRS", 5)


def job(sample: Sample, *models: str) -> VerifyJob:
    request = VerifyRequest(models, (sample,), max_new_tokens=8, runs=1)
    return VerifyJob(request=request, dataset="here")


@pytest.mark.loads
def test_verdicts_fill_in_and_the_certificate_is_kept(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, "equal_hooked", "greedy", "sight")
    work = job(sample, "tiny-llava")
    jobs.Jobs().submit(work)
    view = wait(work)
    assert view.state == "done" and view.ended and not view.error
    assert {verdict.check for verdict in view.verdicts} == {"equal_hooked", "greedy", "sight"}
    assert view.certificate is not None and certificates.stored_certificates() == [view.certificate]


def test_cancel_leaves_no_certificate(sample: Sample) -> None:
    work = job(sample, "tiny-llava", "tiny-eventgpt")
    jobs.Jobs().submit(work)
    wait(work, lambda view: bool(view.verdicts))
    work.cancel()
    wait(work)
    assert work.state == "cancelled" and work.certificate is None
    assert certificates.stored_certificates() == []


def verify(capsys: Captured, *arguments: object) -> tuple[int, Any, str]:
    code = main(["verify", "--json", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


@pytest.mark.loads
def test_the_command_line_gives_a_certificate(
    capsys: Captured,
    root: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner.stage_times, "UNACCOUNTED", 1.0)  # times are no test
    monkeypatch.setattr(runner.stage_times, "OBSERVER", 100.0)
    monkeypatch.setattr(runner.stage_times, "STAGE3", 100.0)
    slowest = ("sampled", "long", "shapes")  # none of which a proof needs
    steps = {check: step for check, step in runner.STEPS.items() if check not in slowest}
    monkeypatch.setattr(runner, "STEPS", steps)
    code, found, err = verify(capsys, "--models", "tiny-llava", "--dataset", root, *QUICK)
    assert (
        code == 0 and found["verified"] and [m["name"] for m in found["models"]] == ["tiny-llava"]
    )
    assert json.loads(Path(found["path"]).read_text()) == {
        key: value for key, value in found.items() if key not in ("verified", "path")
    }
    assert "tiny-llava" in err
    compare = ["compare", "--json", "--dataset", str(root), "--sample", "id-0"]
    compare += ["--max-new-tokens", "8"]
    for model, expected in (("tiny-llava", found["hash"]), ("tiny-eventgpt", None)):
        assert main([*compare, "--models", model]) == 0
        assert json.loads(capsys.readouterr().out)[0]["verified"] == expected


@pytest.mark.loads
def test_a_failed_check_is_exit_code_1_and_text_says_so(
    capsys: Captured,
    root: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    FAULTS["temperature ignored"].plant(monkeypatch)
    only(monkeypatch, "sampled")
    code = main(["verify", "--models", "tiny-llava", "--dataset", str(root), *QUICK])
    out, err = capsys.readouterr()
    assert code == 1 and "tiny-llava: NOT verified" in out
    assert "FAIL Sampled = plain" in out and "Sampled = plain" in err


@pytest.mark.loads
def test_misuse_is_exit_code_2(
    capsys: Captured,
    root: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    only(monkeypatch, "equal_hooked")
    fixed = ("--dataset", root)
    llava = ("--models", "tiny-llava")
    for arguments, message in (
        ((*llava, "--samples", 99), "the dataset has 2: choose a value from 1 to 2"),
        ((*llava, "--runs", 0), "runs is 0"),
        (("--models", ","), "name at least one model"),
        (("--models", "tiny-odd,tiny-llava"), "is not a known model"),
        ((*llava, "--prompt", ""), "question is empty"),
    ):
        code, found, err = verify(capsys, *fixed, *arguments)
        assert code == 2 and found is None
        assert message in err and err.strip().count("\n") == 0


@pytest.mark.loads
def test_a_certificate_that_cannot_be_kept_costs_no_verdict(
    capsys: Captured,
    root: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    only(monkeypatch, "equal_hooked", "greedy")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STAGESCOPE_RUNS_DIR", str(tmp_path / "file"))
    code, found, err = verify(capsys, "--models", "tiny-llava", "--dataset", root, *QUICK)
    assert code == 1 and found["path"] is None and len(found["verdicts"]) == 2
    assert "certificate cannot be saved" in err
