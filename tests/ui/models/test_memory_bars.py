"""The bar of a device: its models in the file's order, the rest, the free."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from engine.machine.device import Memory
from engine.palette import FAMILY_COLOURS
from tests.report.test_card_rows import ENTRY
from ui.models import memory_bars

GIB = 2**30
SLY = '<img src=x onerror="1">'
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


def test_facts_let_nothing_in_and_break_paths_at_slashes() -> None:
    html = memory_bars.facts([("From", f"/a/b{SLY}"), (SLY, "1")], SLY)
    assert "<img" not in html and html.count("&lt;img") == 3
    assert "<dd>/<wbr>a/<wbr>b&lt;img" in html


def test_a_bar_is_to_scale_and_says_itself_in_words() -> None:
    parts = [
        memory_bars.BarPart("M", 2**30, "#111"),
        memory_bars.BarPart("none", 0, "#222"),
        memory_bars.BarPart(memory_bars.FREE, 3 * 2**30, None),
    ]
    html = memory_bars.bar("cpu", parts)
    assert re.findall(r"width: ([\d.]+)%", html) == ["25.000"]
    assert 'role="img" aria-label="cpu: M 1.0 GiB, none 0 bytes, free 3.0 GiB"' in html
    assert html.count("model-key") - html.count("model-keys") == 3  # each part is named below


def test_a_bar_of_nothing_does_not_divide_by_it() -> None:
    html = memory_bars.bar(SLY, [memory_bars.BarPart(SLY, 0, "#111")])
    assert "<img" not in html and "width" not in html
