"""Speculation: the draft's own time as it is elsewhere, and what changed answers may mean."""

from __future__ import annotations

from typing import Any

import pytest

from engine.published.audit import AuditFinding, audit
from tests.published.read import synthetic as made
from tests.published.read.synthetic import read


def found(value: Any, rule: str) -> AuditFinding:
    return next(finding for finding in audit(read(value)) if finding.rule == rule)


def test_the_drafts_own_time_is_without_its_warm_up() -> None:
    value = made.speculation(5)
    for index, row in enumerate(value["results"]):
        row["egpt_prefill_ms"] = 90.0 if index else 250.0
    assert any(finding.rule == "warm_up" for finding in audit(read(value)))
    finding = found(value, "speedup")
    assert finding.figures["with_draft_ms"] == pytest.approx(1110 + 300 + 90)
    assert "draft's own 390 ms" in finding.message


def test_without_a_warm_up_it_is_as_recorded() -> None:
    finding = found(made.speculation(5), "speedup")
    assert finding.figures["with_draft_ms"] == pytest.approx(1110 + 300 + 120)


def test_answers_that_changed_may_have_been_sampled_where_nothing_is_said() -> None:
    value = made.wallclock()
    assert "unless the outputs were sampled" in found(value, "lossless").message
    for setting in ({"do_sample": False}, {"temperature": 0.0}):
        value["config"] = {"gamma": 5, **setting}
        assert "sampled" not in found(value, "lossless").message
