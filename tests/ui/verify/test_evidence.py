"""Evidence of any check as tables, whatever its form."""

from __future__ import annotations

from engine.report.blocks import Bullets, ReportTable
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
