"""The memory of a device: its models in the file's order, and the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.machine.device import Memory
from tests.report.test_card_rows import ENTRY
from ui.models import memory_bars

GIB = 2**30
SLY = '<img src=x onerror="1">'
CPU = Memory("cpu", "system memory", 32 * GIB, 20 * GIB)


def test_sizes_add_up_to_what_is_used_in_a_fixed_order() -> None:
    first, second = replace(ENTRY, name="a", label="A"), replace(ENTRY, name="b", label="B")
    gone = replace(ENTRY, name="c", label="C")
    held = {gone: GIB, second: 2 * GIB, first: 4 * GIB}
    assert memory_bars.sizes(CPU, held, [first, second]) == [
        ("A", "4.0 GiB"),
        ("B", "2.0 GiB"),
        ("C", "1.0 GiB"),
        (memory_bars.OTHER_USE, "5.0 GiB"),
    ]


def test_models_that_share_pages_with_a_file_leave_no_negative_rest() -> None:
    found = memory_bars.sizes(CPU, {ENTRY: 13 * GIB}, [ENTRY])
    assert found[-1] == (memory_bars.OTHER_USE, "0 bytes")


@pytest.mark.parametrize(
    ("place", "device", "there"),
    [
        ("cpu", "cpu", True),
        ("cuda", "cuda:0", True),
        ("cuda:1", "cuda:1", True),
        ("cuda:1", "cuda:0", False),
        ("cuda", "cpu", False),
        ("mps", "cpu", True),
    ],
)
def test_where_a_model_keeps_its_weights(place: str, device: str, there: bool) -> None:
    assert memory_bars._is_on(Memory(device, "", 0, 0), place) is there


def test_facts_let_nothing_in_and_break_paths_at_slashes() -> None:
    html = memory_bars.facts([("From", f"/a/b{SLY}"), (SLY, "1")], SLY)
    assert "<img" not in html and html.count("&lt;img") == 3
    assert "<dd>/<wbr>a/<wbr>b&lt;img" in html
