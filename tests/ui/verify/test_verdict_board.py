"""What the board of a verification shows of its samples."""

from __future__ import annotations

from dataclasses import replace

from engine.verify.report import of_certificate, passed_by_all, tally
from engine.verify.verdict import CHECKS
from tests.ui.verify.made import certificate, verdicts


def test_a_model_in_a_sentence_and_what_needs_no_look() -> None:
    found = of_certificate(certificate(verdicts(changed={("stage3", ""): "unresolved"})))
    passed = len(CHECKS) - 1
    assert tally(found, "one") == f"{passed} passed; 1 open: Stage 3 timed two ways."
    assert set(passed_by_all(found)) == set(CHECKS) - {"stage3"}
    rows = tuple(row for row in found.rows if row.check != "clock")
    cut = replace(found, rows=rows)
    assert tally(cut, "one").endswith("; 1 not done.") and "clock" not in passed_by_all(cut)
    assert passed_by_all(replace(found, ended=False)) == []
