"""What a finding says that a file states stands in the file, with the digits that are shown."""

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from engine.published.audit import AuditFinding, audit
from engine.published.read import read_bytes
from tests.published.read import synthetic as made

RECORDED = Path(__file__).resolve().parents[4] / "shared" / "data" / "recorded"
STATED = re.compile(
    r"(?:\bstate[sd]?\b|\bsays\b|\bcounts\b|"
    r"(?:speed-?up|acceptance|total|ratio|context) of(?! the rows))"
    r"[^0-9;.]{0,40}?(-?\d[\d,]*(?:\.\d+)?)(%| ms)?"
)


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from numbers(inner)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield float(value)


def stands(shown: str, unit: str, held: set[float]) -> bool:
    """Whether some number of the file is the one shown, rounded to its digits."""
    told = Decimal(shown.replace(",", ""))
    half = float(Decimal(1).scaleb(int(told.as_tuple().exponent))) / 2
    scales = {"%": (100.0,), " ms": (1.0, 1000.0)}.get(unit, (1.0,))
    return any(abs(scale * one - float(told)) <= half * (1 + 1e-6)
               for one in held for scale in scales)  # fmt: skip


def wrong(finding: AuditFinding, held: set[float]) -> list[str]:
    """What the finding says is stated and is not there."""
    found = [shown + unit for shown, unit in STATED.findall(finding.message)
             if not stands(shown, unit, held)]  # fmt: skip
    for key, value in finding.figures.items():
        if key in ("stated", "stated_ms") and not any(
            abs(scale * one - value) <= 1e-9 * abs(value) for one in held for scale in (1.0, 1000.0)
        ):
            found.append(f"{key} {value}")
    return found


def check(data: bytes) -> None:
    held = set(numbers(json.loads(data)))
    for finding in audit(read_bytes("file.json", data)):
        assert not wrong(finding, held), finding.message


def uneven(kind: str) -> Any:
    """Files whose means of ratios are not the ratios of means."""
    if kind == "F4":
        value = made.speculation(4)
        for index, row in enumerate(value["results"]):
            row["vl_time_ms"] = 900.0 + 173 * index * index
            row["vl_decode_ms"] = 500.0 + 211 * index
            row["sd_time_ms"] = row["vl_prefill_ms"] + row["vl_verify_ms"] + row["vl_decode_ms"]
            row["speedup"] = row["vl_time_ms"] / row["sd_time_ms"]
        value["summary"]["avg_speedup"] = made.mean(value["results"], "speedup")
        return value
    value = made.five(4)
    for index, row in enumerate(value["results"]):
        row["parallel"]["parallel_speedup"] += 0.07 * index
    del value["results"][1]["parallel"]["wall_clock_total"]
    rows = [row["parallel"] for row in value["results"]]
    value["statistics"]["parallel"] = {"parallel_speedup_avg": made.mean(rows, "parallel_speedup")}
    if kind == "D without a summary":
        del value["statistics"]["parallel"]
    return value


@pytest.mark.parametrize("kind", ["F4", "D", "D without a summary"])
def test_a_mean_of_ratios_is_quoted_as_the_file_has_it(kind: str) -> None:
    value = uneven(kind)
    check(made.to_bytes(value))
    assert any(one.rule == "speedup" for one in audit(made.read(value)))


@pytest.mark.parametrize("value", [*made.EVERY.values(), made.metrics()])
def test_synthetic_files_are_quoted_as_they_are(value: Any) -> None:
    check(made.to_bytes(value))


@pytest.mark.loads
def test_every_published_file() -> None:
    if not RECORDED.is_dir():
        pytest.skip("the published result files (../shared/data/recorded) are not on this machine")
    for path in sorted(RECORDED.glob("*.json")):
        if path.name != "expected.json":
            check(path.read_bytes())
