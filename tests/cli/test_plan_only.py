"""bench --plan-only: what it prints, what it refuses, and that it runs nothing."""

import json
from pathlib import Path

import pytest

from engine import settings
from engine.models import registry
from engine.storage import run_header, run_store
from engine.storage.run_header import DatasetIdentity
from tests import fabricate, recordings
from tests.cli.conftest import Call, Refused

pytestmark = pytest.mark.loads


@pytest.fixture
def root(tmp_path: Path, tiny_models: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(registry, "load", None)  # a call would raise TypeError
    return recordings.root(tmp_path / "root")


def bench(root: Path, *more: object) -> tuple[object, ...]:
    """A command line."""
    return ("bench", "--dataset", root, "--models", "tiny-llava", *more)


def earlier(root: Path, name: str = "before") -> Path:
    """An own run of this dataset with two repeats of 8 sequences."""
    rows = [
        fabricate.row("tiny-llava", f"s{n}", repeat=repeat, prefill=8.0 + n % 3 * repeat)
        for n in range(8)
        for repeat in range(2)
    ]
    folder = settings.load().runs_dir / name
    fabricate.run(folder, rows)
    header = run_header.read(folder)
    value = run_header.as_json(header)
    value["dataset"] = vars(DatasetIdentity(str(root), "digest"))
    value["plan"]["extent"] = "slice"
    (folder / "run.json").write_text(json.dumps(value, default=str))
    return folder


def test_without_an_earlier_run_nothing_is_invented(call: Call, root: Path) -> None:
    code, out, _ = call(*bench(root, "--plan-only"))
    assert code == 0 and "Planned: 4 results and 1 warm-up run" in out
    assert "no earlier run of tiny-llava" in out and "about" not in out
    _, out, _ = call(*bench(root, "--plan-only", "--json"))
    value = json.loads(out)
    assert value["from"] is None and value["forecast"]["seconds"] is None
    assert not run_store.listing(settings.load().runs_dir)


def test_the_newest_run_is_used_and_named(call: Call, root: Path) -> None:
    folder = earlier(root)
    before = sorted(path.name for path in settings.load().runs_dir.rglob("*"))
    code, out, err = call(*bench(root, "--plan-only", "--repeat", 2))
    name = run_header.read(folder).id
    assert code == 0 and f"From run {name} (16 results)" in out and "newest own run" in out
    assert "Free on the disk" in out and not err
    assert sorted(path.name for path in settings.load().runs_dir.rglob("*")) == before
    _, out, _ = call(*bench(root, "--plan-only", "--from", "before", "--json"))
    value = json.loads(out)
    assert value["from"]["named"] and value["from"]["results"] == 16
    assert value["forecast"]["seconds"] == pytest.approx(5 * 0.0304375)
    assert value["free_bytes"] > 0


def test_a_sweep_is_the_sum_of_its_runs(call: Call, root: Path) -> None:
    earlier(root)
    code, out, _ = call(
        *bench(root, "--plan-only", "--models", "tiny-eventgpt", "--perturb", "drop:0/0.3/0.6")
    )
    assert code == 0 and "Planned: 12 results and 3 warm-up runs in 3 runs" in out


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("--from", "nowhere"), "'nowhere' is not a run"),
        (("--samples", "0"), "samples is 0"),
        (("--resume", "x"), "--plan-only plans a new run: leave --resume out."),
        (("--models", "nobody"), "'nobody' is not a known model"),
        (("--executor", "ray", "--perturb", "drop:0/0.3"), "runs in this process only"),
    ],
)
def test_what_cannot_be_planned_is_one_sentence(
    refused: Refused, root: Path, more: tuple[str, ...], sentence: str
) -> None:
    assert sentence in refused(*bench(root, "--plan-only", *more))


def test_its_flags_go_with_it_only(refused: Refused, root: Path) -> None:
    assert "--from goes with --plan-only" in refused(*bench(root, "--from", "x"))
