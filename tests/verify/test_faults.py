"""The verifier can fail: every check is tripped by a planted fault, and by no clean run.

The faults are those of tests/faults, which the benchmark of planted faults runs too.
"""

import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine import timing
from engine.verify.verdict import CHECKS
from tests.conftest import slow_unless
from tests.faults import FAULTS
from tests.models import family_checkpoints
from tests.verify.conftest import FAMILIES, Verify

ROOT = Path(__file__).resolve().parents[2]
TIMED = {"accounted", "stage3", "observer"}  # a busy machine may leave these open, or worse
UNSTEADY = TIMED | {"clock"}  # and a thread that waits between two clocks sets them apart
CAUGHT = {name: fault.checks for name, fault in FAULTS.items() if fault.checks}
FIRST = {check: name for name, checks in reversed(CAUGHT.items()) for check in checks}


@pytest.mark.loads
@pytest.mark.parametrize("name", slow_unless(FIRST.values(), CAUGHT))
def test_a_planted_fault_fails_its_check(
    name: str, verify: Verify, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = FAULTS[name]
    if "stage3" in fault.checks:  # a busy machine stops the usual clock's thread, not its own
        clock = SimpleNamespace(perf_counter=time.thread_time)
        monkeypatch.setattr(timing, "time", clock)
    fault.plant(monkeypatch)
    found = verify(fault.family, fault.runs, fault.checks)
    outcomes = {check: verdict.outcome for check, verdict in found.items()}
    failed = {check for check, outcome in outcomes.items() if outcome == "failed"}
    assert fault.checks <= failed, outcomes


def test_there_are_faults_of_every_kind_and_each_has_a_sentence_and_tests() -> None:
    assert len(FAULTS) >= 40
    for fault in FAULTS.values():
        assert fault.what.endswith(".") and fault.tests
        assert fault.family in (*FAMILIES, *family_checkpoints.FAMILIES)
        assert all((ROOT / file).is_file() for file in fault.tests), fault.tests


@pytest.mark.loads
@pytest.mark.parametrize("family", slow_unless(FAMILIES[:1], FAMILIES))
def test_a_clean_model_fails_no_check(family: str, verify: Verify) -> None:
    found = verify(family)
    assert set(found) == set(CHECKS)
    failed = {check: v.sentence for check, v in found.items() if v.outcome == "failed"}
    assert not set(failed) - UNSTEADY, failed
    json.dumps([verdict.evidence for verdict in found.values()], allow_nan=False)
