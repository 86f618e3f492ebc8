"""Adds one row to RunOptions in the source of engine/types.py and looks for it in the product.

Run in a process of its own (test_made_up_option.py does); prints the places where it was found.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

ENGINE = Path(__file__).resolve().parents[1] / "engine"
ROW = """
    grain: int = option(
        0,
        title="Grain",
        words=lambda how: f"grain {how.grain}",
        box="pipeline",
        help="How coarse the pictures are.",
        low=0,
        high=9,
    )

"""
BEFORE = "    def ask(self, sample: Sample"  # the first method of RunOptions


def add_row() -> None:
    """Makes engine.types from the changed source, before anything imports it."""
    package, changed = ModuleType("engine"), ModuleType("engine.types")
    package.__path__ = [str(ENGINE)]
    sys.modules |= {"engine": package, "engine.types": changed}
    package.types = changed
    source = (ENGINE / "types.py").read_text(encoding="utf-8")
    assert source.count(BEFORE) == 1
    exec(compile(source.replace(BEFORE, ROW + BEFORE), "types.py", "exec"), changed.__dict__)


def flags() -> None:
    from engine.cli import bench, common, compare, studies

    for command, arguments in (
        (compare, ["compare", "--sample", "a", "--models", "m"]),
        (bench, ["bench"]),
        (studies, ["explain", "--sample", "a", "--model", "m", "--words", "car"]),
    ):
        parser = argparse.ArgumentParser()
        command.add(parser.add_subparsers())
        assert common.given_options(parser.parse_args(arguments)) == {}
        assert common.given_options(parser.parse_args([*arguments, "--grain", "3"])) == {"grain": 3}


def widgets_and_links() -> None:
    from streamlit.testing.v1 import AppTest

    from ui.compare import history

    def page() -> None:
        import streamlit as st

        from engine.storage.plan import Plan
        from ui.widgets.choices import pick_box, pick_run_options

        st.text(
            f"{pick_run_options()[0].grain} {pick_box('benchmark', 'pipeline', Plan)[0]['grain']}"
        )

    at = AppTest.from_function(page)
    at.query_params["compare_grain"] = "7"
    at.run()
    assert at.number_input(key="compare_grain").label == "Grain"
    assert at.text[0].value == "7 0"
    at.number_input(key="benchmark_grain").set_value(2).run()
    assert at.text[0].value == "7 2"
    # The browser writes the value to the page's address under this name.
    assert at.number_input(key="benchmark_grain").proto.query_param_key == "benchmark_grain"
    assert "compare_grain" in history.INPUTS


def chips() -> None:
    from engine.storage.plan import Plan, chips
    from engine.types import RunOptions, Sample
    from ui.compare import shown_inputs

    sample = Sample("s", "")
    usual, other = (RunOptions(grain=grain).ask(sample, "m", "Why?") for grain in (0, 3))
    assert shown_inputs.changed(other) == ("grain 3",)
    assert shown_inputs.changes([usual], sample, [other]) == ("grain",)
    words = Plan(("m",), ("s",), grain=3).settings
    assert [*chips([words])[0]] == ["grain 3"]


def start_command() -> None:
    from engine.storage.plan import Plan
    from ui.benchmark.run_choice import command

    dataset = SimpleNamespace(root=Path("/data"), samples=[SimpleNamespace(id="s")])
    assert "grain" not in command([Plan(("m",), ("s",))], dataset)
    assert command([Plan(("m",), ("s",), grain=3)], dataset).endswith("--grain 3")


def plan() -> None:
    from msgspec import convert, to_builtins

    from engine.errors import BadInput
    from engine.storage.plan import Plan

    found = Plan(("m",), ("s",), grain=3)
    assert to_builtins(found)["grain"] == 3 and convert(to_builtins(found), Plan) == found
    try:
        Plan(("m",), ("s",), grain=10)
    except BadInput as error:
        assert str(error) == "grain is 10: choose a value from 0 to 9."
    else:
        raise AssertionError("a value out of range was taken")


def comparability() -> None:
    from engine.analysis import compared
    from engine.storage.plan import Plan
    from engine.types import RunOptions, Sample

    base, new = (Plan(("m",), ("s",), grain=grain) for grain in (0, 3))
    assert base.differing(new, times=False) == {"grain": ("grain 0", "grain 3")}
    assert base.differing(base) == {}
    request = RunOptions(grain=3).ask(Sample("s", ""), "m", "Why?")
    assert compared.CONDITIONS["grain"](SimpleNamespace(request=request)) == "grain 3"


PLACES: tuple[Callable[[], None], ...] = (
    *(flags, widgets_and_links, chips, start_command, plan, comparability),
)

if __name__ == "__main__":
    add_row()
    for place in PLACES:
        place()
        sys.stdout.write(f"{place.__name__}\n")
