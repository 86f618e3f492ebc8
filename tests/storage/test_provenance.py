"""Digests that change with what they stand for, and with nothing else."""

import ast
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.machine import device
from engine.media import dataset
from engine.media_options import Window
from engine.storage import provenance
from engine.types import Sample
from engine.verify import certificates
from tests import fabricate, recordings


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return recordings.root(tmp_path / "root", 2)


def digest(root: Path, *samples: Sample) -> str:
    return provenance.describe_dataset(root, samples or dataset.read(root).samples).digest


def test_a_sample_of_a_benchmark_is_its_window_choices_and_answer(root: Path) -> None:
    sample = dataset.read(root).samples[0]
    asked = replace(sample, choices=("one", "two"), answer="A", task="counting")
    changes: list[dict[str, Any]] = [
        *({"choices": ("two", "one")}, {"choice_form": "words"}, {"answer": "B"}),
        *({"task": "other"}, {"window": Window(0, 50_000)}, {"window": Window(0, 5_000)}),
    ]
    others = [sample, asked, *(replace(asked, **change) for change in changes)]
    assert len({digest(root, one) for one in others}) == len(others)
    without = replace(sample, choice_form="words")  # of no choices
    assert digest(root, without) == digest(root, sample)


def test_a_file_that_vanishes_meanwhile_changes_the_digest(root: Path) -> None:
    samples = dataset.read(root).samples
    before = digest(root, *samples)
    (root / "event_image" / "q0" / "000000_0.png").unlink()
    assert digest(root, *samples) != before


# What else these come to by imports, and why it changes no row's figures: errors and words, where
# things are on this machine, and what a run was to do.
AROUND = {"__init__.py", "analysis/__init__.py", "storage/__init__.py", "errors.py", "quoting.py",
          "plain_files.py", "settings.py", "storage/plan.py",
          "storage/provenance.py", "storage/run_header.py", "analysis/statistics.py"}  # fmt: skip
VERIFY = "verify"  # a row takes the hash of a certificate, whose own digest covers this


def come_to(*starts: str) -> set[str]:
    """The engine's files that these come to by imports, themselves included."""
    seen: set[Path] = set()
    waiting = {provenance.ENGINE / start for start in starts}
    while waiting:
        seen |= waiting
        waiting = {found for file in waiting for found in engine_imports(file)} - seen
    return {file.relative_to(provenance.ENGINE).as_posix() for file in seen}


def uncovered(files: set[str], parts: tuple[str, ...]) -> set[str]:
    return {file for file in files if not any(f"{file}/".startswith(f"{part}/") for part in parts)}


def test_a_library_that_is_absent_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device.installed("torch")[0].isdigit()
    before = provenance.describe_code()
    monkeypatch.setattr(provenance, "LIBRARIES", (*provenance.LIBRARIES[:-1], "no-such-library"))
    assert device.installed("no-such-library") == "none"
    assert provenance.describe_code() != before


@pytest.mark.loads
def test_the_digest_covers_all_that_a_row_is_made_by() -> None:
    """What the executor of tasks imports is covered, or known to change no row's figures."""
    found = come_to("benchmark/task_executor.py")
    assert "decoding/compiled.py" in found
    assert uncovered(found, (*provenance.ROWS, VERIFY)) <= AROUND
    assert all((provenance.ENGINE / part).exists() for part in provenance.ROWS)


@pytest.mark.loads
def test_a_certificates_digest_covers_all_that_answers_and_verifies() -> None:
    found = come_to("verify/runner.py", "pipeline/batch_run.py", "models/eventgpt.py")
    assert {"verify/checks.py", "models/adapter.py"} <= found
    assert uncovered(found, certificates.CODE) <= AROUND


ANSWERS = ("decoding/decode.py", "media/events.py", "pipeline/single_run.py", "verify/checks.py",
           "timing.py")  # fmt: skip
OTHERS = ("report/document.py", "cli/bench.py", "published/read/cells.py")


@pytest.mark.parametrize("changed", [*ANSWERS, *OTHERS])
def test_a_certificate_depends_on_what_decides_answers_and_on_nothing_else(
    changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_bytes = shutil.ignore_patterns("__pycache__", "checkpoints")
    engine = Path(shutil.copytree(provenance.ENGINE, tmp_path / "engine", ignore=no_bytes))
    monkeypatch.setattr(provenance, "ENGINE", engine)
    digest = certificates.engine_digest.__wrapped__
    before = digest()
    assert digest() == before
    with (engine / changed).open("a", encoding="utf-8") as file:
        file.write("# a comment\n")
    assert (digest() != before) is (changed in ANSWERS)


def engine_imports(file: Path) -> list[Path]:
    """The engine's files that a file imports by name, anywhere in it."""
    names = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "engine":
            names += [f"{node.module}.{alias.name}" for alias in node.names] + [str(node.module)]
    paths = [provenance.ENGINE.joinpath(*name.split(".")[1:]) for name in names]
    files = [path.with_suffix(".py") for path in paths] + [path / "__init__.py" for path in paths]
    return [path for path in files if path.is_file() and path.parent != provenance.ENGINE.parent]


def test_differences_are_named() -> None:
    kept = fabricate.header(("ev", "vl"))
    assert provenance.differences(kept, kept) == [] and provenance.moved(kept, kept) == ""
    other = replace(
        kept, code="x", dataset=replace(kept.dataset, digest="x"),
        models=(replace(kept.models[0], dtype="float16"),),
        environment={"device": "cuda", "torch": "2"},
    )  # fmt: skip
    told = provenance.differences(kept, other)
    assert len(told) == 4 and "ev" in told[2] and "vl" in told[3]
    assert provenance.moved(kept, other) == "The machine has changed: device cuda instead of cpu."
    assert provenance.differences(kept, replace(kept, environment={})) == []
