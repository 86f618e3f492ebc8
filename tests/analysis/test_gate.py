"""A gate's verdicts on runs made by hand, what it refuses, and how often it is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from engine.analysis import gate as gates
from engine.analysis import gate_checks
from engine.analysis.gate import GateReport, GateResult, gate, metric_names
from engine.analysis.gate_values import values_of
from engine.errors import BadInput
from engine.storage.result_rows import LoadFigures
from engine.storage.run_values import RunValues
from engine.types import DecodeConfig
from tests import fabricate

Make = Callable[[Iterable[dict[str, Any]]], RunValues]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """The values of a finished run of these rows, made once for equal rows."""
    known: dict[str, RunValues] = {}

    def made(rows: Iterable[dict[str, Any]]) -> RunValues:
        found = list(rows)
        key = json.dumps(found)
        if key not in known:
            known[key] = values_of(fabricate.run(tmp_path_factory.mktemp("runs") / "run", found))
        return known[key]

    return made


def again(values: RunValues) -> RunValues:
    """Another run with the same results."""
    header = replace(values.header, id=f"{values.id}-again")
    return msgspec.structs.replace(values, header=header)


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


def test_a_run_as_fast_is_no_worse(make: Make) -> None:
    report = gate(make(rows()), make(rows(seed=1)))
    assert report.verdict == "no worse"
    assert {one.metric for one in report.results} == {"total", "ttft", "tpot", "new_tokens"}
    total = result(report, "total")
    assert total.low is not None and total.high is not None
    assert 0.97 < total.low < total.change < total.high < 1.03
    assert (total.n, total.sequences, total.more_samples) == (14, 14, None)
    assert "no sample has a known right answer" in {one.reason for one in report.not_compared}


def test_a_planted_slow_down_is_worse(make: Make) -> None:
    report = gate(make(rows()), make(rows(slower=1.2, seed=1)))
    assert report.verdict == "worse"
    verdicts = {one.metric: one.verdict for one in report.results}
    assert verdicts == dict.fromkeys(("total", "ttft", "tpot"), "worse") | {
        "new_tokens": "no worse"
    }
    assert result(report, "total").change == pytest.approx(1.2, rel=0.02)


def test_faster_is_no_worse_and_more_tokens_a_second_are_faster(make: Make) -> None:
    slow, fast = make(rows(slower=1.5)), make(rows(seed=1))
    assert gate(slow, fast, ["total", "tokens_per_s"]).verdict == "no worse"
    report = gate(fast, slow, ["tokens_per_s"])
    assert result(report, "tokens_per_s").verdict == "worse"
    assert result(report, "tokens_per_s").change == pytest.approx(1 / 1.5, rel=0.02)


def test_noise_leaves_it_undecided_with_the_samples_that_would_decide(make: Make) -> None:
    report = gate(make(rows(noise=0.1)), make(rows(seed=3, noise=0.1)), ["total"])
    assert report.verdict == "undecided"
    more = result(report, "total").more_samples
    assert more is not None and more > 0
    many = gate(make(rows(14 + 2 * more, noise=0.1)),
                make(rows(14 + 2 * more, seed=3, noise=0.1)), ["total"])  # fmt: skip
    assert many.verdict == "no worse"


def test_fewer_than_six_sequences_are_undecided(make: Make) -> None:
    report = gate(make(rows(5)), make(rows(5, seed=1)), ["total"])
    total = result(report, "total")
    assert total.verdict == "undecided" and (total.low, total.high) == (None, None)
    assert "at least 6 sequences" in total.reason and total.more_samples is not None


def test_a_sequence_counts_once(make: Make) -> None:
    """12 samples of 2 sequences are not 12 independent ones."""

    def of_two(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row | {"sequence": f"q{index % 2}"} for index, row in enumerate(found)]

    total = result(gate(make(of_two(rows(12))), make(of_two(rows(12, seed=1))), ["total"]), "total")
    assert (total.verdict, total.n, total.sequences) == ("undecided", 12, 2)


def test_more_or_fewer_tokens_are_changed(make: Make) -> None:
    base = make(rows())
    for gaps in (2, 9):
        new = [fabricate.row("ev", f"s{n}", gaps=[2.0] * gaps) for n in range(14)]
        report = gate(base, make(new), ["new_tokens"])
        assert result(report, "new_tokens").verdict == "changed" and report.verdict == "worse"


def test_changed_answers_are_listed_and_decide_only_if_asked(make: Make) -> None:
    base, other = make(rows()), rows(seed=1)
    other[3]["token_ids"] = [100, 101, 7, 103, 104, 105]
    other[5] |= {"token_ids": [100, 101], "new_tokens": 2, "token_ms": [24.0, 26.0]}
    new = make(other)
    report = gate(base, new, ["total"])
    (answers,) = report.answers
    assert report.verdict == "no worse" and answers.same == 12
    first, second = answers.changed
    assert (first.sample, first.position, first.base_id, first.new_id) == ("s3", 2, 102, 7)
    assert (second.position, second.new_id, second.new_tokens) == (2, None, 2)
    assert gate(base, new, ["answers"]).verdict == "worse"
    assert gate(base, make(rows(seed=2)), ["answers"]).verdict == "no worse"


def test_a_lost_answer_is_worse(make: Make) -> None:
    new = [*rows(seed=1)[:-1], fabricate.failed("ev", "s13")]
    report = gate(make(rows()), make(new))
    assert report.verdict == "worse" and report.answers[0].lost == ("s13",)
    assert result(report, "total").n == 13
    none = gate(make(rows()), make([fabricate.failed("ev", f"s{n}") for n in range(14)]))
    assert none.verdict == "worse" and len(none.answers[0].lost) == 14 and not none.results


def test_accuracy_of_choices(make: Make) -> None:
    base = make(fabricate.exam(wrong=1000, models=["ev"]))
    few, many = (make(fabricate.exam(wrong=wrong, models=["ev"])) for wrong in (12, 2))
    equal = result(gate(base, again(base), ["accuracy"]), "accuracy")
    assert equal.verdict == "no worse" and equal.base > 0.98
    worse = result(gate(base, many, ["accuracy"]), "accuracy")
    assert worse.verdict == "worse" and worse.change == pytest.approx(-0.5, abs=0.02)
    unclear = result(gate(base, few, ["accuracy"]), "accuracy")
    assert unclear.verdict == "undecided" and unclear.more_samples
    assert result(gate(many, base, ["accuracy"]), "accuracy").verdict == "no worse"


def test_equal_ids_prove_an_equal_accuracy_and_other_ids_do_not(make: Make) -> None:
    truth = {"curve": "left"}
    answer = {"truth": truth, "text": "The road curves to the left."}
    base, new = make(rows(**answer)), rows(seed=1, **answer)
    found = result(gate(base, make(new), ["accuracy"]), "accuracy")
    assert found.verdict == "no worse" and found.reason == "every answer is the same"
    new[0]["token_ids"] = [9, 101, 102, 103, 104, 105]
    found = result(gate(base, make(new), ["accuracy"]), "accuracy")
    assert found.verdict == "undecided" and found.change == 0.0


# What is refused, each beside the same runs without it, which are compared.
def refused(base: RunValues, new: RunValues, *words: str) -> None:
    with pytest.raises(BadInput) as caught:
        gate(base, new)
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert text.endswith(".") and text.count(". ") == 0


def settings(values: RunValues, **plan: Any) -> RunValues:
    header = values.header
    return msgspec.structs.replace(
        values, header=replace(header, plan=replace(header.plan, **plan))
    )


def model(values: RunValues, **changed: Any) -> RunValues:
    models = tuple(msgspec.structs.replace(one, **changed) for one in values.models)
    return msgspec.structs.replace(values, models=models)


def test_control_the_same_runs_are_compared(make: Make) -> None:
    assert gate(make(rows()), make(rows(seed=1))).verdict == "no worse"


def test_other_samples_are_refused(make: Make) -> None:
    base = make(rows())
    refused(base, base, "same run")
    refused(base, make(rows(12)), "different samples", "lacks 2 of the 14")
    other = [row | {"sample": f"t{index}"} for index, row in enumerate(rows())]
    refused(base, make(other), "no sample in common")
    new = make(rows(seed=1))
    header = replace(new.header, dataset=replace(new.header.dataset, digest="another"))
    refused(base, msgspec.structs.replace(new, header=header), "same names")


@pytest.mark.parametrize(
    "plan",
    [
        {"decode": DecodeConfig(max_new_tokens=32)},
        {"prompt": "Why?"},
        {"frames": "spread"},
        {"pixels": "fast"},
        {"perturb_seed": 3, "perturb": "drop"},
        {"batch": 4},
        {"cache": "use"},
    ],
    ids=lambda plan: next(iter(plan)),
)
def test_other_settings_are_refused(make: Make, plan: dict[str, Any]) -> None:
    from engine.media_options import Perturbation

    if "perturb" in plan:
        plan = plan | {"perturb": (Perturbation("drop", 0.3),)}
    refused(make(rows()), settings(make(rows(seed=1)), **plan), "differ in", "BASE", "NEW")


def test_more_repeats_are_not_refused(make: Make) -> None:
    assert gate(make(rows()), settings(make(rows(seed=1)), repeat=3)).verdict == "no worse"


def test_an_unfinished_run_is_refused(make: Make) -> None:
    new = msgspec.structs.replace(make(rows(seed=1)), finished=False)
    refused(make(rows()), new, "not finished", "--resume")


BUSY = LoadFigures(0.0, 1000.0, 500.0, 2, 1, waited_ms=600.0)


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
    idle = {"load": msgspec.structs.replace(BUSY, waited_ms=0.0)}
    base = model(make(rows()), **idle)
    new = model(make(rows(seed=1)), **idle)
    assert gate(base, new).verdict == "no worse"
    both = {"load": BUSY} if "load" in changed else {}
    refused(model(base, **both), model(new, **changed), word, "--metric tokens,accuracy,answers")
    without = gate(base, model(new, **changed), ["new_tokens", "answers"])
    assert without.verdict == "no worse"


def test_other_models_are_said_and_none_in_common_is_refused(make: Make) -> None:
    vl = [row | {"model": "vl"} for row in rows(seed=1)]
    report = gate(make(rows()), make([*rows(seed=1), *vl]))
    assert report.labels == ("ev",) and "Only in NEW, so not compared: vl." in report.notes
    refused(make(rows()), make(vl), "no model in common")


def test_a_report_of_times_warns_of_a_machine_that_changes(make: Make) -> None:
    base, new = make(rows()), make(rows(seed=1))
    assert gate_checks.DRIFT in gate(base, new).notes
    assert gate_checks.DRIFT not in gate(base, new, metric_names("tokens,answers")).notes


def test_names_from_a_file_stay_on_one_line(make: Make) -> None:
    evil = again(model(make(rows()), label="a|b\n# hi"))
    with pytest.raises(BadInput) as caught:
        gate(make(rows()), evil)
    assert "\n" not in str(caught.value) and "a|b" in str(caught.value)


@pytest.mark.parametrize("value", [0.0, -3.0, 1e-300])
def test_times_that_were_never_measured_have_no_ratio(make: Make, value: float) -> None:
    base = make(rows())
    samples = {
        name: msgspec.structs.replace(one, values={**one.values, "total": value})
        for name, one in base.models[0].samples.items()
    }
    report = gate(model(base, samples=samples), make(rows(seed=1)))
    assert "a value of 0 has no ratio" in {one.reason for one in report.not_compared}
    assert "total" not in {one.metric for one in report.results}


def test_another_checkpoint_is_said(make: Make) -> None:
    new = make(rows(seed=1))
    other = replace(new.header.models[0], digest="another-digest")
    header = replace(new.header, models=(other,), code="other code")
    report = gate(make(rows()), msgspec.structs.replace(new, header=header))
    assert report.verdict == "no worse"
    assert any("another checkpoint" in note for note in report.notes)
    assert "The engine's code or libraries differ." in report.notes


def test_metrics_are_named() -> None:
    assert metric_names("total, tokens,tok/s,total") == ("total", "new_tokens", "tokens_per_s")
    with pytest.raises(BadInput, match="Did you mean total"):
        metric_names("totall")
    with pytest.raises(BadInput, match="No metric"):
        metric_names(" , ")


def test_holm_leaves_chance_findings_undecided(make: Make) -> None:
    """A p of 0.02 decides alone, but not among four."""
    tested = []
    base, new = make(rows()), make(rows(seed=1))
    for metric in ("total", "ttft", "tpot", "vision"):
        found = gates._test("ev", metric, base.models[0], new.models[0], 0.05)
        assert isinstance(found, gates._Tested)
        chance = 0.02 if metric == "total" else 0.9
        tested.append(replace(found, result=replace(found.result, p_no_worse=0.9, p_worse=chance)))
    assert [one.verdict for one in gates._decided(tested)] == ["undecided"] * 4
    assert gates._decided(tested[:1])[0].verdict == "worse"


@pytest.mark.slow
def test_few_false_alarms_and_few_misses_on_the_margin(make: Make) -> None:
    """Pairs without a difference, a slow-down of exactly the margin, and one far beyond it."""
    alarms = {1.0: 0, 1.05: 0, 1.2: 0}
    passes = dict.fromkeys(alarms, 0)
    base = make(rows())
    for seed in range(60):
        for slower in alarms:
            report = gate(_noisy(base, seed, 1.0), _noisy(base, seed + 1000, slower), ["total"])
            alarms[slower] += report.verdict == "worse"
            passes[slower] += report.verdict == "no worse"
    assert alarms[1.0] == 0 and alarms[1.05] <= 6 and alarms[1.2] >= 55
    assert passes[1.0] >= 40 and passes[1.05] <= 6 and passes[1.2] == 0


def _noisy(values: RunValues, seed: int, slower: float) -> RunValues:
    """Totals with heavy tails."""
    noise = np.exp(0.02 * np.random.default_rng(seed).standard_t(3, size=14))
    (one,) = values.models
    samples = {
        name: msgspec.structs.replace(of, values={"total": 100 * slower * float(factor)})
        for (name, of), factor in zip(one.samples.items(), noise, strict=True)
    }
    header = replace(values.header, id=f"run-{seed}")
    models = (msgspec.structs.replace(one, samples=samples),)
    return msgspec.structs.replace(values, header=header, models=models)
