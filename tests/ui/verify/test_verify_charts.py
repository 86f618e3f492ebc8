"""Charts of a verification: units, the first run apart, the bound drawn."""

from typing import Any

import pytest

from engine.report.charts import svgs
from tests.ui.verify.made import evidence
from ui.verify import verify_charts

pytestmark = pytest.mark.loads

KINDS: dict[str, Any] = evidence()["accounted"]["kinds"]
INTERVAL = {"median": 1.0, "low": 0.98, "high": 1.05}


def test_a_stage_that_a_kind_did_not_measure_is_not_zero() -> None:
    kinds = {"computed": KINDS["computed"], "hooked": {"load": KINDS["computed"]["load"]}}
    assert verify_charts.times(kinds, "hooked", "vision") == "not measured"
    assert "2.00 ms" in verify_charts.times(kinds, "hooked", "load")
    assert verify_charts.stage_chart({"hooked": {}}, "vision") is None


def test_the_bound_is_drawn_on_the_sides_that_count() -> None:
    _, bound = verify_charts.ratio_charts((0.99, 1.0, 1.2), INTERVAL, (0.85, 1.15), "ratio")
    picture = svgs([bound.draw()])[0]  # type: ignore[arg-type]
    assert ">bound 0.85<" in picture and ">bound 1.15<" in picture
