"""python -m engine gate: exit codes, forms of output, user errors."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.__main__ import main
from tests import fabricate
from tests.cli.conftest import Refused

Capture = pytest.CaptureFixture[str]


def rows(slower: float = 1.0, model: str = "ev", wobble: float = 0.01) -> list[dict[str, Any]]:
    """14 samples; the times of one run differ by `wobble` from those of another."""
    factors = [slower * (1 + wobble * (-1) ** index * (index % 4)) for index in range(14)]
    return [
        fabricate.row(
            model,
            f"s{index}",
            stages={name: ms * factor for name, ms in fabricate.STAGES.items()},
            prefill=8.0 * factor,
            gaps=[2.0 * factor] * 5,
        )
        for index, factor in enumerate(factors)
    ]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs base, alike, slow and noisy, which took turns, apart and open (not
    finished)."""
    folder = tmp_path_factory.mktemp("runs")
    for name, found in {
        "base": rows(wobble=0.0),
        "alike": rows(),
        "slow": rows(1.2),
        "noisy": rows(1.04, wobble=0.05),
    }.items():
        fabricate.run(folder / name, found, together="one")
    fabricate.run(folder / "apart", rows(1.2))
    fabricate.run(folder / "open", rows(), finished=False)
    return folder


@pytest.fixture(autouse=True)
def named(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs have names in the settings."""
    monkeypatch.setenv("STAGESCOPE_RUNS_DIR", str(runs))


@pytest.mark.loads
def test_exit_codes(capsys: Capture) -> None:
    assert main(["gate", "base", "alike"]) == 0
    assert "No worse: 4 tested metrics" in capsys.readouterr().out
    assert main(["gate", "base", "slow"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("Worse: total of ev +") and "worse" in out
    assert main(["gate", "base", "noisy", "--metric", "total"]) == 3
    assert capsys.readouterr().out.startswith("Undecided: total of ev.")
    assert main(["gate", "base", "noisy", "--metric", "total", "--undecided", "ok"]) == 0
    assert main(["gate", "base", "noisy", "--metric", "total", "--undecided", "fail"]) == 1
    assert main(["gate", "base", "slow", "--undecided", "ok"]) == 1
    assert main(["gate", "base", "slow", "--margin", "30%"]) == 0
    assert main(["gate", "base", "slow", "--margin", "0.3"]) == 0


@pytest.mark.loads
def test_times_need_turns(capsys: Capture) -> None:
    assert main(["gate", "base", "apart"]) == 3
    out = capsys.readouterr().out
    assert out.startswith("Undecided: total of ev, TTFT of ev, ")
    assert out.count("bench --against") == 1 and "undecided: measured apart" in out
    assert main(["gate", "base", "apart", "--metric", "tokens,answers"]) == 0
    assert main(["gate", "base", "alike", "--metric", "tokens,accuracy"]) == 3
    assert "Undecided: accuracy of ev." in capsys.readouterr().out


def test_json_has_every_figure(capsys: Capture, runs: Path) -> None:
    assert main(["gate", "base", str(runs / "slow"), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "worse" and found["tests"] == 4 and found["margin"] == 0.05
    total = next(one for one in found["results"] if one["metric"] == "total")
    assert total["verdict"] == "worse" and 1.1 < total["low"] < total["high"] < 1.3
    assert found["base"]["models"][0]["name"] == "ev"


def test_markdown_escapes_names(capsys: Capture, tmp_path: Path) -> None:
    name = "a|b<script>[x](http://y)"
    for run in ("one", "two"):
        fabricate.run(tmp_path / run, rows(model=name), together="one")
    assert main(["gate", str(tmp_path / "one"), str(tmp_path / "two"), "--md"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("## Gate: no worse\n")
    assert "<script>" not in out and "[x](" not in out
    table = [line for line in out.splitlines() if line.startswith("|")]
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1
    assert len(table) == 2 + 5  # accuracy is not compared, and the table says so


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["base"], "gate compares two runs"),
        (["base", "alike", "slow"], "gate compares two runs"),
        (["base", "base"], "is named twice"),
        (["base", "none"], "'none' is not a run"),
        (["base", "n" * 5000], "is not a run"),
        (["base", "/dev"], "'/dev' is not a run"),
        (["base", "alike", "--metric", "totl"], "is not a metric: choose among load"),
        (["base", "alike", "--margin", "5"], "as in 5%"),
        (["base", "alike", "--margin=-5%"], "as in 5%"),
        (["base", "alike", "--margin", "100%"], "below 100%"),
        (["base", "open"], "not finished"),
        (["base", __file__], "is not a run"),
    ],
)
def test_user_errors(refused: Refused, arguments: list[str], words: str) -> None:
    assert words in refused("gate", *arguments)


def test_changed_answers_are_printed(capsys: Capture, tmp_path: Path) -> None:
    other = rows()
    other[2]["token_ids"] = [100, 101, 7, 103, 104, 105]
    fabricate.run(tmp_path / "other", other)
    assert main(["gate", "base", str(tmp_path / "other"), "--metric", "answers"]) == 1
    out = capsys.readouterr().out
    assert "1 answer of ev changed" in out and "token 3 is id 7 instead of id 102" in out
    assert "13" in out or "1 of 14" in out
