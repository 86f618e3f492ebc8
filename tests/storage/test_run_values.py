"""The pinned baseline: what is written is read again, and a damaged file is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.analysis.gate import values_of
from engine.errors import StoreError
from engine.storage import run_values
from tests import fabricate


@pytest.fixture
def pinned(tmp_path: Path) -> Path:
    path = tmp_path / "baseline.json"
    run_values.write(values_of(fabricate.run(tmp_path / "run", fabricate.pair(3))), path)
    return path


def test_what_is_written_is_read(tmp_path: Path, pinned: Path) -> None:
    values = values_of(fabricate.run(tmp_path / "other", fabricate.pair(3)))
    with pytest.raises(StoreError, match="exists already"):
        run_values.write(values, pinned)
    pinned.unlink()
    run_values.write(values, pinned)
    found = run_values.read(pinned)
    assert (found.header, found.models, found.finished) == (values.header, values.models, True)
    assert found.pinned and not values.pinned
    assert found.model("ev") is not None and found.model("none") is None


def _first_sample(content: Any) -> Any:
    return content["models"][0]["samples"]["s0"]


DAMAGES: dict[str, Callable[[Any], object]] = {
    "another format": lambda content: content.update(format="other"),
    "another version": lambda content: content.update(version=1),
    "no header": lambda content: content.pop("run"),
    "a broken plan": lambda content: content["run"]["plan"].update(samples=[]),
    "an unknown setting": lambda content: content["run"]["plan"].update(speed=3),
    "a word as a time": lambda content: _first_sample(content)["values"].update(total="fast"),
    "a huge time": lambda content: _first_sample(content)["values"].update(total=1e300),
    "a share above 1": lambda content: _first_sample(content).update(right=1.5),
    "a negative id": lambda content: _first_sample(content).update(token_ids=[-1]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused(pinned: Path, damage: str) -> None:
    content = json.loads(pinned.read_text(encoding="utf-8"))
    DAMAGES[damage](content)
    pinned.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(StoreError) as caught:
        run_values.read(pinned)
    assert str(caught.value).count("\n") == 0 and str(caught.value).endswith(".")


def test_what_is_cut_deep_or_too_large_is_refused(
    pinned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pinned.read_bytes()
    for text in (whole[:-20], b"[" * 100_000, b"\xff", b""):
        pinned.write_bytes(text)
        with pytest.raises(StoreError, match="The pinned baseline"):
            run_values.read(pinned)
    pinned.write_bytes(whole)
    monkeypatch.setattr(run_values, "MAX_BYTES", len(whole) - 1)
    with pytest.raises(StoreError, match="more than"):
        run_values.read(pinned)


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path, pinned: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        run_values.write(run_values.read(pinned), tmp_path / "no" / "file.json")
