"""A gate's verdicts on runs made by hand, what it refuses, and how often it is wrong."""

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.analysis import gate as gates
from engine.analysis import model_summary
from engine.analysis.gate import (
    GateReport,
    GateResult,
    ModelValues,
    RunValues,
    SampleValues,
    gate,
    metric_names,
    values_of,
)
from engine.analysis.results_table import frame
from engine.errors import BadInput
from engine.machine.load import MachineLoad
from engine.media_options import perturbations
from engine.report import gate_text
from engine.types import DecodeConfig
from tests import fabricate

Make = Callable[[Iterable[dict[str, Any]]], RunValues]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """The values of a finished run of these rows, made once for equal rows; all take turns."""
    known: dict[str, RunValues] = {}

    def made(rows: Iterable[dict[str, Any]]) -> RunValues:
        found = list(rows)
        key = json.dumps(found)
        if key not in known:
            run = fabricate.run(tmp_path_factory.mktemp("runs") / "run", found)
            known[key] = values_of(replace(run, header=replace(run.header, together="one")))
        return known[key]

    return made


def again(values: RunValues) -> RunValues:
    """Another run with the same results."""
    header = replace(values.header, id=f"{values.id}-again")
    return replace(values, header=header)


def by_turns(values: RunValues, together: str = "one") -> RunValues:
    return replace(values, header=replace(values.header, together=together))


def rows(
    n: int = 14, slower: float = 1.0, seed: int = 0, noise: float = 0.01, **more: Any
) -> list[dict[str, Any]]:
    """n samples whose times all vary by `noise`, as fast as others of another seed / `slower`."""
    factors = slower * np.exp(np.random.default_rng(seed).normal(0, noise, size=n))
    return [
        fabricate.row(
            "ev",
            f"s{index}",
            stages={name: ms * factor for name, ms in fabricate.STAGES.items()},
            prefill=8.0 * factor,
            gaps=[2.0 * factor] * 5,
            **more,
        )
        for index, factor in enumerate(factors)
    ]


def result(report: GateReport, metric: str) -> GateResult:
    (found,) = (one for one in report.results if one.metric == metric)
    return found


@pytest.mark.loads
def test_a_run_as_fast_is_no_worse(make: Make) -> None:
    report = gate(make(rows()), make(rows(seed=1)))
    assert report.verdict == "no worse"
    assert {one.metric for one in report.results} == {"total", "ttft", "tpot", "new_tokens"}
    total = result(report, "total")
    assert total.low is not None and total.high is not None
    assert 0.97 < total.low < total.change < total.high < 1.03
    assert (total.n, total.sequences) == (14, 14)
    assert "no sample has a known right answer" in {one.reason for one in report.not_compared}


def test_a_planted_slow_down_is_worse(make: Make) -> None:
    report = gate(make(rows()), make(rows(slower=1.2, seed=1)))
    assert report.verdict == "worse"
    times = {one.metric for one in report.results if one.verdict == "worse"}
    assert times == {"total", "ttft", "tpot"}
    assert result(report, "new_tokens").verdict == "no worse"
    assert result(report, "total").change == pytest.approx(1.2, rel=0.02)


def test_faster_is_no_worse_and_more_tokens_a_second_are_faster(make: Make) -> None:
    slow, fast = make(rows(slower=1.5)), make(rows(seed=1))
    assert gate(slow, fast, ["total", "tokens_per_s"]).verdict == "no worse"
    report = gate(fast, slow, ["tokens_per_s"])
    assert result(report, "tokens_per_s").verdict == "worse"
    assert result(report, "tokens_per_s").change == pytest.approx(1 / 1.5, rel=0.02)


@pytest.mark.loads
def test_noise_leaves_it_undecided_and_more_samples_decide(make: Make) -> None:
    for many, verdict in ((14, "undecided"), (120, "no worse")):
        base, new = make(rows(many, noise=0.1)), make(rows(many, seed=3, noise=0.1))
        assert gate(base, new, ["total"]).verdict == verdict


def test_a_sequence_counts_once(make: Make) -> None:
    """12 samples of 2 sequences are not 12 independent ones."""
    base, new = (
        make(row | {"sequence": f"q{index % 2}"} for index, row in enumerate(rows(12, seed=seed)))
        for seed in (0, 1)
    )
    total = result(gate(base, new, ["total"]), "total")
    assert (total.verdict, total.n, total.sequences) == ("undecided", 12, 2)
    assert (total.low, total.high) == (None, None) and "at least 6 sequences" in total.reason


def test_a_lost_answer_is_worse(make: Make) -> None:
    new = [*rows(seed=1)[:-1], fabricate.failed("ev", "s13")]
    report = gate(make(rows()), make(new))
    assert report.verdict == "worse" and report.answers[0].lost == ("s13",)
    assert result(report, "total").n == 13
    none = gate(make(rows()), make([fabricate.failed("ev", f"s{n}") for n in range(14)]))
    assert none.verdict == "worse" and len(none.answers[0].lost) == 14 and not none.results


@pytest.mark.loads
def test_equal_ids_prove_an_equal_accuracy_and_other_ids_do_not(make: Make) -> None:
    truth = {"curve": "left"}
    answer = {"truth": truth, "text": "The road curves to the left."}
    base, new = make(rows(**answer)), rows(seed=1, **answer)
    found = result(gate(base, make(new), ["accuracy"]), "accuracy")
    assert found.verdict == "no worse" and found.reason == "every answer is the same"
    tokens = result(gate(base, make(new), ["new_tokens"]), "new_tokens")
    assert tokens.verdict == "no worse" and tokens.reason == found.reason
    new[0]["token_ids"] = [9, 101, 102, 103, 104, 105]
    found = result(gate(base, make(new), ["accuracy"]), "accuracy")
    assert found.verdict == "undecided" and found.change == 0.0


def test_what_was_asked_for_and_not_compared_is_undecided(make: Make) -> None:
    truth = {"truth": {"curve": "left"}, "text": "The road curves to the left."}
    known, bare = make(rows(**truth)), make(rows(seed=1))
    half = make([row | (truth if n % 2 else {}) for n, row in enumerate(rows(seed=1))])
    for new in (bare, half):  # a truth that is in BASE only never passes, asked for or not
        for metrics in (["accuracy"], ["new_tokens", "accuracy"], None):
            report = gate(known, new, metrics)
            assert report.verdict == "undecided"
            (missing,) = (one for one in report.not_compared if one.metric == "accuracy")
            assert missing.undecided and "accuracy of ev" in gate_text.headline(report)
    assert gate(bare, again(bare), ["new_tokens", "accuracy"]).verdict == "undecided"
    assert gate(bare, again(bare)).verdict == "no worse"  # not asked for, and BASE has none
    assert gate(known, again(known)).verdict == "no worse"
    untimed = make([row | {"tpot_ms": None} for row in rows(seed=1)])
    assert gate(bare, untimed).verdict == "undecided"
    (one,) = bare.models
    none = {name: replace(of, values={}) for name, of in one.samples.items()}
    without = model(bare, samples=none)
    report = gate(without, again(without))
    assert report.verdict == "undecided" and "no metric has values" in gate_text.headline(report)


@pytest.mark.loads
@pytest.mark.parametrize(
    ("many", "before", "now", "expected"),
    [(400, 1000, 50, "no worse"), (96, 1000, 12, "undecided"), (96, 1000, 2, "worse"),
     (96, 2, 1000, "no worse")],
)  # fmt: skip
def test_the_margin_of_accuracy_is_on_the_side_of_fewer_right_answers(
    make: Make, many: int, before: int, now: int, expected: str
) -> None:
    """2 points fewer right are within a margin of 5, whose mirror image +5 they are far below."""
    base, new = (make(fabricate.exam(many, wrong, ["ev"])) for wrong in (before, now))
    found = result(gate(base, new, ["accuracy"]), "accuracy")
    assert found.verdict == expected
    assert found.base == 1 - math.ceil(many / before) / many
    assert found.change == pytest.approx(1 - math.ceil(many / now) / many - found.base)


# What is refused, each beside the same runs without it, which are compared.
def refused(base: RunValues, new: RunValues, *words: str) -> None:
    with pytest.raises(BadInput) as caught:
        gate(base, new)
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert text.endswith(".") and text.count(". ") == 0


def settings(values: RunValues, **plan: Any) -> RunValues:
    header = values.header
    return replace(values, header=replace(header, plan=replace(header.plan, **plan)))


def model(values: RunValues, **changed: Any) -> RunValues:
    models = tuple(replace(one, **changed) for one in values.models)
    return replace(values, models=models)


def test_other_samples_are_refused(make: Make) -> None:
    base = make(rows())
    refused(base, base, "named twice")
    refused(base, make(rows(12)), "differ in samples", "lacks 2 and has 0 others")
    other = [row | {"sample": f"t{index}"} for index, row in enumerate(rows())]
    refused(base, make(other), "lacks 14 and has 14 others")
    new = make(rows(seed=1))
    header = replace(new.header, dataset=replace(new.header.dataset, digest="another"))
    refused(base, replace(new, header=header), "same names")


@pytest.mark.parametrize(
    "plan",
    [
        {"decode": DecodeConfig(max_new_tokens=32)},
        {"prompt": "Why?"},
        {"frames": "spread"},
        {"perturb_seed": 3, "perturb": perturbations("drop:0.3")},
        {"batch": 4},
        {"cache": "use"},
    ],
    ids=lambda plan: next(iter(plan)),
)
def test_other_settings_are_refused(make: Make, plan: dict[str, Any]) -> None:
    refused(make(rows()), settings(make(rows(seed=1)), **plan), "differ in", "BASE", "NEW")


def test_more_repeats_are_not_refused(make: Make) -> None:
    assert gate(make(rows()), settings(make(rows(seed=1)), repeat=3)).verdict == "no worse"


def test_an_unfinished_run_is_refused(make: Make) -> None:
    new = replace(make(rows(seed=1)), finished=False)
    refused(make(rows()), new, "not finished", "start both again")
    refused(make(rows()), by_turns(new, ""), "not finished", "--resume")


BUSY = MachineLoad(0.0, 1000.0, 500.0, 2, 1, waited_ms=600.0)


@pytest.mark.parametrize(
    "changed, word",
    [
        ({"device": "A100"}, "different types of devices"),
        ({"shared": "shared device"}, "shared device"),
        ({"cached": 3}, "3 results"),
        ({"load": BUSY}, "busy"),
    ],
)
def test_times_that_do_not_compare_are_refused_and_answers_are_not(
    make: Make, changed: dict[str, Any], word: str
) -> None:
    idle = {"load": replace(BUSY, waited_ms=0.0)}
    base = model(make(rows()), **idle)
    new = model(make(rows(seed=1)), **idle)
    assert gate(base, new).verdict == "no worse"
    both = {"load": BUSY} if "load" in changed else {}
    refused(model(base, **both), model(new, **changed), word, "--metric tokens,accuracy,answers")
    without = gate(base, model(new, **changed), ["new_tokens", "answers"])
    assert without.verdict == "no worse"


@pytest.mark.loads
def test_other_models_are_said_and_none_in_common_is_refused(make: Make) -> None:
    vl = [row | {"model": "vl"} for row in rows(seed=1)]
    report = gate(make(rows()), make([*rows(seed=1), *vl]))
    assert [one.label for one in report.answers] == ["ev"]
    assert "Only in NEW, so not compared: vl." in report.notes
    refused(make(rows()), make(vl), "no model in common")


@pytest.mark.parametrize("together", ["", "another"])
def test_times_of_runs_that_were_measured_apart_are_undecided(make: Make, together: str) -> None:
    base = by_turns(make(rows()), together and "one")
    slow = by_turns(make(rows(slower=1.5, seed=1)), together)
    report = gate(base, slow)
    verdicts = {one.metric: (one.verdict, one.low) for one in report.results}
    apart = ("undecided", None)
    assert {verdicts[name] for name in ("total", "ttft", "tpot")} == {apart}
    assert verdicts["new_tokens"][0] == "no worse" and report.tests == 1
    assert report.verdict == "undecided" and gates.APART in report.notes
    busy = model(slow, load=BUSY, device="A100")  # no figure of it decides, so it is not refused
    assert gate(base, busy).verdict == "undecided"
    identities = gate(base, slow, metric_names("tokens,answers"))
    assert identities.verdict == "no worse" and gates.APART not in identities.notes
    other = rows(seed=1)
    other[3]["token_ids"] = [100, 101, 7, 103, 104, 105]
    assert gate(base, by_turns(make(other), together), ["answers", "total"]).verdict == "worse"


@pytest.mark.loads
def test_the_ratio_of_each_turn_counts(make: Make) -> None:
    """In some turns the machine is twice as slow for both sides, more often for some samples."""
    chance = np.random.default_rng(5)
    speeds = chance.choice([1.0, 2.0], size=(14, 4))

    def side(slower: float) -> list[dict[str, Any]]:
        return [
            fabricate.row("ev", f"s{index}", repeat=repeat,
                          gaps=[2.0 * slower * speed * np.exp(chance.normal(0, 0.01))] * 5)
            for index in range(14)
            for repeat, speed in enumerate(speeds[index])
        ]  # fmt: skip

    alike = result(gate(make(side(1.0)), make(side(1.0)), ["tpot"]), "tpot")
    slower = result(gate(make(side(1.0)), make(side(1.15)), ["tpot"]), "tpot")
    assert (alike.verdict, slower.verdict) == ("no worse", "worse")
    assert slower.high is not None and slower.low is not None and slower.high - slower.low < 0.03


def test_the_medians_are_those_of_every_other_table(make: Make, tmp_path: Path) -> None:
    """Of all repeats; the median of the samples' medians is another figure here, 2 ms."""
    found = [
        fabricate.row("ev", f"s{index}", repeat=repeat, gaps=[gap] * 5)
        for index, gaps in enumerate([(1.0, 1.0, 4.0), (2.0, 2.0, 5.0), (6.0, 7.0, 8.0)])
        for repeat, gap in enumerate(gaps)
    ]
    values = make(found)
    assert values.models[0].samples["s2"].values["tpot"] == {0: 6.0, 1: 7.0, 2: 8.0}
    shown = model_summary.figures(frame([fabricate.run(tmp_path / "run", found)]))
    figure = model_summary.find(shown, "ev", "tpot")
    gated = result(gate(values, again(values), ["tpot"]), "tpot")
    assert figure is not None and gated.base == gated.new == figure.median == 4.0


def test_names_from_a_file_stay_on_one_line(make: Make) -> None:
    evil = again(model(make(rows()), label="a|b\n# hi"))
    with pytest.raises(BadInput) as caught:
        gate(make(rows()), evil)
    assert "\n" not in str(caught.value) and "a|b" in str(caught.value)


@pytest.mark.parametrize("value", [0.0, -3.0])
def test_times_that_were_never_measured_have_no_ratio(make: Make, value: float) -> None:
    base = make(rows())
    samples = {
        name: replace(one, values={**one.values, "total": {0: value}})
        for name, one in base.models[0].samples.items()
    }
    report = gate(model(base, samples=samples), make(rows(seed=1)))
    assert report.verdict == "undecided"  # BASE has values that were not compared
    assert "a value of 0 has no ratio" in {one.reason for one in report.not_compared}
    assert "total" not in {one.metric for one in report.results}


def test_another_checkpoint_is_said(make: Make) -> None:
    new = make(rows(seed=1))
    other = replace(new.header.models[0], digest="another-digest")
    header = replace(new.header, models=(other,), code="other code")
    report = gate(make(rows()), replace(new, header=header))
    assert report.verdict == "no worse"
    assert any("another checkpoint" in note for note in report.notes)
    assert "The engine's code or libraries differ." in report.notes


def test_metrics_are_named() -> None:
    assert metric_names("total, tokens,tok/s,total") == ("total", "new_tokens", "tokens_per_s")
    with pytest.raises(BadInput, match="'totall' is not a metric: choose among"):
        metric_names("totall")
    with pytest.raises(BadInput, match="No metric"):
        metric_names(" , ")


ONE = GateResult(
    label="ev", metric="total", unit="ratio", verdict="undecided", n=9, sequences=9, base=1.0,
    new=1.0, change=1.0, low=0.9, high=1.1, p_no_worse=1.0, p_worse=1.0,
)  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "worse"), [("total", 1.25), ("tokens_per_s", 0.8), ("new_tokens", 1.25)]
)
def test_beyond_the_limit_is_worse_and_before_it_is_not(metric: str, worse: float) -> None:
    limits = gates.limits(replace(ONE, metric=metric), 0.25)
    assert worse in limits and len(limits) == (2 if metric == "new_tokens" else 1)

    def values(value: float) -> ModelValues:
        samples = {f"s{n}": SampleValues(sequence=f"q{n}", values={metric: {0: value}})
                   for n in range(8)}  # fmt: skip
        return ModelValues(label="ev", model="ev", device="", shared="", cached=0, load=None,
                           samples=samples)  # fmt: skip

    for factor, expected in ((1.01, True), (0.99, False)):
        new = values(10.0 * worse**factor)  # a little more of the same change, or a little less
        tested = gates._test("ev", metric, values(10.0), new, 0.25, asked=False)
        assert isinstance(tested, GateResult) and (tested.p_worse <= gates.TAIL) is expected


def test_accuracy_is_in_points() -> None:
    points = replace(ONE, metric="accuracy", unit="points", change=-0.02)
    assert gates.limits(points, 0.05) == (-0.05,)
    assert gates.in_percent(points, -0.05) == -5.0
    assert gates.in_percent(ONE, 1.05) == pytest.approx(5.0)
