"""Benchmarks of event recordings, in the layouts in which they are published.

A layout is one function here and one line in LAYOUTS.

EvQA (hylz/EvQA on Hugging Face, arXiv 2512.11510), confirmed from README.md, review_system/ and
event_vl/EvQA_reader.py of github.com/HYLZ-2019/EvQA:
    questions/{dataset}.json: {"dataset_name", "questions": [...]}; a question has question_id, qid,
    dataset_name, file_path, question, choices, answer (the text of a choice) and question_type
    h5_files/{dataset_name}/{file_path}: HDF5 with events/{xs,ys,ts,ps}
    The question is asked in the form "evqa" of engine/prompts.py.
EventBench (XduSyL/EventBench, arXiv 2511.18448), confirmed from inference_eventgpt_plus.py and the
data_processor of github.com/XduSyL/EventBench: recordings are .npz files, another ending is
replaced by .npz, and a conversation is a list of turns with "value".  The lists themselves are
given on request only, so that all keys of _EVENTBENCH are assumed.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.errors import DatasetError, MediaError
from engine.media import dataset_files, event_folder
from engine.media.dataset_files import MAX_RECORDS, Dataset, Root, Samples, clean, kind_of
from engine.media.dataset_record import AskedQuestion, asked, fields_of, turns
from engine.media.media_files import place
from engine.prompts import LETTERS
from engine.quoting import listed, quoted, shown

Keys = Mapping[str, tuple[str, ...]]  # what a record may call each thing; the first one counts
_EVQA: Keys = {
    "id": ("qid",),
    "question": ("question",),
    "options": ("choices",),
    "answer": ("answer",),
    "file": ("file_path",),
    "task": ("question_type",),
}
_EVENTBENCH: Keys = {
    "id": ("id", "qid", "question_id", "sample_id"),
    "question": ("question", "query", "instruction", "prompt"),
    "options": ("choices", "options", "candidates"),
    "answer": ("answer", "correct_answer", "ground_truth", "gt", "label"),
    "file": ("event_data", "event", "event_path", "event_file", "npz", "file_path", "file", "path"),
    "task": ("task", "task_type", "category", "question_type", "type"),
}
_LISTS = ("questions", "data", "samples", "annotations")  # where an object has its records
_RESULTS = re.compile(r"results?(_|\.)|\Abenchmark_", re.I)  # files that runs leave behind


def read(root: Root) -> Dataset | None:
    """The samples of the first layout that the folder has; None if it has none."""
    return next((found for layout in LAYOUTS.values() if (found := layout(root))), None)


@dataclass(frozen=True)
class QuestionList:
    """The records of a list, and what the file says of all: a task, or the name of a dataset."""

    file: Path
    records: list[Any]
    subject: str = ""


@dataclass
class Record:
    """One record of a list, its name in problems ("Record 4 of a.json"), and its problems."""

    name: str
    value: Mapping[str, Any]  # without the keys whose value is null
    keys: Keys
    of: QuestionList
    samples: Samples
    problems: list[str] = field(default_factory=list)

    @property
    def made(self) -> str:
        """The id of the record if it has none of its own."""
        return f"record-{len(self.samples.found) + 1}"

    def get(self, what: str) -> Any:
        """The value under the first key that the record has; None if it has none."""
        return next((self.value[key] for key in self.keys[what] if key in self.value), None)

    def text(self, what: str) -> str:
        """A text or a number as text; "" if it is absent or of another kind."""
        value = self.get(what)
        if isinstance(value, bool) or not isinstance(value, str | int):
            return ""
        long = isinstance(value, int) and value.bit_length() > 64
        return "" if long else clean(str(value)).strip()

    def asked(self, form: str, as_text: bool) -> tuple[AskedQuestion, str]:
        """The question with its options, and the reference of a question without options."""
        question, reference = self.text("question"), ""
        if not question and "conversations" in self.value:
            spoken = {"conversations": with_speakers(self.value["conversations"])}
            question, reference = turns(fields_of(spoken, self.problems), self.problems)
        if (options := self.get("options")) is not None:
            where, answer = f"{self.name}: ", self.get("answer")
            return asked(question, options, answer, form, where=where, as_text=as_text), ""
        refused = "" if question else f"{self.name}: it has no question: add it."
        return AskedQuestion(question, refused=refused), reference or self.text("answer")

    def add(self, name: str, sequence: str, paths: list[Path], wrong: str, **fields: Any) -> None:
        """Adds the sample of the record; `paths` and `wrong` as for `Samples.add_events`."""
        number = len(self.samples.found) + 1
        own = self.samples.unused(name or None, number, self.problems, self.name)
        self.samples.add_events(own, sequence, paths, None, self.problems, wrong, **fields)


def _records(samples: Samples, lists: list[QuestionList], keys: Keys) -> Iterator[Record]:
    """Every object of the lists; other values become samples that state the problem."""
    in_file = Counter(part.file for part in lists)
    for part in lists:
        of = shown(part.file.relative_to(samples.root.path).as_posix())
        if in_file[part.file] > 1 and part.subject:
            of = f"{quoted(part.subject)} in {of}"
        of = f" of {of}" if len(lists) > 1 else ""
        for count, value in enumerate(part.records, start=1):
            if len(samples.found) >= MAX_RECORDS:
                raise DatasetError(
                    f"{place(samples.root.path)} has over {MAX_RECORDS:,} records: split it."
                )
            record = Record(f"Record {count:,}{of}", {}, keys, part, samples)
            if isinstance(value, dict):
                record.value = {k: v for k, v in value.items() if v is not None}
                yield record
                continue
            wrong = f"{record.name} is {kind_of(value)} instead of an object: remove it."
            record.add(record.made, "", [], wrong)


def _evqa(root: Root) -> Dataset | None:
    """The questions of all source datasets; the sequence of a sample is its source dataset."""
    folder, recordings = root.child("questions"), root.child("h5_files")
    if folder is None or not folder.is_dir():
        return None
    lists, problems, own = list[QuestionList](), list[DatasetError](), recordings is not None
    names = sorted(entry.name for entry in dataset_files.entries(folder))
    for file in (
        folder / name for name in names if re.fullmatch(r"[^.].*\.json", name, re.I | re.S)
    ):
        try:
            group = _value(root, file)
            if not isinstance(group, dict) or "questions" not in group:
                raise DatasetError(
                    f"{place(file)} has {_kind_or_keys(group)} and no list of questions, which "
                    "EvQA's lists have: download it again."
                )
            source, own = group.get("dataset_name"), own or "dataset_name" in group
            records = dataset_files.records_of(file, group["questions"])
            lists.append(QuestionList(file, records, source if isinstance(source, str) else ""))
        except DatasetError as error:
            problems.append(error)
    if not own or not (lists or problems):
        return None
    if not lists:
        raise problems[0]
    samples, place_of = Samples(root), recordings.name if recordings else "h5_files"
    for record in _records(samples, lists, _EVQA):
        source = record.value.get("dataset_name") or record.of.subject
        source = clean(source) if isinstance(source, str) else ""
        number, paths, wrong = record.value.get("question_id"), list[Path](), ""
        name = clean(f"{source}_{number}") if isinstance(number, str | int) else ""
        try:
            if file_path := record.text("file"):
                paths.append(root.path_of(place_of, f"{source}/{file_path}"))
        except MediaError as error:
            wrong = str(error)
        question, _ = record.asked("evqa", as_text=True)
        fields = {"task": record.text("task"), **vars(question)}
        record.add(record.text("id") or name, source, paths, wrong, **fields)
    return samples.dataset(lists[0].file, problems)


def _eventbench(root: Root) -> Dataset | None:
    """The records of all lists below the root; None without a list or without recordings."""
    problems = list[DatasetError]()
    every = list(_lists(root, problems))
    unreadable = len(problems)
    recordings = event_folder.event_files(root) if every or problems else []
    bins = any(path.suffix.lower() == ".npz" for path in recordings)
    lists = list[QuestionList]()
    for part in every:
        fits, run = _asks(part.records, "file"), _RESULTS.search(part.file.name)
        if fits and not run:
            lists.append(part)
            continue
        named, wrong = place(part.file), ""
        if fits:
            wrong = (
                f"{named} holds questions and is left out, because its name is that of a result "
                "file: rename it, or move it out of the folder."
            )
        elif not run and (_asks(part.records) or (bins and part.file.suffix.lower() == ".json")):
            wrong = (
                f"{named} has records with {_kind_or_keys(part.records)}, which is no known form "
                f"of EventBench: a record needs a question ({', '.join(_EVENTBENCH['question'])}) "
                f"and a file ({', '.join(_EVENTBENCH['file'])})."
            )
        problems += [DatasetError(wrong)] if wrong else []
    if not recordings or not (lists or problems):
        return None
    if not lists and (bins or len(problems) > unreadable):
        raise problems[0]
    if not lists:  # the unreadable file may be anything, such as a camera's settings
        plain = event_folder.recordings(root)
        return plain and replace(plain, problems=tuple(map(str, problems)))
    samples, by_name = Samples(root), dict[str, Path | None]()
    for path in recordings:  # None: two files have this name
        by_name[path.name.lower()] = None if path.name.lower() in by_name else path
    for record in _records(samples, lists, _EVENTBENCH):
        paths, wrong = _places(root, by_name, record.get("file"), record.of.file)
        question, reference = record.asked(LETTERS, as_text=False)
        fields = {"reference": reference, "task": record.text("task") or record.of.subject}
        there = [path for path in paths if os.path.lexists(path)] or paths[:1]
        source = root.sequence(there[0]) if there else ""
        name = record.text("id") or record.made
        record.add(name, source, paths, wrong, **fields, **vars(question))
    return samples.dataset(lists[0].file, problems)


def _lists(root: Root, problems: list[DatasetError]) -> Iterator[QuestionList]:
    """The lists of objects, and objects of id to question, in all JSON files below the root.

    A file that cannot be read is added to `problems`.
    """
    files = sorted(root.walk((".json", ".jsonl")), key=lambda path: (path.parent, path.name))
    for file in files:
        try:
            value = _value(root, file)
        except DatasetError as error:
            problems.append(error)
            continue
        if isinstance(value, dict) and str(value.get("format")).startswith("stagescope-"):
            continue  # a run that was written into the folder
        waiting = [("", value, 0)]
        for task, part, depth in waiting:
            if isinstance(part, dict) and _asks([part], "file"):
                part = [part]
            elif isinstance(part, dict) and _asks(list(part.values()), "file"):
                part = [{**v, "id": k} if isinstance(v, dict) else v for k, v in part.items()]
            inside = list[tuple[str, Any]]()
            if isinstance(part, dict):
                inside = [(task if key in _LISTS else clean(key), v) for key, v in part.items()]
            elif isinstance(part, list) and not any(isinstance(one, dict) for one in part):
                inside = [(task, one) for one in part]
            elif isinstance(part, list) and (depth < 2 or _asks(part, "file")):
                yield QuestionList(file, part, task)
            waiting += [(key, v, depth + 1) for key, v in inside if isinstance(v, dict | list)]


def _value(root: Root, file: Path) -> Any:
    """The value of a list, unless it is a link out of the folder; of JSON lines, all of them."""
    try:
        root.file(file)
        if file.suffix.lower() == ".json":
            return dataset_files.json_of(file)
        values = list[Any]()
        for line in filter(str.strip, dataset_files.text_of(file).split("\n")):
            try:
                values.append(json.loads(line))
            except (ValueError, RecursionError):
                values.append(line)  # a text, which is a problem of its own
        return values
    except MediaError as error:
        raise DatasetError(str(error)) from error


def _asks(records: list[Any], *more: str) -> bool:
    """Whether one of the records has a question, and what else is named."""
    return any(
        isinstance(one, dict)
        and ("conversations" in one or any(key in one for key in _EVENTBENCH["question"]))
        and all(any(key in one for key in _EVENTBENCH[what]) for what in more)
        for one in records
    )


def _places(
    root: Root, by_name: Mapping[str, Path | None], value: object, file: Path
) -> tuple[list[Path], str]:
    """Below the root, beside the list, or the only recording of that name: the layout of the
    folders is not known.  Or why it is nowhere."""
    if not isinstance(value, str) or not value:
        return [], f"{quoted(value)} is not a file name: correct the record."
    bins = re.sub(r"\.[A-Za-z0-9]{1,5}\Z", "", value) + ".npz"
    own = file.parent.relative_to(root.path).as_posix()
    paths, why = list[Path](), ""
    for folder, name in ((f, n) for n in (value, bins) for f in (".", own)):
        try:
            path = root.path_of(folder, name)
        except MediaError as error:
            why = why or str(error)
            continue
        if path.suffix:
            paths.append(path)
    for name in (value, bins):
        only = by_name.get(name.replace("\\", "/").split("/")[-1].lower())
        paths += [only] if only else []
    return paths, "" if paths else why


def with_speakers(turns: Any) -> Any:
    """EventBench's turns have only "value": they alternate between human and gpt."""
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        return turns
    if any("from" in turn for turn in turns):
        return turns
    return [{**turn, "from": ("human", "gpt")[at % 2]} for at, turn in enumerate(turns)]


def _kind_or_keys(value: Any) -> str:
    """The keys of an object, or of the first object of a list, in words."""
    records = value if isinstance(value, list) else [value]
    keys = next((list(one) for one in records if isinstance(one, dict)), None)
    return kind_of(value) if keys is None else f"the keys {listed(map(str, keys))}"


LAYOUTS: Mapping[str, Callable[[Root], Dataset | None]] = {"EvQA": _evqa, "EventBench": _eventbench}
