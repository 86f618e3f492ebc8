"""EvQA and EventBench as they are published, and lists of other shapes."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.errors import DatasetError
from engine.media import benchmark_layouts, dataset
from engine.media.dataset import Dataset
from engine.types import Sample
from tests.media.test_event_folder import put

CHOICES = ["A bird.", "A car.", "A dog.", "A tree."]


def question(number: int = 1, **fields: Any) -> dict[str, Any]:
    """A question as EvQA's review system and reader know it."""
    return {
        "question_id": number,
        "qid": f"DSEC_{number}",
        "dataset_name": "DSEC",
        "file_path": f"{number}.h5",
        "resolution": [480, 640],
        "question_type": "Object",
        "question": "What passes the camera?",
        "answer": "A car.",
        "choices": CHOICES,
        "question_cn": "什么经过了相机?",
        **fields,
    }


def evqa(root: Path, *questions: object, name: str = "DSEC", **group: Any) -> Dataset:
    for number in (1, 2):
        put(root / "h5_files" / name / f"{number}.h5")
    put(root / "h5_files" / name / "LICENSE.txt")
    value = {"dataset_name": name, "description": "...", "questions": list(questions), **group}
    put(root / "questions" / f"{name}.json", json.dumps(value).encode())
    return dataset.read(root)


def only(found: Dataset) -> Sample:
    (sample,) = found.samples
    return sample


def test_a_question_of_evqa(tmp_path: Path) -> None:
    found = evqa(tmp_path, question())
    sample = only(found)
    assert (sample.id, sample.sequence, sample.task) == ("DSEC_1", "DSEC", "Object")
    assert sample.question == (
        "Question: What passes the camera?\nOptions:\n(A) A bird.\n(B) A car.\n(C) A dog.\n"
        "(D) A tree.\n\nOnly give the best option."
    )
    assert (sample.choices, sample.answer) == (tuple(CHOICES), "B")
    assert (sample.choice_form, sample.reference, sample.window) == ("letters", "", None)
    assert sample.events == tmp_path / "h5_files" / "DSEC" / "1.h5" and not sample.problems
    assert set(sample.missing) == {"video", "image"}
    assert found.file == tmp_path / "questions" / "DSEC.json"
    assert found.clips == ("h5_files/DSEC/1",)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"file_path": "3.h5"}, "h5_files/DSEC/3.h5 does not exist"),
        ({"file_path": "../MVSEC/1.h5"}, "is refused: name a file below h5_files/"),
        ({"dataset_name": "../.."}, "is refused: name a file below h5_files/"),
        ({"file_path": None}, "The record names no event file: add it"),
        ({"answer": "B"}, "The answer 'B' means none of its options: write letter and text"),
        ({"choices": "A bird."}, "choices is 'A bird.': give 2 to 26"),
        ({"question": "", "choices": None}, "Record 1: it has no question: add it"),
        ({"question": {"en": "What?"}}, "has choices and no question"),
    ],
)
def test_a_bad_question_of_evqa_is_its_own_problem(
    tmp_path: Path, fields: dict[str, Any], sentence: str
) -> None:
    bad, good = evqa(tmp_path, question(1, **fields), question(2, answer=None)).samples
    assert any(sentence in problem for problem in bad.problems), bad.problems
    assert bad.missing["events"] in bad.problems
    assert good.events and good.choices and good.answer == "" and not good.problems


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ([{"qid": 1}], "has records with the keys qid"),
        *((value, "odd.json has no records") for value in ({"items": []}, 3, {"questions": {}})),
    ],
)
def test_lists_that_are_not_evqas(tmp_path: Path, value: object, sentence: str) -> None:
    evqa(tmp_path, question())
    put(tmp_path / "questions" / "odd.json", json.dumps(value).encode())
    found = dataset.read(tmp_path)
    assert only(found).id == "DSEC_1"
    (problem,) = found.problems
    assert sentence in problem and "odd.json" in problem
    (tmp_path / "questions" / "DSEC.json").unlink()
    with pytest.raises(DatasetError) as caught:
        dataset.read(tmp_path)
    assert str(caught.value) == problem


def test_lists_that_are_damaged_or_links_leave_the_others(tmp_path: Path) -> None:
    root = tmp_path / "root"
    good = evqa(root, question())
    assert not good.problems
    put(root / "questions" / "broken.json", b"[{")
    (root / "questions" / "linked.json").symlink_to(put(tmp_path / "outside.json", b"{}"))
    found = dataset.read(root)
    assert found.samples == good.samples and len(found.problems) == 2
    assert "broken.json is not readable JSON" in found.problems[0]
    assert "linked.json is a link out of the dataset" in found.problems[1]


def test_a_problem_names_the_list_if_there_are_several(tmp_path: Path) -> None:
    evqa(tmp_path, question(1), name="DSEC")
    other = [question(2, qid="M", answer="?", dataset_name="MVSEC"), 7]
    bad, odd = evqa(tmp_path, *other, name="MVSEC").samples[1:]
    assert bad.problems[0].startswith("Record 1 of questions/MVSEC.json: The answer '?' means none")
    assert "Record 2 of questions/MVSEC.json is a number" in odd.problems[0]


@pytest.mark.parametrize("file", ["benchmark_1.json", "Results.json", "a_result_.JSON"])
@pytest.mark.parametrize("folders", [("questions", "h5_files"), ("Questions", "H5_FILES")])
def test_every_list_of_evqa_is_read_under_any_name(
    tmp_path: Path, file: str, folders: tuple[str, str]
) -> None:
    value = json.dumps({"dataset_name": "DSEC", "questions": [question()]}).encode()
    put(tmp_path / folders[0] / file, value)
    sample = only(dataset.read(tmp_path))  # without its recordings: where they belong
    assert "h5_files/DSEC/1.h5 does not exist" in sample.missing["events"]
    recording = put(tmp_path / folders[1] / "DSEC" / "1.h5")
    sample = only(dataset.read(tmp_path))
    assert (sample.id, sample.events, sample.problems) == ("DSEC_1", recording, ())


def bins(root: Path, value: object, name: str = "test.json") -> Dataset:
    for number in (1, 2):
        put(root / "events" / f"{number}.npz")
    put(root / name, json.dumps(value).encode())
    return dataset.read(root)


RECORD: dict[str, Any] = {
    "id": "q1",
    "event_data": "events/1.npz",
    "question": "What moves?",
    "options": CHOICES,
    "answer": "C",
    "task": "counting",
}


def test_a_record_of_eventbench(tmp_path: Path) -> None:
    found = bins(tmp_path, [RECORD])
    sample = only(found)
    assert (sample.id, sample.sequence, sample.task) == ("q1", "events", "counting")
    assert sample.question.startswith("What moves?\nA. A bird.\nB. A car.\n")
    assert (sample.choices, sample.answer) == (tuple(CHOICES), "C")
    assert sample.events == tmp_path / "events" / "1.npz" and not sample.problems
    assert found.clips == ("events/1",) and found.file == tmp_path / "test.json"


@pytest.mark.parametrize(
    "changed",
    [
        {"answer": "A dog."},
        {"options": None, "choices": CHOICES},
        {"answer": None, "ground_truth": "C"},
        {"question": None, "query": "What moves?"},
        {"question": None, "conversations": [{"from": "human", "value": "<event>\nWhat moves?"}]},
        {"question": None, "conversations": [{"value": "<event>\nWhat moves?"}, {"value": "A"}]},
        {"event_data": None, "event": "events/1.npz"},
        {"event_data": "events/1.npy"},
        {"event_data": "events/1"},
        {"event_data": "1.npz"},
        {"event_data": "/mnt/disk/EventBench/1.npy"},
        {"task": None, "task_type": "counting"},
    ],
    ids=str,
)
def test_other_forms_of_the_same_record(tmp_path: Path, changed: dict[str, Any]) -> None:
    record = {key: value for key, value in (RECORD | changed).items() if value is not None}
    wanted = only(bins(tmp_path, [RECORD]))
    assert only(bins(tmp_path, [record])) == wanted


def test_lists_by_task_and_below_the_root(tmp_path: Path) -> None:
    record = {key: value for key, value in RECORD.items() if key != "task"}
    records = {"spatial": [record | {"id": 1}], "causal": [record | {"id": 2}], "version": 3}
    found = bins(tmp_path, records, "lists/test.json")
    assert [(one.id, one.task) for one in found.samples] == [("1", "spatial"), ("2", "causal")]
    plain = bins(tmp_path, {"data": [record]}, "lists/test.json")
    assert only(plain).task == ""


def test_an_open_question_has_a_reference(tmp_path: Path) -> None:
    record = RECORD | {"options": None, "answer": "A dog runs."}
    sample = only(bins(tmp_path, [record]))
    assert (sample.question, sample.reference, sample.choices) == ("What moves?", "A dog runs.", ())
    turns = [{"from": "human", "value": "<event>\nWhat?"}, {"from": "gpt", "value": "It."}]
    told = only(bins(tmp_path, [{"event": "events/1.npz", "conversations": turns}]))
    assert (told.id, told.question, told.reference) == ("record-1", "What?", "It.")
    plain = [{"value": turn["value"]} for turn in turns]
    alike = only(bins(tmp_path, [{"event": "events/1.npz", "conversations": plain}]))
    assert alike == told


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"event_data": "events/3.npz"}, "events/3.npz does not exist"),
        ({"event_data": "../outside.npz"}, "is refused: name a file below ./"),
        ({"event_data": 5}, "5 is refused"),
        ({"answer": "E"}, "means none of its options"),
        ({"question": "", "options": None}, "Record 2: it has no question: add it"),
        ({"question": "", "options": None, "conversations": []}, "it has no question"),
    ],
)
def test_a_bad_record_of_eventbench_is_its_own_problem(
    tmp_path: Path, changed: dict[str, Any], sentence: str
) -> None:
    put(tmp_path.parent / "outside.npz")
    good, bad = bins(tmp_path, [RECORD, RECORD | {"id": "bad"} | changed]).samples
    assert any(sentence in problem for problem in bad.problems), bad.problems
    assert bad.missing["events"] in bad.problems
    assert bad.sequence == ("" if "refused" in sentence else "events")
    assert not good.problems and good.answer == "C"


def test_other_lists_are_named_beside_those_that_are_read(tmp_path: Path) -> None:
    good = bins(tmp_path, [RECORD])
    put(tmp_path / "other.json", b'[{"image": "x.png", "caption": "y"}]')
    put(tmp_path / "odd.json", b"[{")
    found = dataset.read(tmp_path)
    assert not good.problems and found.samples == good.samples
    other, odd = found.problems
    assert "other.json has records with the keys image, caption" in other
    assert "odd.json is not readable JSON" in odd


def test_two_files_of_one_name_are_not_guessed_between(tmp_path: Path) -> None:
    put(tmp_path / "other" / "1.npz")
    sample = only(bins(tmp_path, [RECORD | {"event_data": "lost/1.npz"}]))
    assert sample.events is None and "lost/1.npz does not exist" in sample.problems[0]


@pytest.mark.parametrize("key", ["question", "file"])
def test_lists_of_an_unknown_shape_name_their_keys(tmp_path: Path, key: str) -> None:
    with pytest.raises(DatasetError, match=f"the keys {key} .*: a record needs a question"):
        bins(tmp_path, {"all": [{key: "x"}]})


def test_json_that_holds_no_records_is_left_alone(tmp_path: Path) -> None:
    put(tmp_path / "a.npy")
    put(tmp_path / "benchmark_results.json", b'[{"id": "q1", "text": "C"}]')
    put(tmp_path / "camera.json", b'{"width": 640, "lens": [1, 2], "by": {"a": [{"name": "x"}]}}')
    put(tmp_path / "list.json", b"[1, 2]")
    assert benchmark_layouts.read(benchmark_layouts.Root(tmp_path)) is None
    run = {"format": "stagescope-run", "plan": {"prompt": "?"}, "models": [{"name": "x"}]}
    put(tmp_path / "run" / "run.json", json.dumps(run).encode())
    put(tmp_path / "run" / "journal.jsonl", b'{"at": 1, "text": ""}')
    put(tmp_path / "bins.npz")
    assert benchmark_layouts.read(benchmark_layouts.Root(tmp_path)) is None
    put(tmp_path / "test.json", json.dumps([RECORD]).encode())  # control
    assert benchmark_layouts.read(benchmark_layouts.Root(tmp_path)) is not None


@pytest.mark.parametrize(
    ("file", "value", "ids"),
    [
        ("test.json", [None, RECORD], ["record-1", "q1"]),
        ("test.json", [{"version": 1}, RECORD], ["record-1", "q1"]),
        ("test.json", RECORD, ["q1"]),
        ("test.json", {"a": RECORD, "b": None, "c": RECORD}, ["a", "record-2", "c"]),
        ("test.json", {"data": {"test": [RECORD]}}, ["q1"]),
        ("test.json", {"data": {"test": {"a": RECORD}}}, ["a"]),
        ("test.json", [[RECORD]], ["q1"]),
        ("deep/below/it/test.json", [RECORD], ["q1"]),
        ("TEST.JSON", [RECORD], ["q1"]),
        ("test.jsonl", RECORD, ["q1"]),
    ],
)
@pytest.mark.parametrize("ending", ["npz", "npy", "NPY"])
def test_a_list_of_questions_in_any_form_is_read(
    tmp_path: Path, file: str, value: object, ids: list[str], ending: str
) -> None:
    name = f"events/1.{ending}"
    put(tmp_path / name)
    put(tmp_path / file, json.dumps(value).replace("events/1.npz", name).encode())
    found = dataset.read(tmp_path)
    assert [one.id for one in found.samples] == ids and not found.problems
    for one in found.samples:
        known = one.events == tmp_path / name and one.answer == "C"
        assert known is not bool(one.problems), one.problems


@pytest.mark.parametrize("name", ["benchmark_test.json", "result_1.json", "RESULTS.json"])
def test_questions_under_the_name_of_results_are_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(DatasetError, match=f"{name} has .* is left out: .*no name of results"):
        bins(tmp_path, [RECORD], name)
    found = bins(tmp_path, [RECORD])
    assert only(found).id == "q1" and name in found.problems[0]


def test_a_broken_line_of_json_lines_is_a_problem_of_its_own(tmp_path: Path) -> None:
    put(tmp_path / "events" / "1.npz")
    whole = json.dumps({**RECORD, "id": "whole"})
    put(tmp_path / "test.jsonl", f"{whole}\n{whole[:20]}\n".encode())
    first, second = dataset.read(tmp_path).samples
    assert first.id == "whole" and not first.problems
    assert second.problems[0].startswith("Record 2 is a text instead of an object")


def test_json_that_cannot_be_read(tmp_path: Path) -> None:
    put(tmp_path / "bins.npz")
    put(tmp_path / "test.json", b"\xff")
    with pytest.raises(DatasetError, match=r"test\.json is not"):
        dataset.read(tmp_path)
    (tmp_path / "bins.npz").rename(tmp_path / "bins.raw")  # no benchmark's form: a plain folder
    found = dataset.read(tmp_path)
    assert [one.id for one in found.samples] == ["bins"]
    assert found.problems[0].find("test.json is not") > 0


def test_windows_of_a_folder_come_before_its_json(tmp_path: Path) -> None:
    put(tmp_path / "windows.csv", b"file\nevents/1.npz\n")
    assert only(bins(tmp_path, [RECORD])).id == "events/1"
