"""Evidence of any check as tables, whatever its form."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from engine.report.blocks import Bullets, Paragraph, ReportTable
from tests.ui.verify.made import verdicts
from ui.verify import evidence
from ui.verify.evidence import tables


def test_single_values_lists_and_mappings_have_a_table_each() -> None:
    calls = {"plain": {"computed": 3, "returned": 4}}
    found = list(tables({"natural_end": True, "counts": calls, "faults": ["a", "b"], "open": []}))
    assert found == [
        ReportTable("", ("", "value"), (("natural end", "✓ yes"),), words=2),
        ReportTable(
            "counts",
            ("", "computed", "returned"),
            (("plain: its own generate() on pixels", "3", "4"),),
            words=3,
        ),
        Bullets(("a", "b"), "faults"),
    ]


def test_lists_of_objects_are_tables_and_long_lists_are_cut() -> None:
    changes = [{"what": "dtype", "right": False}, {"what": "device"}]
    (table,) = tables({"changes": changes})
    assert isinstance(table, ReportTable)
    assert table.columns == ("", "change", "right")
    assert table.rows == (("1", "dtype", "✕ no"), ("2", "device", "none"))
    (long,) = tables({"positions": {"hooked": list(range(30))}})
    assert isinstance(long, ReportTable)
    assert long.rows[0][1].endswith("19 … (30 in total)")


@pytest.mark.parametrize(("n", "words"), [(5, "and the range, on"), (6, "95 % interval")])
def test_five_pairs_have_no_interval_of_95_percent(n: int, words: str) -> None:
    row = next(one for one in verdicts() if one.check == "stage3")
    row = replace(row, evidence={**row.evidence, "alone_ms": [1.0] * n, "probe_ms": [1.1] * n})
    said = [part.text for part in evidence.DRAWN["stage3"](row) if isinstance(part, Paragraph)]
    assert words in " ".join(said)
