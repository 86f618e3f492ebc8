"""Names, tags and the baseline: bounded, replaced as a whole, and never in a run's own files."""

from pathlib import Path

import pytest

from engine.errors import BadInput, StoreError
from engine.storage import run_details
from engine.storage.run_details import RunDetails
from tests import fabricate


@pytest.mark.parametrize(
    ("name", "tags", "words"),
    [
        ("x" * 81, (), "shorten it to 80"),
        ("", tuple("abcdefghi"), "at most 8"),
        ("", ("x" * 31,), "shorten it to 30"),
    ],
)
def test_too_much_is_refused(name: str, tags: tuple[str, ...], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        run_details.cleaned(name, tags)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text('{"name": "secret"}')
    folder = fabricate.run(tmp_path / "one", []).folder
    (folder / run_details.DETAILS).symlink_to(tmp_path / "outside")
    found, problem = run_details.read(folder)
    assert found.name == "" and "symbolic link" in problem
    with pytest.raises(StoreError, match="cannot be written"):
        run_details.put(folder, RunDetails("x"))


def test_there_is_one_baseline(tmp_path: Path) -> None:
    for name in ("one", "two"):
        fabricate.run(tmp_path / name, [])
    assert run_details.baseline(tmp_path) == ("", "")
    run_details.pin(tmp_path, "one")
    run_details.pin(tmp_path, "two")
    assert run_details.baseline(tmp_path) == ("two", "")
    run_details.unpin(tmp_path)
    run_details.unpin(tmp_path)
    assert run_details.baseline(tmp_path) == ("", "")
    for odd in ("absent", "../one", "", "."):
        with pytest.raises(StoreError, match="is not a run in"):
            run_details.pin(tmp_path / "runs", odd)
    (tmp_path / run_details.BASELINE).write_text("{}")
    assert run_details.baseline(tmp_path)[0] == "" and run_details.baseline(tmp_path)[1]
