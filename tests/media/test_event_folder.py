"""Folders of event files, with and without windows.csv."""

from pathlib import Path

import pytest

from engine.errors import DatasetError
from engine.media import dataset, dataset_files
from engine.media.dataset import Dataset
from engine.media_options import Window
from engine.types import Sample


def put(path: Path, data: bytes = b"events") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def windows(root: Path, text: str, *, name: str = "a/one.npy") -> Dataset:
    put(root / name)
    (root / "windows.csv").write_bytes(text.encode())
    return dataset.read(root)


def only(root: Path, header: str, line: str) -> Sample:
    (found,) = windows(root, f"{header}\n{line}\n").samples
    return found


def test_an_empty_file_is_a_problem_of_its_own(tmp_path: Path) -> None:
    put(tmp_path / "a.npy", b"")
    put(tmp_path / "b.npy")
    bad, good = dataset.read(tmp_path).samples
    assert bad.events is None and "a.npy is empty (0 bytes)" in bad.missing["events"]
    assert bad.problems == (bad.missing["events"],)
    assert good.events and not good.problems


def test_links_out_of_the_root_are_refused(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", put(tmp_path / "outside" / "secret.npy")
    put(root / "a.npy")
    (root / "b.npy").symlink_to(outside)
    (root / "folder").symlink_to(outside.parent)
    good, bad = dataset.read(root).samples
    assert good.id == "a" and bad.id == "b" and bad.events is None
    assert "is a link out of the dataset" in bad.problems[0]
    (root / "c.npy").symlink_to(root / "a.npy")  # control: a link that stays inside
    assert dataset.read(root).samples[2].events == root / "c.npy"


def test_limits_of_depth_and_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "/".join("abcdefgh") / "in.npy")
    put(tmp_path / "/".join("abcdefghi") / "too-deep.npy")
    assert [one.id for one in dataset.read(tmp_path).samples] == ["a/b/c/d/e/f/g/h/in"]
    put(tmp_path / "b.npy")
    monkeypatch.setattr(dataset_files, "MAX_FILES", 1)
    with pytest.raises(DatasetError, match="more than 1 event files"):
        dataset.read(tmp_path)
    monkeypatch.setattr(dataset_files, "MAX_FILES", 10)
    monkeypatch.setattr(dataset_files, "MAX_ENTRIES", 3)
    with pytest.raises(DatasetError, match="give a folder below it"):
        dataset.read(tmp_path)


def test_a_folder_without_events_says_what_is_looked_for(tmp_path: Path) -> None:
    put(tmp_path / "clip.mp4")
    with pytest.raises(DatasetError) as caught:
        dataset.read(tmp_path)
    for part in ("EventGPT_Instruction_Subset.json", "EvQA or EventBench", "no event files"):
        assert part in str(caught.value)


def test_windows_with_units_and_in_microseconds(tmp_path: Path) -> None:
    found = windows(
        tmp_path,
        "file,start,length,start_us,length_us\n"
        "a/one.npy,1.25s,50ms,,\n"
        "a/one.npy,,,100,2000\n"
        "a/one.npy,,50ms,,\n"
        "a/one.npy,,50ms,,\n"
        "a/one.npy,,,,\n",
    )
    assert [(one.id, one.window) for one in found.samples] == [
        ("a/one@1.25s+50ms", Window(1_250_000, 50_000)),
        ("a/one@100us+2ms", Window(100, 2_000)),
        ("a/one@0s+50ms", Window(0, 50_000)),
        ("a/one@0s+50ms#2", Window(0, 50_000)),
        ("a/one", None),
    ]
    assert not any(one.problems for one in found.samples)
    assert {one.events for one in found.samples} == {tmp_path / "a/one.npy"}
    assert {one.sequence for one in found.samples} == {"a"}
    assert found.file == tmp_path / "windows.csv" and set(found.clips) == {"a/one"}
    with pytest.raises(DatasetError, match="means 4 samples"):
        dataset.find(found, "a/one@")


def test_all_columns_of_a_line(tmp_path: Path) -> None:
    sample = only(
        tmp_path,
        "\ufeffID, File ,length,question,reference,choices,answer,task",
        'first,a/one.npy,50ms,"What is ahead?","A car, near",a car| a truck |nothing,b,ahead',
    )
    assert (sample.id, sample.reference, sample.task) == ("first", "A car, near", "ahead")
    assert sample.choices == ("a car", "a truck", "nothing") and sample.answer == "B"
    assert sample.question.startswith("What is ahead?\nA. a car\nB. a truck\n")
    assert not sample.problems


@pytest.mark.parametrize("name", ["windows.CSV", "Windows.csv", "WINDOWS.CSV"])
def test_the_list_may_be_named_in_capitals(tmp_path: Path, name: str) -> None:
    put(tmp_path / "a.npy")
    put(tmp_path / name, b"id,file\nown,a.npy\n")
    assert [one.id for one in dataset.read(tmp_path).samples] == ["own"]
    put(tmp_path / "windows.csv", b"id,file\nother,a.npy\n")
    if len(list(tmp_path.iterdir())) == 3:  # not on a file system that ignores capitals
        with pytest.raises(DatasetError, match=r"different in capitals only: keep one"):
            dataset.read(tmp_path)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("a/none.npy,0s,50ms", "a/none.npy does not exist"),
        ("../one.npy,0s,50ms", "'../one.npy' is refused: name a file below ./"),
        ("a/one.npy,0s,50", "'50' is not a time in us, ms, s, min or h"),
        ("a/one.npy,-1s,50ms", "'-1s' is not a time"),
        ("a/one.npy,1e9s,50ms", "'1e9s' is not a time"),
        ("a/one.npy,99999999999999999999s,50ms", "is not a time"),
        ("a/one.npy,0s,0ms", "a length of at least 1 us"),
        ("a/one.npy,1s,", "has a start and no length"),
        ("a/one.npy,1s,50ms,,,1", "more fields than the header"),
        ("a/one.npy,1s,,5,6", "leave start empty"),
        ("a/one.npy,,,1.5,6", "start_us is '1.5': write whole microseconds"),
        ("a/one.npy,,,,1" + "0" * 40, "write whole microseconds"),
    ],
)
def test_a_bad_line_is_a_problem_of_that_line_only(
    tmp_path: Path, line: str, sentence: str
) -> None:
    text = f"file,start,length,start_us,length_us\n{line}\na/one.npy,1s,50ms,,\n"
    bad, fine = windows(tmp_path, text).samples
    assert any(sentence in problem for problem in bad.problems), bad.problems
    assert bad.events is None and "events" in bad.missing
    assert fine.events and fine.window and not fine.problems


def test_bad_choices_are_not_asked_in_another_form(tmp_path: Path) -> None:
    header = "file,length,question,choices,choice_form,answer"
    words = only(tmp_path, header, "a/one.npy,,Which?,left|right,words,right")  # control
    assert (words.question, words.choice_form, words.answer) == ("Which?", "words", "B")
    sample = only(tmp_path, header, "a/one.npy,50ms,Which?,one|,,A")
    (problem,) = sample.problems
    assert problem.startswith("Line 2 of windows.csv: choices is") and sample.choices
    assert sample.missing == dict.fromkeys(("events", "video", "image"), problem)
    sample = only(tmp_path, header, "a/one.npy,,Which?,,,B")
    assert "Line 2 of windows.csv: it has an answer and no choices" in sample.problems[0]
    assert "events" not in sample.missing


def test_a_list_that_is_a_link_out_of_the_folder(tmp_path: Path) -> None:
    root = tmp_path / "root"
    put(root / "a.npy")
    own = put(root / "own.list", b"file\na.npy\n")
    outside = put(tmp_path / "windows.csv", b"file\na.npy\n")
    (root / "windows.csv").symlink_to(outside)
    with pytest.raises(DatasetError, match=r"windows\.csv is a link out of the dataset"):
        dataset.read(root)
    (root / "windows.csv").unlink()
    (root / "windows.csv").symlink_to(own)  # control: a link that stays inside
    assert dataset.read(root).samples[0].id == "a"


def test_an_id_that_is_given_twice(tmp_path: Path) -> None:
    text = "id,file\nx,a/one.npy\nx,a/one.npy\n"
    first, second = windows(tmp_path, text).samples
    assert (first.id, second.id) == ("x", "record-3")
    assert "Line 3 of windows.csv has the id 'x' of an earlier record" in second.problems[0]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "has no column file"),
        (b"start,length\n1s,1s\n", "has no column file"),
        (b"file,speed\na,1\n", "has the unknown columns speed"),
        (b"file,file\na,b\n", "or names one twice"),
        (b"file,start,length\n", "has no line below its header"),
        (b'file\na.npy\n"a"x\na.npy\n', "is not readable as CSV (lines 3 to 3:"),
        (b'file\na.npy\n"a.npy\na.npy\n', "is not readable as CSV (lines 3 to 4:"),
        (b"file\na\xff\n", "is not UTF-8"),
        (None, "cannot be read"),  # a folder of that name
    ],
)
def test_lists_that_cannot_be_read(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    put(tmp_path / "a.npy")
    (tmp_path / "windows.csv").mkdir() if content is None else put(
        tmp_path / "windows.csv", content
    )
    with pytest.raises(DatasetError) as caught:
        dataset.read(tmp_path)
    assert sentence in str(caught.value) and "windows.csv" in str(caught.value)
