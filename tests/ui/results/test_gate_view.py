"""The command of the view, and which run is proposed as BASE."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.analysis import gate
from engine.storage.run_details import RunDetails
from engine.storage.run_store import RunInfo
from engine.storage.run_values import RunValues
from tests import fabricate
from ui.results import gate_view
from ui.results.result_sources import Source


def source(name: str, **more: Any) -> Source:
    given = {"state": "finished", "created": "2026-01-01T10:00:00+00:00", "models": ("ev",)} | more
    return Source(RunInfo(name, Path("/runs") / name, **given))


def test_the_command_has_only_what_differs_from_the_defaults() -> None:
    sides = gate_view.Sides(source("a"), source("b"))
    assert gate_view.command(sides, gate.DEFAULT, 0.05) == "python -m engine gate a b"
    told = gate_view.command(sides, ("total", "answers"), 0.025)
    assert told == "python -m engine gate a b --metric total,answers --margin 2.5%"
    values = RunValues(fabricate.header(), True, ())
    pinned = gate_view.Sides(gate_view.PinnedFile("the base.json", "", values), source("b"))
    told = gate_view.command(pinned, gate.DEFAULT, 0.05)
    assert told == "python -m engine gate 'the base.json' b" and len(pinned.runs) == 1


def test_the_pinned_run_then_an_opened_one_then_one_like_it() -> None:
    new = source("new", settings={"length": "forced"})
    other = source("other")
    alike = source("alike", settings={"length": "forced"})
    stopped = source("stopped", state="stopped", settings={"length": "forced"})
    pinned = replace(source("pinned"), baseline=True)
    every = [stopped, other, alike, pinned]
    assert gate_view._proposed(new, [new], every) is pinned
    assert gate_view._proposed(new, [new, other], every[:3]) is other
    assert gate_view._proposed(new, [new], every[:3]) is alike
    assert gate_view._proposed(new, [new], every[:2]) is other


def test_a_name_in_a_link_does_not_depend_on_the_baseline() -> None:
    plain = source("a")
    assert gate_view._named(plain) == "2026-01-01 10:00 UTC · a"
    assert gate_view._named(replace(plain, baseline=True)) == gate_view._named(plain)
    assert gate_view._named(replace(plain, details=RunDetails("night"))) == "night · a"
