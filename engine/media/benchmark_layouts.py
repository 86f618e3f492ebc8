"""Benchmarks of event recordings, in the layouts in which they are published.

A layout is one line in LAYOUTS: where its lists are, what a record calls each thing, how it is
asked, and where the recordings lie.

EvQA (hylz/EvQA on Hugging Face, arXiv 2512.11510), confirmed from README.md, review_system/ and
event_vl/EvQA_reader.py of github.com/HYLZ-2019/EvQA:
    questions/{dataset}.json: {"dataset_name", "questions": [...]}; a question has question_id, qid,
    dataset_name, file_path, question, choices, answer (the text of a choice) and question_type
    h5_files/{dataset_name}/{file_path}: HDF5 with events/{xs,ys,ts,ps}
    The question is asked in the form "evqa" of engine/prompts.py.
EventBench (XduSyL/EventBench, arXiv 2511.18448), confirmed from inference_eventgpt_plus.py and the
data_processor of github.com/XduSyL/EventBench: recordings are .npz files, another ending is
replaced by .npz, and a conversation is a list of turns with "value".  The lists themselves are
given on request only, so that all keys of EventBench in LAYOUTS are assumed.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import DatasetError, MediaError
from engine.media import dataset_files, event_folder
from engine.media.dataset_files import (
    MAX_RECORDS,
    Dataset,
    Root,
    Samples,
    clean,
    kind_of,
    plain_text,
)
from engine.media.dataset_record import AskedQuestion, asked, fields_of, turns
from engine.media.media_files import place
from engine.prompts import LETTERS
from engine.quoting import listed, quoted, shown

_LISTS = ("questions", "data", "samples", "annotations")  # where an object has its records
_DEPTH = 8  # of lists in lists
_RESULTS = re.compile(r"results?(_|\.)|\Abenchmark_", re.I)  # files that runs leave behind


@dataclass(frozen=True)
class QuestionList:
    """The records of a list, and what the file says of all: a task, or the name of a dataset."""

    file: Path
    records: list[Any]
    subject: str = ""


@dataclass(frozen=True)
class Record:
    """One record of a list: its name in problems ("Record 4 of a.json"), and its values without
    those that are null."""

    name: str
    value: Mapping[str, Any]
    keys: Mapping[str, tuple[str, ...]]
    of: QuestionList

    def get(self, what: str) -> Any:
        """The value under the first key that the record has; None if it has none."""
        return next((self.value[key] for key in self.keys[what] if key in self.value), None)

    def text(self, what: str) -> str:
        """A text or a whole number as text; "" if it is absent or of another kind."""
        value = self.get(what)
        if isinstance(value, str):
            return clean(value).strip()
        return "" if isinstance(value, float) else plain_text(value)


@dataclass(frozen=True)
class Layout:
    """`folder`: where its lists are, "" for the whole root.  `recordings`: its folder or files of
    recordings, and `places`: where among them that of a record may lie, or MediaError.  `keys`:
    what a record may call each thing; the first one counts.  `as_text`: an answer is the text of
    an option and never its letter."""

    folder: str
    recordings: Callable[[Root], list[Path]]
    places: Callable[[Root, list[Path], Record], list[Path]]
    form: str
    as_text: bool
    keys: Mapping[str, tuple[str, ...]]

    def asks(self, records: list[Any], *more: str) -> bool:
        """Whether one of the records has a question, and what else is named."""
        return any(
            isinstance(record, dict)
            and ("conversations" in record or any(key in record for key in self.keys["question"]))
            and all(any(key in record for key in self.keys[what]) for what in more)
            for record in records
        )

    def asked(self, record: Record, problems: list[str]) -> tuple[AskedQuestion, str]:
        """The question with its options, and the reference of a question without options."""
        question, reference = record.text("question"), ""
        if not question and "conversations" in record.value:
            spoken = {"conversations": with_speakers(record.value["conversations"])}
            question, reference = turns(fields_of(spoken, problems), problems)
        where, answer = f"{record.name}: ", record.get("answer")
        if (options := record.get("options")) is not None:
            form, text = self.form, self.as_text
            return asked(question, options, answer, form, where=where, as_text=text), ""
        refused = "" if question else f"{where}it has no question: add it."
        return AskedQuestion(question, refused=refused), reference or record.text("answer")


def read(root: Root) -> Dataset | None:
    """The samples of the first layout that the folder has; None if it has none."""
    return next((found for layout in LAYOUTS.values() if (found := _read(root, layout))), None)


def _read(root: Root, layout: Layout) -> Dataset | None:
    folder = root.child(layout.folder) if layout.folder else root.path
    if folder is None or not folder.is_dir():
        return None
    lists, unreadable, odd = list[QuestionList](), list[str](), list[str]()
    every = sorted(root.walk((".json", ".jsonl"), folder), key=lambda at: (at.parent, at.name))
    recordings = layout.recordings(root) if every else []
    bins = any(path.suffix.lower() == ".npz" for path in recordings)
    for file in every:
        try:
            found = list(_lists(layout, file, _value(root, file)))
        except DatasetError as error:
            unreadable.append(str(error))
            continue
        results = not layout.folder and _RESULTS.search(file.name)
        good = [part for part in found if layout.asks(part.records, "file")]
        listed_too = bins and file.suffix.lower() == ".json"
        strange = not results and any(listed_too or layout.asks(part.records) for part in found)
        if good and not results:
            lists += good
        elif good or strange or layout.folder:
            keys = [list(one) for part in found for one in part.records if isinstance(one, dict)]
            has = f"records with the keys {listed(map(str, keys[0]))}" if keys else "no records"
            names = [f"{what} ({', '.join(layout.keys[what])})" for what in ("question", "file")]
            odd.append(
                f"{place(file)} has {has} and is left out: a record needs a {' and a '.join(names)}"
                ", and the file no name of results."
            )
    problems = odd + unreadable
    if not (recordings or any(part.subject for part in lists)) or not (lists or problems):
        return None
    if not lists and (odd or bins or layout.folder):
        raise DatasetError(problems[0])
    if not lists:  # the unreadable file may be anything, such as a camera's settings
        plain = event_folder.recordings(root)
        return plain and replace(plain, problems=tuple(problems))
    samples = Samples(root)
    for record in _records(samples, lists, layout.keys):
        _add(samples, layout, recordings, record)
    return samples.dataset(lists[0].file, problems)


def _add(samples: Samples, layout: Layout, recordings: list[Path], record: Record) -> None:
    """Adds the sample of a record."""
    root, problems, paths, wrong = samples.root, list[str](), list[Path](), ""
    try:
        if record.get("file") is not None:
            paths = layout.places(root, recordings, record)
    except MediaError as error:
        wrong = str(error)
    question, reference = layout.asked(record, problems)
    number, subject = len(samples.found) + 1, record.text("source") or record.of.subject
    sequence = subject
    if not layout.folder:
        there = next((path for path in paths if os.path.lexists(path)), None)
        sequence = root.sequence(there or paths[0]) if paths else ""
    named = record.text("number") and f"{subject}_{record.text('number')}"
    name = record.text("id") or named or f"record-{number}"
    samples.add_events(
        samples.unused(name, number, problems, record.name),
        sequence,
        paths,
        None,
        problems,
        wrong,
        reference=reference,
        task=record.text("task") or ("" if layout.folder else subject),
        **vars(question),
    )


def _records(
    samples: Samples, lists: list[QuestionList], keys: Mapping[str, tuple[str, ...]]
) -> Iterator[Record]:
    """Every object of the lists; other values become samples that state the problem."""
    in_file = Counter(part.file for part in lists)
    for part in lists:
        of = shown(part.file.relative_to(samples.root.path).as_posix())
        if in_file[part.file] > 1 and part.subject:
            of = f"{quoted(part.subject)} in {of}"
        of = f" of {of}" if len(lists) > 1 else ""
        for count, value in enumerate(part.records, start=1):
            number = len(samples.found) + 1
            if number > MAX_RECORDS:
                raise DatasetError(
                    f"{place(samples.root.path)} has over {MAX_RECORDS:,} records: split it."
                )
            name = f"Record {count:,}{of}"
            if isinstance(value, dict):
                told = {key: value for key, value in value.items() if value is not None}
                yield Record(name, told, keys, part)
            else:
                wrong = f"{name} is {kind_of(value)} instead of an object: remove it."
                samples.add_events(f"record-{number}", "", [], None, (), wrong)


def _lists(
    layout: Layout, file: Path, value: Any, subject: str = "", depth: int = 0
) -> Iterator[QuestionList]:
    """The lists of objects, and the objects of id to question, inside a value."""
    if isinstance(value, dict) and not str(value.get("format")).startswith("stagescope-"):
        name = value.get("dataset_name")
        subject = clean(name) if isinstance(name, str) else subject
        if layout.asks([value], "file"):
            yield QuestionList(file, [value], subject)
        elif layout.asks(list(value.values()), "file"):
            named = [{**v, "id": k} if isinstance(v, dict) else v for k, v in value.items()]
            yield QuestionList(file, named, subject)
        elif depth < _DEPTH:
            for key, part in value.items():
                of = subject if key in _LISTS else clean(key)
                yield from _lists(layout, file, part, of, depth + 1)
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        if depth < 2 or layout.asks(value, "file"):
            yield QuestionList(file, value, subject)
    elif isinstance(value, list) and depth < _DEPTH:
        for part in value:
            yield from _lists(layout, file, part, subject, depth + 1)


def _value(root: Root, file: Path) -> Any:
    """The value of a list, unless it is a link out of the folder; of JSON lines, all of them."""
    try:
        root.file(file)
    except MediaError as error:
        raise DatasetError(str(error)) from error
    if file.suffix.lower() == ".json":
        return dataset_files.json_of(file)
    values = list[Any]()
    for line in filter(str.strip, dataset_files.text_of(file).split("\n")):
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError):
            values.append(line)  # a text, which is a problem of its own
    return values


def with_speakers(turns: Any) -> Any:
    """EventBench's turns have only "value": they alternate between human and gpt."""
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        return turns
    if any("from" in turn for turn in turns):
        return turns
    return [{**turn, "from": ("human", "gpt")[at % 2]} for at, turn in enumerate(turns)]


def _below_source(root: Root, recordings: list[Path], record: Record) -> list[Path]:
    folder = recordings[0].name if recordings else "h5_files"
    source = record.text("source") or record.of.subject
    return [root.path_of(folder, f"{source}/{record.text('file')}")]


def _anywhere(root: Root, recordings: list[Path], record: Record) -> list[Path]:
    """Below the root, beside the list, or the only recording of that name: the layout of the
    folders is not known."""
    value, own = record.get("file"), record.of.file.parent.relative_to(root.path).as_posix()
    if not isinstance(value, str):
        return [root.path_of(".", value)]
    names = (value, re.sub(r"\.[A-Za-z0-9]{1,5}\Z", "", value) + ".npz")
    paths, refused = list[Path](), list[MediaError]()
    for folder, name in ((f, n) for n in names for f in (".", own)):
        try:
            paths.append(root.path_of(folder, name))
        except MediaError as error:
            refused.append(error)
    paths = [path for path in paths if path.suffix]
    for name in names:
        last = name.replace("\\", "/").split("/")[-1].lower()
        same = [path for path in recordings if path.name.lower() == last]
        paths += same if len(same) == 1 else []
    if refused and not paths:
        raise refused[0]
    return paths


def _h5_folder(root: Root) -> list[Path]:
    return list(filter(None, [root.child("h5_files")]))


LAYOUTS: Mapping[str, Layout] = {
    "EvQA": Layout(
        "questions",
        _h5_folder,
        _below_source,
        "evqa",
        True,
        {
            "id": ("qid",),
            "number": ("question_id",),
            "source": ("dataset_name",),
            "question": ("question",),
            "options": ("choices",),
            "answer": ("answer",),
            "file": ("file_path",),
            "task": ("question_type",),
        },
    ),
    "EventBench": Layout(
        "",
        event_folder.event_files,
        _anywhere,
        LETTERS,
        False,
        {
            "id": ("id", "qid", "question_id", "sample_id"),
            "number": (),
            "source": (),
            "question": ("question", "query", "instruction", "prompt"),
            "options": ("choices", "options", "candidates"),
            "answer": ("answer", "correct_answer", "ground_truth", "gt", "label"),
            "file": (
                *("event_data", "event", "event_path", "event_file"),
                *("npz", "file_path", "file", "path"),
            ),
            "task": ("task", "task_type", "category", "question_type", "type"),
        },
    ),
}
