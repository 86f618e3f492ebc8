"""Colours can be told from the ground in both themes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from engine.analysis.compared import PARTS
from engine.palette import SERVER_COLOURS, STAGE_COLOURS, TONES, UNACCOUNTED
from engine.types import SERVER, STAGES

CONFIG = Path(__file__).resolve().parents[3] / ".streamlit" / "config.toml"


def config() -> dict[str, Any]:
    return tomllib.loads(CONFIG.read_text(encoding="utf-8"))


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    dark, light = sorted((luminance(one), luminance(two)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("base", ["light", "dark"])
def test_marks_stand_out_from_the_ground(base: str) -> None:
    ground = config()["theme"][base]["backgroundColor"]
    for colour in (*STAGE_COLOURS.values(), *TONES.values()):
        assert contrast(colour, ground) >= 3, colour


@pytest.mark.parametrize("base", ["light", "dark"])
def test_text_is_readable(base: str) -> None:
    colours = config()["theme"][base]
    for ground in (colours["backgroundColor"], colours["sidebar"]["backgroundColor"]):
        assert contrast(colours["textColor"], ground) >= 7
        assert contrast(colours["primaryColor"], ground) >= 3


def test_every_stage_has_its_own_colour_and_meaning() -> None:
    assert tuple(STAGE_COLOURS) == (*STAGES, UNACCOUNTED)
    assert set(PARTS) - {SERVER} == set(STAGE_COLOURS)
    colours = [*STAGE_COLOURS.values(), SERVER_COLOURS[SERVER]]
    assert len(set(colours)) == len(PARTS)


def test_no_other_style_sheet_stands_where_a_dialog_replaces_it() -> None:
    root = CONFIG.parents[1]
    drawing = [
        path.name
        for path in (root / "app.py", *root.glob("ui/**/*.py"), *root.glob("pages/*.py"))
        if re.search(r'html\(\s*f?"<style', path.read_text(encoding="utf-8"))
    ]
    assert drawing == ["app.py"]


def test_the_server_listens_on_this_machine_alone() -> None:
    assert config()["server"]["address"] == "127.0.0.1"
    assert config()["browser"]["gatherUsageStats"] is False
