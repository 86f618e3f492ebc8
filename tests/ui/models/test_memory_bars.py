"""The bar of a device: its models in the file's order, the rest, the free."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.machine.device import Memory
from engine.palette import FAMILY_COLOURS
from tests.ui.models.test_card_rows import ENTRY
from ui.models import memory_bars

GIB = 2**30
CPU = Memory("cpu", "system memory", 32 * GIB, 20 * GIB)


def test_parts_add_up_to_the_device_in_a_fixed_order() -> None:
    first, second = replace(ENTRY, name="a", label="A"), replace(ENTRY, name="b", label="B")
    gone = replace(ENTRY, name="c", label="C", family="eventgpt")
    held = {gone: GIB, second: 2 * GIB, first: 4 * GIB}
    found = memory_bars.parts(CPU, held, [first, second])
    assert [(part.name, part.size // GIB) for part in found] == [
        ("A", 4),
        ("B", 2),
        ("C", 1),
        (memory_bars.OTHER_USE, 5),
        ("free", 20),
    ]
    assert found[2].colour == FAMILY_COLOURS["eventgpt"] and found[-1].colour is None
    assert sum(part.size for part in found) == CPU.total


def test_models_that_share_pages_with_a_file_leave_no_negative_rest() -> None:
    found = memory_bars.parts(CPU, {ENTRY: 13 * GIB}, [ENTRY])
    assert {part.name: part.size for part in found}[memory_bars.OTHER_USE] == 0


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
