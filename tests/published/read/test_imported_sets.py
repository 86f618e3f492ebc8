"""What is kept on disk: whole sets under safe names, read anew; rows in the project's own form."""

from pathlib import Path
from typing import Any

import pytest

from engine.published.read import RecordsError, ResultFile, find, imported_sets, read
from engine.published.read.file_summary import frame
from tests.published.read import synthetic as made


@pytest.fixture(autouse=True)
def runs_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STAGESCOPE_RUNS_DIR", str(tmp_path / "runs"))
    return tmp_path / "runs"


def test_a_kept_set_comes_back_as_it_was(runs_dir: Path) -> None:
    data = made.to_bytes(made.flat()).replace(b"1.03", b"NaN", 1)
    kept = imported_sets.save(
        "my set", [("a.json", data), ("../x.json", made.to_bytes(made.failed()))]
    )
    assert kept == runs_dir / "imported" / "my set" and imported_sets.names() == ("my set",)
    told: list[tuple[int, int, str]] = []
    list(read(find([kept]), lambda *args: told.append(args)))
    assert told == [(0, 2, "0000/a.json"), (1, 2, "0001/x.json")]
    first, second = imported_sets.load("my set")
    assert (first.name, first.samples, second.name) == ("a.json", 4, "x.json")
    assert [p.kind for p in first.problems] == ["finite"] and second.status == "failed"
    with pytest.raises(RecordsError, match="kept already"):
        imported_sets.save("my set", [])
    with pytest.raises(RecordsError, match="No imported set is named 'two': there are my set"):
        imported_sets.load("two")
    imported_sets.delete("my set")
    assert imported_sets.names() == () and not kept.exists()


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "a\\b", "/etc", "a..b", "x" * 65, ".x", "x.", "a\n", "é"]
)
def test_names_that_could_be_paths_are_refused(name: str) -> None:
    for call in (
        lambda: imported_sets.save(name, []),
        lambda: imported_sets.load(name),
        lambda: imported_sets.delete(name),
    ):
        with pytest.raises(RecordsError, match="cannot name a set"):
            call()


def test_a_set_opens_no_other_file(runs_dir: Path) -> None:
    (runs_dir / "secret.json").parent.mkdir()
    (runs_dir / "secret.json").write_bytes(b"{}")
    kept = imported_sets.save("one", [("a.json", b"{}")])
    (kept / "0000" / "b.json").symlink_to(runs_dir / "secret.json")
    assert [file.name for file in imported_sets.load("one")] == ["a.json"]
    kept.with_name("two").symlink_to(kept)
    with pytest.raises(RecordsError, match="No imported set is named 'two'"):
        imported_sets.load("two")


def test_a_file_is_written_only_below_its_set(runs_dir: Path) -> None:
    names = ["/etc/x.json", "a/../../x.json", "x" * 30 + "/" + "y" * 119, "deep/a.json", "a.json"]
    kept = imported_sets.save("one", [(name, b"{}") for name in names])
    assert {path.parent for path in runs_dir.rglob("*.json")} <= {
        kept / "0000", kept / "0001", kept / "0003" / "deep", kept / "0004"
    }  # fmt: skip
    found = [file.name for file in imported_sets.load("one")]
    assert found == ["x.json", "x.json", "y" * 119, "deep/a.json", "a.json"]


def test_a_full_disk_leaves_nothing_behind(runs_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RecordsError, match="No space left"):
        imported_sets.save("one", [("a.json", b"{}")])
    assert list((runs_dir / "imported").iterdir()) == []


def test_folders_links_and_bad_files(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.json").write_bytes(made.to_bytes(made.flat()))
    (folder / "deep" / "b.JSON").write_bytes(b"{")
    (folder / "notes.txt").write_text("no")
    (tmp_path / "secret.json").write_bytes(made.to_bytes(made.flat()))
    (folder / "link.json").symlink_to(tmp_path / "secret.json")
    (folder / "out").symlink_to(tmp_path)
    seen: list[str] = []
    names = find([folder, folder / "a.json"])
    found = list(read(names, lambda done, every, name: seen.append(name)))
    assert [(f.name, f.status) for f in found] == [("a.json", "ok"), ("deep/b.JSON", "unknown")]
    assert seen == ["a.json", "deep/b.JSON"]
    with pytest.raises(RecordsError, match=r"holds no \.json file"):
        (tmp_path / "empty").mkdir()
        find([tmp_path / "empty"])
    (missing,) = read(find([tmp_path / "none.json"]))
    assert "No such file" in missing.message
    (odd,) = read(find([Path("a\0b.json")]))
    assert odd.status == "unknown"


def figures(file: ResultFile) -> list[float]:
    """All numbers of its records that are known."""
    return list(frame(file).select_dtypes("number").stack())


def test_sets_are_listed_without_reading_their_files(
    runs_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported_sets.save("good", [("a.json", b"not even JSON"), ("b.json", b"{}")])
    (runs_dir / "imported" / "bad").symlink_to(runs_dir / "imported" / "good")
    (good,) = imported_sets.listing()
    with monkeypatch.context() as patch:  # another visitor deletes it meanwhile
        patch.setattr(imported_sets, "names", lambda: ("good", "gone"))
        assert imported_sets.listing() == (good,)
    assert (good.name, good.files) == ("good", 2) and good.imported.endswith("+00:00")


def test_the_stamp_of_a_set_changes_with_its_files() -> None:
    imported_sets.save("one", [("a.json", b"{}")])
    before = imported_sets.stamp("one")
    assert before and imported_sets.stamp("none") == ()
    imported_sets.delete("one")
    imported_sets.save("one", [("a.json", b"{ }")])
    assert imported_sets.stamp("one") != before
