"""Notes and thumbs: the last word counts, and a run at work can be marked."""

import multiprocessing
from contextlib import closing
from pathlib import Path

import pytest

from engine.errors import BadInput, StoreError
from engine.storage import annotations as marks
from engine.storage import run_store
from engine.storage.annotations import Choice, Feedback, RunDetails, Vote, VotedAnswer
from engine.storage.json_lines import Appender
from engine.storage.plan import Task
from tests import fabricate

TASK = Task("ev", "s0", 0, "measured")
EV, VL = VotedAnswer("r", "ev", 0), VotedAnswer("r", "vl", 0)


def vote(sample: str = "s0", choice: Choice = "first", visit: int = 1, **more: bool) -> Vote:
    return Vote(sample, (EV, VL), choice, more.get("blind", False), visit)


def test_the_last_word_counts(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with run_store.create(fabricate.header(), folder):  # at work
        marks.put(folder, TASK, Feedback("up", "Sees the car.\nBoth."))
        marks.put(folder, TASK._replace(sample="s1"), Feedback("down"))
        assert marks.read(folder)[TASK] == Feedback("up", "Sees the car.\nBoth.")
    marks.put(folder, TASK, Feedback("down", "No."))
    marks.put(folder, TASK._replace(sample="s1"), Feedback())
    assert marks.read(folder) == {TASK: Feedback("down", "No.")}


def test_no_marks_and_odd_ones(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    fabricate.run(folder, [])
    assert marks.read(folder) == {}
    (folder / marks.MARKS).write_text('{"thumb": "up"}\nodd\n{"model": "ev", "sam')
    marks.put(folder, TASK, Feedback("up"))
    assert marks.read(folder) == {TASK: Feedback("up")}


def test_notes_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    folder = fabricate.run(tmp_path / "run", []).folder
    assert marks.problem(folder) == ""
    marks.put(folder, TASK, Feedback("up"))
    with (folder / marks.MARKS).open("ab") as stream:
        stream.write(b'odd\n{"thumb": 5}\n')
    assert marks.problem(folder).startswith("2 of 3 lines of marks.jsonl cannot be used (line 2: ")
    (folder / marks.MARKS).unlink()
    (tmp_path / "outside").write_text("")
    (folder / marks.MARKS).symlink_to(tmp_path / "outside")
    assert "symbolic link" in marks.problem(folder)
    for use in (lambda: marks.read(folder), lambda: marks.put(folder, TASK, Feedback("down"))):
        with pytest.raises(StoreError, match="symbolic link"):
            use()
    assert (tmp_path / "outside").read_text() == ""


def test_notes_that_cannot_be_kept_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="5,000 characters"):
        marks.put(tmp_path, TASK, Feedback("", "x" * 5000))
    with pytest.raises(StoreError, match="cannot be saved"):
        marks.put(tmp_path / "none", TASK, Feedback("up"))


def test_damaged_votes_are_left_out_and_told(tmp_path: Path) -> None:
    folder = fabricate.run(tmp_path / "run", []).folder
    (folder / marks.VOTES).write_text('{"sample": "s0"}\nodd\n{"sam')
    marks.put_vote(folder, vote())
    assert marks.votes(folder) == (vote(),)
    assert marks.problem(folder).startswith("3 of 4 lines of votes.jsonl cannot be used (line 1: ")


def test_votes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fabricate.run(tmp_path / "run", []).folder
    for sample in ("s0", "s1", "s2"):
        marks.put_vote(folder, vote(sample))
    monkeypatch.setattr(marks, "MAX_VOTES", 2)
    assert [one.sample for one in marks.votes(folder)] == ["s0", "s1"]
    monkeypatch.setattr(marks, "MAX_VOTES_BYTES", 10)
    with pytest.raises(StoreError, match="at most 10 are used"):
        marks.put_vote(folder, vote("s3"))


def test_a_vote_waits_for_another_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fabricate.run(tmp_path / "run", []).folder
    monkeypatch.setattr(marks, "LOCK_S", 0.05)
    with closing(Appender(folder / marks.VOTES)) as other:
        assert other.lock()
        with pytest.raises(StoreError, match="Another session is writing"):
            marks.put_vote(folder, vote())
    marks.put_vote(folder, vote())
    assert marks.votes(folder) == (vote(),)


def _votes_of_one_session(folder: Path, seed: int) -> None:
    for number in range(20):
        marks.put_vote(folder, vote(f"s{number}", visit=seed))


@pytest.mark.loads
def test_two_sessions_at_once_lose_no_vote(tmp_path: Path) -> None:
    folder = fabricate.run(tmp_path / "run", []).folder
    context = multiprocessing.get_context("spawn")
    sessions = [
        context.Process(target=_votes_of_one_session, args=(folder, seed)) for seed in (1, 2)
    ]
    for session in sessions:
        session.start()
    for session in sessions:
        session.join()
    assert {(one.visit, one.sample) for one in marks.votes(folder)} == {
        (seed, f"s{number}") for seed in (1, 2) for number in range(20)
    }
    assert marks.problem(folder) == ""


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
        marks.cleaned_details(name, tags)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text('{"name": "secret"}')
    folder = fabricate.run(tmp_path / "one", []).folder
    (folder / marks.DETAILS).symlink_to(tmp_path / "outside")
    found, problem = marks.details(folder)
    assert found.name == "" and "symbolic link" in problem
    with pytest.raises(StoreError, match="cannot be written"):
        marks.put_details(folder, RunDetails("x"))


def test_there_is_one_baseline(tmp_path: Path) -> None:
    for name in ("one", "two"):
        fabricate.run(tmp_path / name, [])
    assert marks.baseline(tmp_path) == ("", "")
    marks.pin(tmp_path, "one")
    marks.pin(tmp_path, "two")
    assert marks.baseline(tmp_path) == ("two", "")
    marks.unpin(tmp_path)
    marks.unpin(tmp_path)
    assert marks.baseline(tmp_path) == ("", "")
    for odd in ("absent", "../one", "", "."):
        with pytest.raises(StoreError, match="is not a run in"):
            marks.pin(tmp_path / "runs", odd)
    (tmp_path / marks.BASELINE).write_text("{}")
    assert marks.baseline(tmp_path)[0] == "" and marks.baseline(tmp_path)[1]
