"""baselines.csv: good lines, a sentence for each bad one, never a crash."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import BadInput
from engine.report.named_baselines import NAME, Baseline, Baselines, of_runs, read
from engine.storage.run_header import DatasetIdentity
from engine.storage.run_store import Run
from tests import fabricate

HEAD = "model,task,accuracy,n,paper,table,url\n"
GOOD = 'Model X,all,61.5,1000,"Author, 2026",Table 2,https://example.org\n'


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / NAME
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_good_lines(tmp_path: Path) -> None:
    found = read(write(tmp_path, "\ufeff" + HEAD + GOOD + "\nY,motion,0,,P,T,\n"))
    assert found.problems == ()
    assert found.lines == (
        Baseline("Model X", "", 0.615, 1000, "Author, 2026", "Table 2", "https://example.org"),
        Baseline("Y", "motion", 0.0, None, "P", "T"),
    )
    assert found.lines[0].source == "Author, 2026, Table 2" and found.lines[0].percent == "61.5%"
    short = read(write(tmp_path, "table,paper,accuracy,task,model\r\nT,P,50,,Z\r\n"))
    assert short.lines == (Baseline("Z", "", 0.5, None, "P", "T"),)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("X,all,61.5,1000,P", "has 5 cells instead of 7"),
        (",all,61.5,,P,T,", "has '' for model"),
        ("X,all,61.5,,,T,", "has '' for paper"),
        ("X,all,61.5,,P,,", "has '' for table"),
        ("X,all,,,P,T,", "for accuracy instead of percent"),
        ("X,all,61.5%,,P,T,", "for accuracy instead of percent"),
        ("X,all,101,,P,T,", "for accuracy instead of percent"),
        ("X,all,-1,,P,T,", "for accuracy instead of percent"),
        ("X,all,nan,,P,T,", "for accuracy instead of percent"),
        ("X,all,1e999,,P,T,", "for accuracy instead of percent"),
        ("X,all,6_1,,P,T,", "for accuracy instead of percent"),
        ("X,all,0.615,,P,T,", "for accuracy instead of percent"),
        ("X,all,61.5,-3,P,T,", "for n"),
        ("X,all,61.5,1e3,P,T,", "for n"),
        ("X,all,61.5,9999999999,P,T,", "for n"),
        ("X,all,61.5,,P,T,javascript:alert(1)", "begins with https://"),
        (f"{'x' * 301},all,61.5,,P,T,", "at most 300 characters"),
        (GOOD.strip(), "is there twice"),
    ],
)
def test_a_bad_line_is_one_sentence_and_leaves_the_others(
    tmp_path: Path, line: str, said: str
) -> None:
    found = read(write(tmp_path, HEAD + GOOD + line + "\n"))
    assert len(found.lines) == 1 and len(found.problems) == 1
    assert found.problems[0].startswith("Line 3 of ") and said in found.problems[0]
    assert found.problems[0].endswith(".")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "needs the columns model"),
        (b"model,task\nX,all\n", "needs the columns model"),
        (b"model,model,task,accuracy,paper,table\n", "needs the columns model"),
        (b"\xff\xfe", "not UTF-8"),
        (HEAD.encode() + b'"open', "is not CSV"),
        (HEAD.encode() + b"X,all,1,,P,T,\n" * 1_001, "at most 1,000 lines"),
        (b"x" * (2**20 + 1), "baselines.csv"),
    ],
)
def test_what_is_no_such_file(tmp_path: Path, content: bytes, said: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(BadInput, match=said):
        read(path)
    (problem,) = of_runs([at(tmp_path / "r", tmp_path)]).problems
    assert said in problem


def at(folder: Path, root: Path) -> Run:
    """A run whose dataset is in this root."""
    run = fabricate.run(folder, [fabricate.question(0, "A")])
    return replace(run, header=replace(run.header, dataset=DatasetIdentity(str(root), "d")))


def test_the_file_beside_the_dataset_is_found_once(tmp_path: Path) -> None:
    write(tmp_path, HEAD + GOOD)
    runs = [at(tmp_path / "a", tmp_path), at(tmp_path / "b", tmp_path)]
    assert len(of_runs(runs).lines) == 1
    assert of_runs([at(tmp_path / "c", tmp_path / "none")]) == Baselines()
    assert of_runs([at(tmp_path / "d", Path("a\0b"))]) == Baselines()
    (tmp_path / "folder" / NAME).mkdir(parents=True)
    assert of_runs([at(tmp_path / "e", tmp_path / "folder")]) == Baselines()
