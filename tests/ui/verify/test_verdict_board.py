"""What the board of a verification shows of its samples."""

from __future__ import annotations

from dataclasses import replace

from engine.verify.report import of_certificate, passed_by_all, tally
from engine.verify.verdict import CHECKS
from tests.ui.verify.made import A, B, certificate, verdicts
from ui.verify.verdict_board import short_names


def test_names_of_samples_are_short_and_differ() -> None:
    long = "a_very_long_name_of_a_sample"
    twin = A[:8] + B[8:].replace("a", "b")
    names = short_names([A, B, long, long + "2", twin])
    assert names[A] == "357e6028" and len(names[long]) <= 14
    assert len(set(names.values())) == 5


def test_a_model_in_a_sentence_and_what_needs_no_look() -> None:
    found = of_certificate(certificate(verdicts(changed={("stage3", A): "unresolved"})))
    passed = len(CHECKS) - 1
    assert tally(found, "one") == f"{passed} passed; 1 open: Stage 3 timed two ways."
    assert set(passed_by_all(found)) == set(CHECKS) - {"stage3"}
    rows = tuple(row for row in found.rows if row.check != "clock")
    cut = replace(found, rows=rows)
    assert tally(cut, "one").endswith("; 1 not done.") and "clock" not in passed_by_all(cut)
    assert passed_by_all(replace(found, ended=False)) == []
