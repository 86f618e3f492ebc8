"""Benchmarks of event recordings, in the layouts in which they are published.

Each has a reader, which finds its lists and recordings, and a Layout: what a record calls each
thing, the names separated by spaces; the first one counts.

EvQA (hylz/EvQA on Hugging Face, arXiv 2512.11510), confirmed from README.md, review_system/ and
event_vl/EvQA_reader.py of github.com/HYLZ-2019/EvQA:
    questions/{dataset}.json: {"dataset_name", "questions": [...]}; a question has question_id, qid,
    dataset_name, file_path, question, choices, answer (the text of a choice) and question_type
    h5_files/{dataset_name}/{file_path}: HDF5 with events/{xs,ys,ts,ps}
    The question is asked in the form "evqa" of engine/prompts.py.
EventBench (XduSyL/EventBench, arXiv 2511.18448), confirmed from inference_eventgpt_plus.py and the
data_processor of github.com/XduSyL/EventBench: recordings are .npz files, another ending is
replaced by .npz, and a conversation is a list of turns with "value".  The lists themselves are
given on request only, so that all keys of EVENTBENCH are assumed.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import DatasetError, MediaError
from engine.media import dataset_files, event_folder
from engine.media.dataset_files import Dataset, Root, Samples, clean, kind_of, plain_text
from engine.media.dataset_record import AskedQuestion, asked, fields_of, turns
from engine.media.media_files import place
from engine.prompts import LETTERS
from engine.quoting import listed, quoted, shown

Layout = Mapping[str, str]
EVQA: Layout = {
    "id": "qid",
    "number": "question_id",
    "source": "dataset_name",
    "question": "question",
    "options": "choices",
    "answer": "answer",
    "file": "file_path",
    "task": "question_type",
}
EVENTBENCH: Layout = {
    "id": "id qid question_id sample_id",
    "question": "question query instruction prompt",
    "options": "choices options candidates",
    "answer": "answer correct_answer ground_truth gt label",
    "file": "event_data event event_path event_file npz file_path file path",
    "task": "task task_type category question_type type",
}
_LISTS = ("questions", "data", "samples", "annotations")  # where an object has its records
_DEPTH = 8  # of lists in lists
_RESULTS = re.compile(r"results?(_|\.)|\Abenchmark_", re.I)  # files that runs leave behind


@dataclass(frozen=True)
class QuestionList:
    """The records of a list, and what the file says of all: a task, or the name of a dataset."""

    file: Path
    records: list[Any]
    subject: str = ""


def _asks(layout: Layout, records: list[Any], *more: str) -> bool:
    """Whether one of the records has a question, and what else is named."""
    asked = {*layout["question"].split(), "conversations"}
    wanted = [asked, *(set(layout[what].split()) for what in more)]
    dicts = (record for record in records if isinstance(record, dict))
    return any(all(not keys.isdisjoint(record) for keys in wanted) for record in dicts)


def _left_out(layout: Layout, file: Path, parts: list[QuestionList]) -> str:
    keys = [list(one) for part in parts for one in part.records if isinstance(one, dict)]
    has = f"records with the keys {listed(map(str, keys[0]))}" if keys else "no records"
    names = [f"{what} ({listed(layout[what].split())})" for what in ("question", "file")]
    return (
        f"{place(file)} has {has} and is left out: a record needs a {' and a '.join(names)}"
        ", and the file no name of results."
    )


def read(root: Root) -> Dataset | None:
    """The samples of the first layout that the folder has; None if it has none."""
    return _read_evqa(root) or _read_eventbench(root)


def _read_evqa(root: Root) -> Dataset | None:
    """Each file of "questions" is a list; the recordings lie in "h5_files"."""
    layout, folder = EVQA, root.child("questions")
    if folder is None or not folder.is_dir():
        return None
    recordings = list(filter(None, [root.child("h5_files")]))
    lists, problems = list[QuestionList](), list[str]()
    for file, parts, good in _read_files(root, layout, folder, problems):
        lists += good
        problems += [] if good else [_left_out(layout, file, parts)]
    if not recordings and not any(part.subject for part in lists):
        return None
    if problems and not lists:
        raise DatasetError(problems[0])
    return _dataset(root, layout, recordings, lists, problems) if lists else None


def _read_eventbench(root: Root) -> Dataset | None:
    """Lists and recordings may lie anywhere, beside results of runs and other files."""
    layout, lists, odd, unreadable = EVENTBENCH, list[QuestionList](), list[str](), list[str]()
    files = list(_read_files(root, layout, root.path, unreadable))
    recordings = event_folder.event_files(root) if files or unreadable else []
    bins = any(path.suffix.lower() == ".npz" for path in recordings)
    for file, parts, good in files:
        results = _RESULTS.search(file.name)
        a_list = bins and bool(parts) and file.suffix.lower() == ".json"
        asks = a_list or any(_asks(layout, part.records) for part in parts)
        if good and not results:
            lists += good
        elif good or (asks and not results):
            odd.append(_left_out(layout, file, parts))
    problems = odd + unreadable
    if lists and (recordings or any(part.subject for part in lists)):
        return _dataset(root, layout, recordings, lists, problems)
    if lists or not recordings or not problems:
        return None
    if odd or bins:
        raise DatasetError(problems[0])
    plain = event_folder.recordings(root)  # what cannot be read may be a camera's settings
    return plain and replace(plain, problems=tuple(problems))


def _read_files(
    root: Root, layout: Layout, folder: Path, problems: list[str]
) -> Iterator[tuple[Path, list[QuestionList], list[QuestionList]]]:
    """Each file below the folder, its lists, and those with questions; or a problem."""
    for file in sorted(root.walk((".json", ".jsonl"), folder), key=lambda at: (at.parent, at.name)):
        try:
            parts = list(_lists(layout, file, _value(root, file)))
        except DatasetError as error:
            problems.append(str(error))
        else:
            yield file, parts, [part for part in parts if _asks(layout, part.records, "file")]


def _dataset(
    root: Root, layout: Layout, recordings: list[Path], lists: list[QuestionList], odd: list[str]
) -> Dataset:
    samples, in_file = Samples(root), Counter(part.file for part in lists)
    for part in lists:
        of = shown(part.file.relative_to(root.path).as_posix())
        if in_file[part.file] > 1 and part.subject:
            of = f"{quoted(part.subject)} in {of}"
        of = f" of {of}" if len(lists) > 1 else ""
        for count, value in enumerate(part.records, start=1):
            name, told = f"Record {count:,}{of}", dict[str, Any]()
            if isinstance(value, dict):
                for what, known in [*layout.items(), ("conversations", "conversations")]:
                    there = (value[key] for key in known.split() if value.get(key) is not None)
                    told[what] = next(there, None)
                _add(samples, layout, recordings, part, name, told)
            else:
                wrong = f"{name} is {kind_of(value)} instead of an object: remove it."
                samples.add_events(f"record-{len(samples.found) + 1}", "", [], wrong=wrong)
    return samples.dataset(lists[0].file, odd)


def _add(
    samples: Samples,
    layout: Layout,
    recordings: list[Path],
    part: QuestionList,
    called: str,
    told: Mapping[str, Any],
) -> None:
    """Adds a record's sample, `called` "Record 4 of a.json" in problems; `told`: its values."""
    root, problems, paths, wrong = samples.root, list[str](), list[Path](), ""
    where, number = f"{called}: ", len(samples.found) + 1
    source = _text(told.get("source")) or part.subject
    try:
        if told["file"] is not None:
            if layout is EVQA:
                folder = recordings[0].name if recordings else "h5_files"
                paths = [root.path_of(folder, f"{source}/{_text(told['file'])}")]
            else:
                paths = _anywhere(root, recordings, part.file, told["file"])
    except MediaError as error:
        wrong = str(error)
    question, reference = _text(told["question"]), ""
    if not question and told["conversations"] is not None:
        spoken = {"conversations": with_speakers(told["conversations"])}
        question, reference = turns(fields_of(spoken, problems), problems)
    if (options := told["options"]) is not None:
        # EvQA's answer is the text of an option and never its letter.
        form, as_text, reference = ("evqa", True, "") if layout is EVQA else (LETTERS, False, "")
        found = asked(question, options, told["answer"], form, where=where, as_text=as_text)
    else:
        refused = "" if question else f"{where}it has no question: add it."
        found = AskedQuestion(question, refused=refused)
        reference = reference or _text(told["answer"])
    sequence = source
    if layout is EVENTBENCH:
        there = next(filter(os.path.lexists, paths), paths[0] if paths else None)
        sequence = root.sequence(there) if there else ""
    in_source = _text(told.get("number"))
    name = _text(told["id"]) or (in_source and f"{source}_{in_source}") or f"record-{number}"
    samples.add_events(
        samples.unused(name, number, problems, called),
        sequence,
        paths,
        None,
        problems,
        wrong,
        reference=reference,
        task=_text(told["task"]) or ("" if layout is EVQA else part.subject),
        **vars(found),
    )


def _text(value: object) -> str:
    """A text or a whole number as text; "" if it is absent or of another kind."""
    if isinstance(value, str):
        return clean(value).strip()
    return "" if isinstance(value, float) else plain_text(value)


def _lists(
    layout: Layout, file: Path, value: Any, subject: str = "", depth: int = 0
) -> Iterator[QuestionList]:
    """The lists of objects, and the objects of id to question, inside a value."""
    if isinstance(value, dict) and not str(value.get("format")).startswith("stagescope-"):
        name = value.get("dataset_name")
        subject = clean(name) if isinstance(name, str) else subject
        if _asks(layout, [value], "file"):
            yield QuestionList(file, [value], subject)
        elif _asks(layout, list(value.values()), "file"):
            named = [{**v, "id": k} if isinstance(v, dict) else v for k, v in value.items()]
            yield QuestionList(file, named, subject)
        elif depth < _DEPTH:
            for key, part in value.items():
                of = subject if key in _LISTS else clean(key)
                yield from _lists(layout, file, part, of, depth + 1)
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        if depth < 2 or _asks(layout, value, "file"):
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
    plain = isinstance(turns, list) and all(isinstance(turn, dict) for turn in turns)
    if not plain or any("from" in turn for turn in turns):
        return turns
    return [{**turn, "from": ("human", "gpt")[at % 2]} for at, turn in enumerate(turns)]


def _anywhere(root: Root, recordings: list[Path], file: Path, value: Any) -> list[Path]:
    """Where a file may lie: below the root, beside the list, or the only recording of that name,
    as the layout of the folders is not known.  MediaError if it must lie elsewhere."""
    own = file.parent.relative_to(root.path).as_posix()
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
