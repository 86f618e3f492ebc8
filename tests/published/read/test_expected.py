"""Seventeen real files: every figure of an independent script, to four digits."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.published.read import ResultFile, file_summary, find, read

pytestmark = pytest.mark.loads

RECORDED = Path(__file__).resolve().parents[4] / "shared" / "data" / "recorded"
# their name for a model's figure -> ours; "" for what stands elsewhere
RENAMED = {
    "tokens_per_s(sum tok/sum s3)": "tokens_per_s",
    "max_|total-sum|": "max_total_minus_stages",
    "tokens_corrected(+60)": "tokens_corrected",
    "tokens_without_prompt": "tokens_corrected",
    "max_generated": "max_tokens",
    "context": "prefill_length",
}
ACCEPTANCES = {
    "acceptance": (),
    "acceptance_raw": ("raw",),
    "acceptance_prompt_stripped": (),
    "acceptance_egpt": (),
    "acceptance_adapter": ("adapter",),
    "acceptance_adapted": ("adapted",),
    "acceptance_adapter_vs_target_shifted_by_1": ("adapter_shifted",),
    "acceptance_adapted_vs_target_shifted_by_1": ("adapted_shifted",),
}


@pytest.fixture(scope="module")
def files() -> dict[str, ResultFile]:
    if not RECORDED.is_dir():
        pytest.skip("the published result files (../shared/data/recorded) are not on this machine")
    return {file.name: file for file in read(find([RECORDED]))}


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    if not RECORDED.is_dir():
        pytest.skip("the published result files (../shared/data/recorded) are not on this machine")
    found = json.loads((RECORDED / "expected.json").read_text())
    assert len(found) == 17
    return dict(found)


def same(ours: float | None, theirs: float) -> bool:
    return ours is not None and math.isclose(ours, theirs, rel_tol=5e-5, abs_tol=1e-9)


def test_groups_counts_and_units(files: dict[str, ResultFile], expected: dict[str, Any]) -> None:
    for name, figures in expected.items():
        file = files[name]
        assert str(file.group) == figures["group"], name
        assert file.samples == figures["n"], name
        assert len(file.failures) == figures.get("n_errors", 0), name
        assert file.unit == figures.get("unit", "-"), name
        assert file.status == ("ok" if figures["n"] else "failed") and not file.problems, name
    assert files["expected.json"].status == "unknown"


@pytest.mark.loads
def test_every_figure(files: dict[str, ResultFile], expected: dict[str, Any]) -> None:
    """No figure of the script is left out, and none is off by more than its fourth digit."""
    compared = 0
    for name, figures in expected.items():
        document = file_summary.as_dict(files[name])
        for path, theirs in leaves(figures):
            ours = lookup(document, files[name], path)
            assert same(ours, theirs), (name, path, ours, theirs)
            compared += 1
    assert compared > 300


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    for key, inner in value.items():
        here = (*path, key)
        if here in (("bytes",), ("n",), ("n_errors",)):
            continue
        if isinstance(inner, dict):
            yield from leaves(inner, here)
        elif isinstance(inner, (int, float)):
            yield here, inner


def lookup(document: dict[str, Any], file: ResultFile, path: tuple[str, ...]) -> float | None:
    """Our figure for a path of theirs."""
    first, last = path[0], path[-1]
    if first == "models":
        return of_model(document, path[1], last)
    if first in ACCEPTANCES:
        found = document["acceptance"]
        for key in ACCEPTANCES[first]:
            found = found[key]
        return float(found[last])
    if first in ("parallel", "means"):
        return mean(document, "parallel." + last if first == "parallel" else last)
    if first in ("stage_timing", "recorded"):
        start = "results" if first == "recorded" else first
        return stated(document, ".".join([start, *path[1:]]))
    if first == "baseline":
        return of_model(document, "baseline", last)
    if first == "configs":
        return of_model(document, path[1], last)
    return elsewhere(document, file, first)


def elsewhere(document: dict[str, Any], file: ResultFile, key: str) -> float | None:
    totals = {"recorded_matched_total": "matched_tokens", "recorded_compared_total": "total_tokens"}
    if key in totals:
        return math.fsum(f.value for f in file.figures if f.name == f"acceptance.{totals[key]}")
    if key == "recorded_acceptance_mean":
        return mean(document, "acceptance.acceptance_rate")
    if key == "empty_egpt_text":
        return float(document["models"]["egpt"]["empty_texts"])
    if key == "sd_equals_vl":
        both = zip(file.of("sd"), file.of("vl"), strict=True)
        return sum(a.ids == b.ids for a, b in both) / len(file.of("vl"))
    models = {"draft": "eventgpt", "target": "videollava", "egpt": "egpt", "vl": "vl"}
    model, _, what = key.partition("_")
    return of_model(document, models[model], what)


def of_model(document: dict[str, Any], model: str, key: str) -> float | None:
    found = document["models"][model]
    key = RENAMED.get(key, key)
    if key.startswith("stats."):
        return stated(document, f"{model}.{key.removesuffix('(recorded)')}")
    for end, statistic in (("_mean_without_first", "mean_without_first"), ("_median", "median")):
        if key.endswith(end):
            return float(found["stages"][key.removesuffix(end) + "_time"][statistic])
    if key in found["stages"]:
        return float(found["stages"][key]["mean"])
    return float(found[key])


def mean(document: dict[str, Any], name: str) -> float | None:
    if name in document["figures"]:
        return float(document["figures"][name]["mean"])
    model, _, what = name.partition("_")
    return of_model(document, model, what)


def stated(document: dict[str, Any], path: str) -> float | None:
    return next((claim["stated"] for claim in document["stated"] if claim["path"] == path), None)


def test_the_comparison_can_fail(files: dict[str, ResultFile]) -> None:
    document = file_summary.as_dict(files["speculative_test_results.json"])
    ours = of_model(document, "videollava", "tokens")
    assert same(ours, 690.0) and not same(ours, 690.1)


def test_cost_ratios_per_token(files: dict[str, ResultFile]) -> None:
    """The published 0.695 of the run of 23, and over 1 against LLaVA-1.5."""
    from engine.published.read import answer_pairs

    five = answer_pairs.acceptance(files["parallel_prefill_5stages_20260127_142335.json"])
    four = answer_pairs.acceptance(files["speculative_test_results.json"])
    assert five and five.cost_ratio == pytest.approx(0.695, abs=0.001)
    assert four and four.cost_ratio and four.cost_ratio > 1
