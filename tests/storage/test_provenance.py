"""Digests that change with what they stand for, and with nothing else."""

from __future__ import annotations

import ast
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from engine.media import dataset
from engine.models import registry
from engine.storage import provenance
from tests import fabricate, recordings


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return recordings.root(tmp_path / "root", 2)


def digest(root: Path) -> str:
    found = dataset.read(root)
    return provenance.describe_dataset(found.root, found.samples).digest


def test_a_dataset_is_its_records_and_files_wherever_it_lies(root: Path, tmp_path: Path) -> None:
    first = digest(root)
    assert digest(Path(shutil.copytree(root, tmp_path / "copy"))) == first
    image = root / "event_image" / "q1" / "000000_2.png"
    image.write_bytes(image.read_bytes() + b"x")
    second = digest(root)
    assert second != first
    image.unlink()
    assert digest(root) not in (first, second)


def test_a_file_that_vanishes_meanwhile_changes_the_digest(root: Path) -> None:
    found = dataset.read(root)
    before = provenance.describe_dataset(found.root, found.samples)
    (root / "event_image" / "q0" / "000000_0.png").unlink()
    assert provenance.describe_dataset(found.root, found.samples) != before


def test_the_code_is_what_makes_tokens_and_times(monkeypatch: pytest.MonkeyPatch) -> None:
    first = provenance.describe_code()
    assert first == provenance.describe_code()
    monkeypatch.setattr(provenance, "version", lambda name: "99")
    assert provenance.describe_code() != first


AROUND = {"cache.py", "cache_database.py", "certificates.py", "coverage.py", "device.py",
          "errors.py", "jobs.py", "plain_files.py", "plan.py", "quoting.py", "schemas.py",
          "settings.py", "verify"}  # fmt: skip


def test_the_digest_covers_all_that_a_row_is_made_by() -> None:
    """What asking.py comes to by imports is either in CODE or known to change no row's figures."""
    seen: set[Path] = set()
    waiting = [provenance.ENGINE / "asking.py"]
    while waiting:
        file = waiting.pop()
        if file not in seen:
            seen.add(file)
            waiting += engine_imports(file)
    parts = {file.relative_to(provenance.ENGINE).parts[0] for file in seen}
    assert "compiled.py" in parts and parts - set(provenance.CODE) == AROUND


def engine_imports(file: Path) -> list[Path]:
    """The engine's files that a file imports by name, anywhere in it."""
    names = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "engine":
            names += [f"{node.module}.{alias.name}" for alias in node.names] + [str(node.module)]
    paths = [provenance.ENGINE.joinpath(*name.split(".")[1:]).with_suffix(".py") for name in names]
    return [path for path in paths if path.is_file()]
    assert all((provenance.ENGINE / part).exists() for part in provenance.CODE)


def test_models_are_their_checkpoints_content(tiny_models: Path) -> None:
    entries = registry.entries()
    found = provenance.describe_models(entries)
    assert [model.name for model in found] == [entry.name for entry in entries]
    assert len({model.digest for model in found}) == 3
    adapter = registry.load(entries[0])
    assert adapter.info.digest == found[0].digest


def test_differences_are_named() -> None:
    kept = fabricate.header(("ev", "vl"))
    assert provenance.differences(kept, kept) == [] and provenance.moved(kept, kept) == ""
    other = replace(
        kept,
        code="x",
        dataset=replace(kept.dataset, digest="x"),
        models=(replace(kept.models[0], dtype="float16"),),
        environment={"device": "cuda", "torch": "2"},
    )
    told = provenance.differences(kept, other)
    assert len(told) == 4 and "ev" in told[2] and "vl" in told[3]
    assert provenance.moved(kept, other) == "The machine has changed: device cuda instead of cpu."
    assert provenance.differences(kept, replace(kept, environment={})) == []
