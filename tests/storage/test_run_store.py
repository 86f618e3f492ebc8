"""Run folders: made, gone on with, read, listed; every trouble one sentence."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from engine.errors import BadInput, StoreError
from engine.storage import run_header as headers
from engine.storage import run_store
from engine.storage.result_rows import ResultRow
from tests import fabricate

ROW = fabricate.row("ev", "s0")


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows = [fabricate.row("ev", f"s{index}") for index in range(3)]
    run = fabricate.run(tmp_path / "run", rows)
    wanted = list(map(ResultRow.parse, rows))
    assert [row for _, row in run.results()] == wanted and run.state == "finished"
    assert run.problems == () and run.header == headers.read(tmp_path / "run")
    assert [entry["event"] for entry in run.journal] == ["started"]
    offset = next(at for at, row in run.results() if row.sample == "s2")
    assert run.row(offset) == wanted[2]
    with pytest.raises(StoreError, match="no result at byte 5"):
        run.row(5)


def test_a_folder_that_holds_something_is_not_overwritten(tmp_path: Path) -> None:
    fabricate.run(tmp_path / "run", [fabricate.row()])
    with pytest.raises(StoreError, match=r"already contains a run.*resume that run"):
        run_store.create(fabricate.header(), tmp_path / "run")
    (tmp_path / "rest").mkdir()
    (tmp_path / "rest" / ".run.json.0.part").write_text("")  # of a killed process: no run yet
    with pytest.raises(StoreError, match=r"contains \.run.*: name a new or an empty folder\.$"):
        run_store.create(fabricate.header(), tmp_path / "rest")
    with pytest.raises(StoreError, match="is not a run"):
        run_store.find(str(tmp_path / "rest"), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be made .*or repair the folder\.$"):
        run_store.create(fabricate.header(), tmp_path / "file")


def test_broken_lines_are_said_and_their_tasks_are_done_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    fabricate.run(folder, [fabricate.row("ev", "s0")], finished=False, planned=["s1"])
    with (folder / run_store.RESULTS).open("ab") as stream:
        stream.write(b"odd\n")
    run = run_store.read(folder)
    list(run.results())
    assert "line 2" in run.problems[0]
    with run_store.reopen(folder) as writer:
        assert len(writer.done) == 1 and "is computed again" in writer.problem
        writer.append(ResultRow.parse(fabricate.row("ev", "s1")))
    again = run_store.read(folder)
    assert [row.sample for _, row in again.results()] == ["s0", "s1"] and not again.problems
    assert any("line 2" in entry["text"] for entry in run_store.read(folder).journal)


@pytest.mark.parametrize("name", [run_store.RESULTS, run_store.JOURNAL, headers.HEADER])
def test_no_file_of_a_run_is_a_link_or_a_pipe(tmp_path: Path, name: str) -> None:
    """Neither read nor written through: what it leads to stays as it is."""
    outside = tmp_path / "outside"
    outside.write_text("kept")
    kinds = (lambda path: path.symlink_to(outside), os.mkfifo, Path.mkdir)
    for number, put in enumerate(kinds):
        folder = fabricate.run(tmp_path / f"{number}", [fabricate.row()], finished=False).folder
        (folder / name).unlink()
        put(folder / name)
        with pytest.raises(StoreError, match=r"link|pipe|folder|Is a directory"):
            run_store.reopen(folder)
        if name != run_store.JOURNAL:
            with pytest.raises(StoreError, match=r"link|pipe|folder"):
                list(run_store.read(folder).results())
        (tmp_path / f"new{number}").mkdir()
        put(tmp_path / f"new{number}" / name)
        with pytest.raises(StoreError):
            run_store.create(fabricate.header(), tmp_path / f"new{number}")
    assert outside.read_text() == "kept"


def test_what_is_written_can_be_read_as_text(tmp_path: Path) -> None:
    """Half of a surrogate pair is no text: a reader would leave out the whole line."""
    rows = [fabricate.row(reference="a \ud800 b", text="😀")]
    run = fabricate.run(tmp_path / "run", rows, planned=["s1"])
    assert [(row.reference, row.text) for _, row in run.results()] == [("a ? b", "😀")]
    with run_store.reopen(run.folder) as writer:
        row = next(row for _, row in run.results())
        writer.append(replace(row, sample="s1", text="a \ud800 b"))
    assert [row.text for _, row in run.results()] == ["😀", "a ? b"]
    with pytest.raises(BadInput, match="surrogate"):
        fabricate.header(samples=("\ud800",))


@pytest.mark.loads
def test_a_second_writer_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    """In one process; tests/storage/test_locks.py has the lock between two."""
    folder = tmp_path / "run"
    first = run_store.create(fabricate.header(), folder)
    assert run_store.read(folder).state == "running"
    with pytest.raises(StoreError, match="written by another process"):
        run_store.reopen(folder)
    first.close()
    run_store.reopen(folder).close()


@pytest.mark.loads
def test_a_deleted_file_lets_no_second_process_double_rows(tmp_path: Path) -> None:
    """Whatever is deleted while a run is written, its rows stand in one file once."""
    row = ResultRow.parse(fabricate.row("ev", "s0"))
    names = {"run.lock", run_store.RESULTS, run_store.JOURNAL, headers.HEADER}
    for name in sorted(names):
        first = run_store.create(fabricate.header(), tmp_path / name)
        files = {path.name for path in first.folder.iterdir()}
        assert files <= names - {"run.lock"}  # nothing stands there only to be locked
        (first.folder / name).unlink(missing_ok=True)
        if name == run_store.RESULTS:  # a new file: the first process must notice
            with run_store.reopen(first.folder) as second:
                second.append(row)
            with pytest.raises(StoreError, match=r"results\.jsonl was removed, replaced or"):
                first.append(row)
        else:
            with pytest.raises(StoreError, match=r"by another process|holds no run\.json"):
                run_store.reopen(first.folder)
            first.append(row)
        first.close()
        results = (first.folder / run_store.RESULTS).read_bytes()
        assert results.count(b"\n") == 1


@pytest.mark.parametrize("how", ["removed", "replaced", "emptied", "written by another", "folder"])
def test_lost_results_are_noticed_before_the_run_is_finished(tmp_path: Path, how: str) -> None:
    row = ResultRow.parse(fabricate.row("ev", "s0"))
    with run_store.create(fabricate.header(), tmp_path / "run") as writer:
        writer.append(row)
        results = writer.folder / run_store.RESULTS
        if how == "removed":
            results.unlink()
        elif how == "folder":
            writer.folder.rename(tmp_path / "moved")
        elif how == "replaced":
            (tmp_path / "other").write_bytes(results.read_bytes())
            (tmp_path / "other").replace(results)
        else:
            results.write_bytes(b"" if how == "emptied" else results.read_bytes() * 2)
        for write in (lambda: writer.append(row), lambda: writer.finish({})):
            with pytest.raises(StoreError) as said:
                write()
            text = str(said.value)
            assert "results.jsonl was removed" in text and text.count("--resume") == 1
        assert not (writer.folder / run_store.SUMMARY).exists()


def test_a_full_disk_is_one_sentence_and_keeps_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with run_store.create(fabricate.header(), folder) as writer:
        writer.append(ResultRow.parse(fabricate.row("ev", "s0")))
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(StoreError, match=r"cannot take the result \(No space left.*--resume"):
            writer.append(ResultRow.parse(fabricate.row("ev", "s1")))
        monkeypatch.undo()
    assert len(list(run_store.read(folder).results())) == 1


def change(folder: Path, **more: Any) -> None:
    value = json.loads((folder / headers.HEADER).read_text())
    (folder / headers.HEADER).write_text(json.dumps(value | more))


@pytest.mark.parametrize(
    ("change_", "message"),
    [
        ({"version": 1}, "run of version 1, but this program reads version 3: run it again"),
        ({"format": "odd"}, "not a run of StageScope"),
        ({"plan": {}}, "run.json cannot be used"),
        ({"dataset": {"root": 1}}, "cannot be used"),
        ({"models": 7}, "cannot be used"),
        ({"environment": []}, "cannot be used"),
    ],
)
def test_a_folder_of_another_kind_is_refused(
    tmp_path: Path, change_: dict[str, Any], message: str
) -> None:
    fabricate.run(tmp_path / "run", [])
    change(tmp_path / "run", **change_)
    for use in (run_store.read, run_store.reopen):
        with pytest.raises(StoreError, match=message):
            use(tmp_path / "run")
    (info,) = run_store.listing(tmp_path)
    assert info.state == "unreadable" and info.problem


@pytest.mark.parametrize("damaged", [b"", b'{"id": "', b"[]", b"{}", b'{"id": "of another"}'])
def test_a_run_with_a_damaged_summary_is_not_finished(tmp_path: Path, damaged: bytes) -> None:
    run = fabricate.run(tmp_path / "run", [ROW])
    assert run.state == "finished"
    (run.folder / run_store.SUMMARY).write_bytes(damaged)
    assert run_store.read(run.folder).state == "stopped"
    assert run_store.listing(tmp_path)[0].state == "stopped"


def test_a_finished_run_says_that_its_results_are_gone(tmp_path: Path) -> None:
    folder = fabricate.run(tmp_path / "run", [ROW, fabricate.row("ev", "s1")]).folder
    summary = json.loads((folder / run_store.SUMMARY).read_text())
    (folder / run_store.SUMMARY).write_text(json.dumps(summary | {"results": 2}))
    assert run_store.read(folder).problems == ()
    (folder / run_store.RESULTS).write_bytes(b"")
    assert "At least 2 results of this finished run are gone" in run_store.read(folder).problems[0]


def test_a_deleted_run_is_gone_and_what_its_links_name_stays(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("1")
    base = tmp_path / "runs"
    folder = fabricate.run(base / "one", [fabricate.row()]).folder
    other = fabricate.run(base / "two", [fabricate.row()]).folder
    (folder / "link").symlink_to(outside)
    run_store.delete(folder, base)
    assert not folder.exists() and (outside / "kept").exists()
    assert [info.folder for info in run_store.listing(base)] == [other]


def test_what_is_no_run_of_the_folder_is_not_deleted(tmp_path: Path) -> None:
    base = tmp_path / "runs"
    elsewhere = fabricate.run(tmp_path / "else", [fabricate.row()]).folder
    base.mkdir()
    (base / "link").symlink_to(elsewhere)
    for name in ("certificates", "odd"):
        (base / name).mkdir()
    (base / "odd" / "run.json").write_text("{}")
    names = ("link", "certificates", "odd", "absent", "../else", ".")
    for folder in (elsewhere, base, *(base / name for name in names)):
        with pytest.raises(StoreError):
            run_store.delete(folder, base)
    assert (elsewhere / run_store.RESULTS).exists() and (base / "odd" / "run.json").exists()
