"""Datasets on disk: every record is listed, whatever it holds, and no path leaves the root."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.errors import DatasetError, MediaError
from engine.media import dataset, dataset_files
from engine.media.dataset import Dataset
from engine.media.dataset_files import Root
from engine.quoting import quoted
from engine.types import Sample
from tests.conftest import REAL

NAME = "EventGPT_Instruction_Subset.json"


def put(path: Path, size: int = 2000) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    return path


def full(root: Path, clip: str = "seq/000000", **fields: Any) -> dict[str, Any]:
    """A complete record as the original scripts write it, with its files."""
    put(root / f"event_npy/{clip}.npy")
    put(root / f"mp4/{clip}.mp4")
    for i in (0, 1, 2, 10):
        put(root / f"event_image/{clip}_{i}.png")
    for i in range(27, 30):
        put(root / f"video/{clip}/{i:06d}.png")
    return {
        "id": "5f1d0c2a-0000",
        "split": "my_split",
        "event_data": f"{clip}.npy",
        "video_data": clip,
        "mp4_data": f"{clip}.mp4",
        "event_image": [f"{clip}_{i}.png" for i in (10, 0, 2, 1)],
        "conversations": [
            {"from": "human", "value": "<event>\nWhat is there?"},
            {"from": "gpt", "value": "A car."},
        ],
    } | fields


def read(root: Path, records: object, name: str = NAME) -> Dataset:
    root.mkdir(exist_ok=True)
    (root / name).write_text(json.dumps(records), encoding="utf-8")
    return dataset.read(root)


def only(root: Path, record: object) -> Sample:
    (sample,) = read(root, [record]).samples
    return sample


def test_a_full_record(tmp_path: Path) -> None:
    sample = only(tmp_path, full(tmp_path, truth={"weather": "rain"}))
    assert (sample.id, sample.sequence) == ("5f1d0c2a-0000", "seq")
    assert (sample.question, sample.reference) == ("What is there?", "A car.")
    assert sample.events == tmp_path / "event_npy/seq/000000.npy"
    assert sample.mp4 == tmp_path / "mp4/seq/000000.mp4"
    assert [p.stem for p in sample.event_images] == [f"000000_{i}" for i in (0, 1, 2, 10)]
    assert [p.name for p in sample.frames] == ["000027.png", "000028.png", "000029.png"]
    assert (sample.truth, sample.missing, sample.problems) == ({"weather": "rain"}, {}, ())


def test_a_minimal_record_finds_clip_and_frames_by_its_name(tmp_path: Path) -> None:
    record = full(tmp_path)
    sample = only(tmp_path, {"id": "a", "event_data": record["event_data"]})
    assert sample.mp4 == tmp_path / "mp4/seq/000000.mp4"
    assert len(sample.frames) == 3
    assert (sample.event_images, sample.missing, sample.problems) == ((), {}, ())


@pytest.mark.parametrize(
    "value",
    [
        *("../../etc/passwd", "/etc/passwd", "seq/../../secret", "..", "..\\secret", "C:/secret"),
        *("c:secret", "\\\\host\\share", "seq/\0.npy", "seq/\n.npy", "seq/\ud800.npy", "a" * 300),
        *("a/" * 2000, "", ".", "./", 7, ["seq/000000.npy"], {"path": "x"}, True),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_paths_that_leave_the_root_are_refused(tmp_path: Path, value: object) -> None:
    root = Root(tmp_path)
    with pytest.raises(MediaError) as caught:
        root.path_of("mp4", value)
    assert str(caught.value) == f"{quoted(value)} is refused: name a file below mp4/, without '..'."
    assert root.path_of("mp4", "seq/a.b") == tmp_path / "mp4/seq/a.b"


@pytest.mark.parametrize("value", ["../secret", 7])
@pytest.mark.parametrize("key", ["event_data", "video_data", "mp4_data", "event_image"])
def test_a_record_names_no_path_outside_its_root(tmp_path: Path, key: str, value: object) -> None:
    put(tmp_path / "secret")
    sample = only(tmp_path / "root", {"id": "a", key: [value] if key == "event_image" else value})
    assert (sample.events, sample.mp4, sample.frames, sample.event_images) == (None, None, (), ())
    assert any(repr(value) in problem for problem in sample.problems)
    assert repr(value) in sample.missing["events" if key.startswith("event") else "video"]


def test_links_that_stay_inside_are_followed(tmp_path: Path) -> None:
    record = full(tmp_path)
    (tmp_path / "mp4").rename(tmp_path / "clips")
    (tmp_path / "mp4").symlink_to(tmp_path / "clips")
    assert only(tmp_path, record).mp4 is not None
    for name, other in ("ab", "ba"):  # in a circle
        (tmp_path / f"mp4/{name}.mp4").symlink_to(tmp_path / f"mp4/{other}.mp4")
    assert only(tmp_path, {"id": "a", "mp4_data": "a.mp4"}).problems


def test_missing_empty_and_short_files(tmp_path: Path) -> None:
    record = full(tmp_path)
    put(tmp_path / "mp4/seq/000000.mp4", 999)
    put(tmp_path / "event_npy/seq/000000.npy", 0)
    (tmp_path / "event_image/seq/000000_1.png").unlink()
    for path in (tmp_path / "video/seq/000000").iterdir():
        path.unlink()
    sample = only(tmp_path, record)
    assert "event_image/seq/000000_1.png does not exist" in sample.missing["events"]
    assert "event_npy/seq/000000.npy is empty (0 bytes)" in sample.missing["events"]
    assert "mp4/seq/000000.mp4 is broken (999 bytes)" in sample.missing["video"]
    assert "video/seq/000000/ holds no PNG or JPEG" in sample.missing["image"]
    assert len(sample.problems) == 4


def test_folders_and_stray_files_are_no_frames(tmp_path: Path) -> None:
    record = full(tmp_path)
    put(tmp_path / "video/seq/000000/._000027.png")
    put(tmp_path / "video/seq/000000/notes.txt")
    put(tmp_path / "video/seq/000000/000030.JPG")
    (tmp_path / "event_npy/seq/000000.npy").unlink()
    (tmp_path / "event_npy/seq/000000.npy").mkdir()
    sample = only(tmp_path, record)
    assert [path.name[:6] for path in sample.frames] == ["000027", "000028", "000029", "000030"]
    assert "is not a file" in sample.problems[0]


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (7, "Record 1 is a number instead of an object"),
        (None, "Record 1 is nothing instead of an object"),
        ({}, "Record 1 has no usable id and is called record-1"),
        ({"id": " "}, "Record 1 has no usable id"),
        ({"id": "a", "event_image": "x.png"}, "event_image is 'x.png': give a list"),
        ({"id": "a", "conversations": "hello"}, "conversations is 'hello' (Expected array"),
        ({"id": "a", "conversations": "\ud800x"}, "conversations is '\\ud800x' ("),
        ({"id": "a", "conversations": [5]}, "The turn 5 has no text"),
        ({"id": "a", "split": 5}, "split is 5 (Expected str, got int)"),
        ({"id": "a", "truth": ["x"]}, "truth is ['x'] ("),
        ({"id": "a", "boxes": [1]}, "boxes is [1] ("),
    ],
)
def test_records_that_are_wrong_are_listed(tmp_path: Path, record: object, sentence: str) -> None:
    good = full(tmp_path, id="good")
    bad, fine = read(tmp_path, [record, good]).samples
    assert any(sentence in problem for problem in bad.problems), bad.problems
    assert set(bad.missing) == {"events", "video", "image"}
    assert (fine.id, fine.problems) == ("good", ())


def test_ids_are_made_unique(tmp_path: Path) -> None:
    found = read(tmp_path, [{"id": "a"}, {"id": "a"}, {}, {"id": "record-3"}])
    assert [sample.id for sample in found.samples] == ["a", "record-2", "record-3", "record-4"]
    assert "the id 'a' of an earlier record" in found.samples[1].problems[0]


def test_text_that_no_output_can_encode(tmp_path: Path) -> None:
    turn = {"from": "human", "value": "\ud800 <event>?"}
    sample = only(tmp_path, {"id": "x\udfff", "conversations": [turn], "truth": {"\ud801": "b"}})
    text = sample.id + sample.question + "".join(sample.truth) + "".join(sample.problems)
    assert text.encode()
    assert "<event>?" in sample.question


def test_several_dataset_files_and_none_of_the_results(tmp_path: Path) -> None:
    for name in ("benchmark_results.json", "EventGPT_Instruction_Subset_results_n10.json"):
        (tmp_path / name).write_text("not read")
    records = json.dumps([{"id": "a", "split": "later"}, {"id": "b"}])
    byte_order_mark = b"\xef\xbb\xbf"
    other = tmp_path / "EventGPT_Instruction_Subset_seq.json"
    other.write_bytes(byte_order_mark + records.encode())
    found = read(tmp_path, [{"id": "a", "split": "first"}])
    assert [(s.id, s.sequence) for s in found.samples] == [("a", "first"), ("b", "")]
    assert found.file == tmp_path / NAME
    assert "repeats 1 ids of an earlier file, first 'a'" in found.problems[0]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "holds no EventGPT_Instruction_Subset.json"),
        (b"[{]", "is not readable JSON"),
        (b"[" * 100_000, "is not readable JSON"),
        (b"[\xff]", "is not UTF-8 (byte 1)"),
        (b"{}", "holds an object instead of a list"),
        (b"[]", "holds an empty list"),
    ],
)
def test_roots_that_hold_no_dataset(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    if content is not None:
        (tmp_path / NAME).write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        dataset.read(tmp_path)
    assert sentence in str(caught.value) and str(tmp_path) in str(caught.value)


def test_roots_that_are_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DatasetError, match=r"nowhere' does not exist: give .* or event files"):
        dataset.read(Path("nowhere"))
    with pytest.raises(DatasetError, match=r"file' is no folder: give the folder"):
        dataset.read(put(Path("file")))
    for odd in ("\0", "x" * 5000, "~nobody-of-this-name/x"):
        with pytest.raises(DatasetError, match="dataset root"):
            dataset.read(Path(odd))


def test_finding_a_sample(tmp_path: Path) -> None:
    records = [
        full(tmp_path, id="aaaa-1111"),
        full(tmp_path, "seq/000001", id="aaaa-2222"),
        {"id": "aaaa-2222-long", "event_data": "seq/000002.npy"},
        {"id": "bb", "event_data": "seq/000001.npy"},
        {"id": "cc", "event_data": "solo/000000.npy"},
    ]
    found = read(tmp_path, records)
    for wanted, sample_id in (
        ("aaaa-1", "aaaa-1111"),
        ("aaaa-2222", "aaaa-2222"),
        ("aaaa-2222-", "aaaa-2222-long"),
        ("seq/000000", "aaaa-1111"),
        ("seq/000002", "aaaa-2222-long"),
        ("solo", "cc"),
    ):
        assert dataset.find(found, wanted).id == sample_id
    with pytest.raises(DatasetError, match=r"'aaaa' means 3 samples: name one by its id"):
        dataset.find(found, "aaaa")
    with pytest.raises(DatasetError, match=r"'seq/000001' means 2 samples"):
        dataset.find(found, "seq/000001")
    with pytest.raises(DatasetError, match=r"'aaaa-1112' is not in .*: did you mean 'aaaa-1111'"):
        dataset.find(found, "aaaa-1112")
    with pytest.raises(DatasetError, match="give at least 4 characters of the beginning of an id"):
        dataset.find(found, "aaa")
    for wanted in ("zzz", "", "zzzzzz"):
        with pytest.raises(DatasetError, match=r"is not in .*: the command `samples` lists them"):
            dataset.find(found, wanted)


def test_finding_what_lines_name(tmp_path: Path) -> None:
    found = read(tmp_path, [{"id": "aaaa-1111"}, {"id": "bbbb-2222"}])
    lines = [" bbbb-2222 ", "", "aaaa-1", "bbbb-"]
    assert dataset.find_all(found, lines) == ["bbbb-2222", "aaaa-1111", "bbbb-2222"]
    with pytest.raises(DatasetError, match=r"'cccc' is not in"):
        dataset.find_all(found, ["cccc", "aaaa-1111"])
    with pytest.raises(DatasetError, match=r"'cccc'.*\(2 more lines are not found either\)$"):
        dataset.find_all(found, ["cccc", "dddd", "eeee"])


@pytest.mark.parametrize("field", ["mp4_data", "video_data"])
@pytest.mark.parametrize("kind", ["webm", "mov", "gif"])
def test_a_record_may_name_a_clip_of_another_kind(tmp_path: Path, field: str, kind: str) -> None:
    clip = put(tmp_path / "mp4" / "s" / f"0.{kind}")
    found = read(tmp_path, [{"id": "a", field: f"s/0.{kind}"}])
    assert found.clips == ("s/0",) and found.samples[0].mp4 == clip


def test_a_record_of_very_many_things_has_few_problems(tmp_path: Path) -> None:
    fields = {"conversations": [5] * 1000, "event_image": ["a.png"] * 20_000}
    (tmp_path / NAME).write_text(json.dumps([{"id": "a", **fields}]))
    problems = dataset.read(tmp_path).samples[0].problems
    assert problems[0].endswith(": give a list of at most 10,000 pictures.")
    assert problems[1:] == ("The turn 5 and 999 more has no text: correct the record.",)


def test_a_dataset_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / NAME).write_text(json.dumps([{"id": "a"}, {"id": "b"}]))
    assert len(dataset.read(tmp_path).samples) == 2
    monkeypatch.setattr(dataset_files, "MAX_RECORDS", 1)
    with pytest.raises(DatasetError, match="holds 2 records, and at most 1 are read: make"):
        dataset.read(tmp_path)
    (tmp_path / NAME).write_text(json.dumps([{"id": "a"}]))
    assert len(dataset.read(tmp_path).samples) == 1
    (tmp_path / f"{dataset.STEM}_more.json").write_text(json.dumps([{"id": "b"}]))
    with pytest.raises(DatasetError, match="holds more than 1 samples: make a folder for each"):
        dataset.read(tmp_path)  # the limit is of the root, however many lists it has
    monkeypatch.setattr(dataset_files, "MAX_LIST_BYTES", 10)
    with pytest.raises(DatasetError, match="10 bytes"):
        dataset.read(tmp_path)


def test_the_real_recordings() -> None:
    if not REAL.is_dir():
        pytest.skip("the real recordings are not on this machine")
    fish, drop, road = dataset.read(REAL).samples
    assert set(fish.missing) == {"video", "image"}
    assert fish.question == "What is the person holding in their hands?"
    assert drop.missing == {}
    assert drop.problems == ("event_npy/drop/000000.npy does not exist: restore it.",)
    assert (len(drop.frames), drop.frames[0].name) == (21, "000027.png")
    assert set(road.missing) == {"events"}
    assert "neither event images nor raw events" in road.missing["events"]


def test_samples_are_searched_by_words_sequence_and_media() -> None:
    samples = [
        Sample("a1", "drive_1", question="Why?", truth={"motion": "braking"}),
        Sample("a2", "drive_1", missing={"events": "Needs event images."}),
        Sample("b1", "drive_2", missing={"video": "Needs a video."}),
    ]

    def found(*filters: Any) -> list[str]:
        return [sample.id for sample in dataset.search(samples, *filters)]

    assert found() == ["a1", "a2", "b1"]
    assert found("DRIVE_1") == ["a1", "a2"] and found("drive_1 braking") == ["a1"]
    assert found("why") == ["a1"] and found("a1 a2") == []
    assert found("", "drive_2") == ["b1"] and found("a", "drive_2") == []
    assert found("", "", ["events"]) == ["a1", "b1"]
    assert found("", "", ["events", "video"]) == ["a1"]


ASKED = [{"from": "human", "value": "<event>\nWhat is ahead?"}]


def test_a_record_with_choices(tmp_path: Path) -> None:
    fields = {"choices": ["a car", "a truck"], "answer": "a truck", "task": "ahead"}
    record = full(tmp_path, id="a", conversations=ASKED, **fields)
    sample = only(tmp_path, record)
    assert sample.question.startswith("What is ahead?\nA. a car\nB. a truck\nAnswer with")
    assert (sample.choices, sample.choice_form) == (("a car", "a truck"), "letters")
    assert (sample.answer, sample.task, sample.problems) == ("B", "ahead", ())
    words = only(tmp_path, record | {"choice_form": "words"})
    assert (words.question, words.choice_form, words.answer) == ("What is ahead?", "words", "B")
    alone = only(tmp_path, full(tmp_path, id="a", conversations=ASKED, answer="a truck"))
    assert (alone.question, alone.choices, alone.answer) == ("What is ahead?", (), "")
    assert "answer is given without choices" in alone.problems[0]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"choices": []}, "choices is []: give 2 to 26 different texts"),
        ({"choices": ["a", "b"], "answer": "c"}, "means none of its options"),
        ({"choices": ["a", "b"], "choice_form": 5}, "choice_form is"),
        ({"choices": ["a", "b"], "conversations": []}, "The record has choices and no question"),
    ],
)
def test_choices_that_are_wrong_are_not_asked_in_another_form(
    tmp_path: Path, fields: dict[str, Any], sentence: str
) -> None:
    record = full(tmp_path, id="a", conversations=ASKED) | fields
    sample = only(tmp_path, record)
    (problem,) = sample.problems
    assert sentence in problem and sample.choices and sample.event_images
    assert sample.missing == dict.fromkeys(("events", "video", "image"), problem)
