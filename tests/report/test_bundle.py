"""A bundle holds what was run and nothing of the machine; what was changed in it is named."""

import base64
import gzip
import hashlib
import io
import json
import lzma
import os
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.__main__ import main
from engine.errors import StoreError
from engine.media import dataset
from engine.report import bundle, export
from engine.storage import provenance, run_store
from engine.storage.run_store import Run
from tests import fabricate, recordings

pytestmark = [pytest.mark.loads, pytest.mark.usefixtures("undrawn")]
CHUNK, MANY = 5, 8


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(bundle, "CHUNK", CHUNK)
    rows = fabricate.pair(MANY)
    for one in rows:
        one["environment"] = {"server": "http://my-server:8000/v1"}
        one["where"] = {"node": "n1", "host": "my-machine", "address": "10.0.0.7", "actor": "w"}
    rows[1]["text"] = "A road with a car."
    rows[3]["text"] = f"In {Path.home()} is a road."
    rows[5]["text"] = "Half a \ud83d character."  # no reader takes the line
    rows.append(fabricate.failed("ev", "z", f"{tmp_path}/checkpoint is missing."))
    made = fabricate.run(tmp_path / "runs" / "r", rows)
    with (made.folder / run_store.JOURNAL).open("a") as journal:
        note = "Worker w has ended on my-machine (10.0.0.7)."
        event = {"at": "2026-01-01T00:00:00+00:00", "event": "elsewhere", "text": note}
        journal.write(json.dumps(event) + "\n")
    return run_store.read(made.folder)


def files(folder: Path) -> dict[str, bytes]:
    """Everything in the folder, unpacked."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            name = path.relative_to(folder).as_posix()
            found[name] = lzma.decompress(data) if name.endswith(".xz") else data
    return found


def unpacked(packed: str) -> Any:
    """Data of the samples, as the browser unpacks it."""
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_the_rows_come_back_as_they_were_and_the_report_is_the_same(
    run: Run, tmp_path: Path
) -> None:
    folder = bundle.write([run], tmp_path / "out")
    with bundle.opened(folder) as again:
        (read,) = again
        assert read.header.plan == run.header.plan and read.state == run.state
        place = dict.fromkeys(("where", "error", "environment"))
        kept, given = ([row.as_dict() | place for _, row in one.results()] for one in (read, run))
        assert kept == given and any(str(Path.home()) in row["text"] for row in kept if row["text"])
        assert export.write(again, "md").count("\n") > 50


def test_nothing_names_a_folder_or_a_host_of_this_machine(run: Run, tmp_path: Path) -> None:
    written = files(bundle.write([run], tmp_path / "out"))
    for name, data in (written | {"one file": bundle.page([run]).encode()}).items():
        for word in (str(tmp_path), "/data/one", "my-machine", "10.0.0.7", "my-server"):
            assert word.encode() not in data, (name, word)
    stored = (run.folder / run_store.RESULTS).read_text(encoding="utf-8")
    assert "my-machine" in stored and str(tmp_path) in stored  # control


def test_samples_are_found_in_their_chunk_with_figures_and_differences(
    run: Run, tmp_path: Path
) -> None:
    found = files(bundle.write([run], tmp_path / "out"))
    stored = {name for name in found if name.startswith("data/")}
    assert stored == {"data/0.js", "data/1.js", "data/index.js"}

    def value(name: str) -> Any:
        return unpacked(found[name].decode().partition(',"')[2].removesuffix('");\n'))

    index, first = value("data/index.js")["samples"], value("data/0.js")
    assert len(index) == MANY + 1 and len(value("data/1.js")) == 4
    answers = {one["label"]: one for one in first[0]["answers"]}
    assert ["second", " road with a car."] in answers["vl"]["changes"]
    assert not answers["ev"]["changes"]
    assert dict(answers["ev"]["figures"])["New tokens"] == "6"
    assert sum(answers["ev"]["pieces"][1]) == len(answers["ev"]["text"])
    assert index[0][3] < 1 and index[-1][4] == 1  # the agreement; the failures


def remade(folder: Path, **more: Any) -> None:
    """The manifest with other values."""
    path = folder / bundle.MANIFEST
    path.write_text(json.dumps(json.loads(path.read_bytes()) | more), encoding="utf-8")


def again(folder: Path) -> None:
    """A manifest that fits the files, as one who changes a bundle on purpose would write it."""
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    remade(folder, files={n: bundle._digest(folder / n) for n in names if n != bundle.MANIFEST})


def put(folder: Path, name: str, data: bytes) -> None:
    """Another content of a file, which the manifest has too."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    again(folder)


HEADER, RESULTS = "runs/001/run.json.xz", "runs/001/results.jsonl.xz"
# Unpacking it takes a gigabyte of memory.
WIDE = [{"id": lzma.FILTER_LZMA2, "dict_size": 2**30, "preset": 0}]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            lambda f: (f / "data/0.js").write_text("x"),
            "/out is not as it was written: 'data/0.js' was",
        ),
        (lambda f: (f / "bundle.js").unlink(), "'bundle.js' is missing"),
        (lambda f: (f / "more.txt").write_text("x"), "'more.txt' was added"),
        (lambda f: (f / "more").symlink_to("/etc/passwd"), "'more' was added"),
        (lambda f: (f / "manifest.json").write_text("{}"), "missing required field `format`"),
        (lambda f: remade(f, files=[]), "Expected `object`, got `array`"),
        (lambda f: remade(f, files={"index.html": 5}), "Expected `str`, got `int`"),
        (lambda f: remade(f, version=2), "version"),
        (lambda f: os.mkfifo(f / "pipe"), "'pipe' was added"),
        (lambda f: (shutil.rmtree(f / "runs"), again(f)), "holds no run"),
        (lambda f: put(f, RESULTS, (f / RESULTS).read_bytes()[:-40]), "it is cut short"),
        (lambda f: put(f, RESULTS, lzma.compress(b"x", filters=WIDE)), "[Mm]emory usage limit"),
        (lambda f: put(f, HEADER, b"x"), f"'{HEADER}' cannot be read"),
        (lambda f: put(f, HEADER, lzma.compress(b"{")), "the run .*out/runs/001/run.json cannot"),
        (lambda f: (f / "manifest.json").unlink(), "The manifest .* cannot be read"),
        (lambda f: put(f, "runs/a/b/c.xz", lzma.compress(b"x")), "'runs/a/b/c.xz', which no"),
    ],
)
def test_what_was_changed_is_named(run: Run, tmp_path: Path, spoil: Any, said: str) -> None:
    folder = bundle.write([run], tmp_path / "out")
    bundle.checked(folder)  # control
    spoil(folder)
    with pytest.raises(StoreError, match=said), bundle.opened(folder):
        pass


def test_pictures_and_clips_are_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = recordings.root(tmp_path / "root", 2)
    samples = list(dataset.read(root).samples)
    rows = [fabricate.row(m, s.id, shows="video") for s in samples for m in ("ev", "vl")]
    made = fabricate.run(tmp_path / "runs" / "r", rows)
    described = provenance.describe_dataset(root, samples)
    made = replace(made, header=replace(made.header, dataset=described))
    pictures = [n for n in files(bundle.write([made], tmp_path / "a", 64)) if "media/" in n]
    assert len([name for name in pictures if name.endswith(".webp")]) == len(samples)
    assert not [n for n in files(bundle.write([made], tmp_path / "b", 0)) if "media/" in n]
    monkeypatch.setattr(bundle, "INSIDE", 1)  # of the page: in its data, and no clip
    first, second = unpacked(bundle.page([made]).split('data-number="0">')[1].split("<")[0])
    ((address, _),) = first["media"]
    assert address.startswith("data:image/webp;base64,") and second["media"] == []


def test_an_existing_folder_is_not_replaced(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    arguments = ["bundle", str(run.folder), "--out", str(tmp_path / "out")]
    assert main(arguments) == 2 and "exists already: name a new folder" in capsys.readouterr().err
    assert main([*arguments[:-1], str(run.folder / "inner")]) == 2
    assert "is in the folder of a run" in capsys.readouterr().err
    assert main([*arguments[:-1], str(tmp_path / "new"), "--largest", "-1"]) == 2
    assert "largest is -1" in capsys.readouterr().err and not (tmp_path / "new").exists()
    assert main([*arguments[:-1], str(tmp_path / "new")]) == 0
    assert main(["report", "--bundle", str(tmp_path / "new"), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["id"] == run.id
    assert main(["report", str(run.folder), "--bundle", str(tmp_path / "new")]) == 2


def test_a_zip_holds_the_folder(run: Run, tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(bundle.zipped([run]))) as packed:
        packed.extractall(tmp_path / "there")
    for there in (tmp_path / "there" / "stagescope", tmp_path / "there.zip"):
        (tmp_path / "there.zip").write_bytes(bundle.zipped([run]))
        with bundle.opened(there) as (again,):
            assert again.id == run.id and again.problems == run.problems
    ids = (tmp_path / "there" / "stagescope" / "runs" / "001" / "ids.txt").read_text()
    assert ids.splitlines() == list(run.header.plan.samples)


def test_a_zip_is_checked_and_its_runs_are_put_beside_others(run: Run, tmp_path: Path) -> None:
    data, runs = bundle.zipped([run, run]), tmp_path / "visit"
    names = bundle.unzipped(io.BytesIO(data), runs)
    assert len(names) == 2 and {path.name for path in runs.iterdir()} == set(names)
    again = run_store.read(runs / names[0])
    assert [row.text for _, row in again.results()] == [row.text for _, row in run.results()]
    assert bundle.unzipped(io.BytesIO(data), runs) == names  # the same bundle again


def packed(files: Mapping[str, bytes]) -> io.BytesIO:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as out:
        for name, content in files.items():
            out.writestr(name, content)
    return data


def bomb() -> dict[str, bytes]:
    """A manifest that is right, and a part that unpacks to more than may be."""
    part = lzma.compress(b"x" * 4 * bundle.BLOCK)
    files = {"runs/001/run.json.xz": hashlib.sha256(part).hexdigest()}
    content = {"format": "stagescope-bundle", "version": 1, "files": files}
    manifest = json.dumps(content).encode()
    return {"b/runs/001/run.json.xz": part, f"b/{bundle.MANIFEST}": manifest}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "0 files named manifest.json"),
        ({"../../out/manifest.json": b"{}"}, "missing required field"),
        ({"a/manifest.json": b"", "b/manifest.json": b""}, "2 files named manifest.json"),
        (bomb(), "unpacks to more"),
        ({f"{n}": b"" for n in range(9)}, "more than a bundle may have: 8 files"),
    ],
)
def test_a_zip_that_is_no_bundle_is_refused(
    files: Mapping[str, bytes], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "MOST_BLOCKS", 3)
    monkeypatch.setattr(bundle, "MOST_FILES", 8)
    with pytest.raises(StoreError, match=said):
        bundle.unzipped(packed(files), tmp_path / "visit")
    with pytest.raises(StoreError, match="ZIP cannot be unpacked"):
        bundle.unzipped(io.BytesIO(b"PK\x03\x04 no"), tmp_path / "visit")
    assert not [*tmp_path.rglob("*")]
