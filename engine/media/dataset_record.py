"""Turns one record of a dataset's JSON into a Sample; each wrong field becomes a sentence.

Fields: id, split, event_data ("seq/000000.npy" below event_npy/), video_data ("seq/000000" below
video/), mp4_data ("seq/000000.mp4" below mp4/), event_image or a variant of it (names below the
folder with the field's name), conversations; truth and boxes, the known content of a generated
scene; and choices, answer, task and choice_form of a multiple-choice question, which are asked in
the forms of engine/prompts.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta

from engine import prompts
from engine.errors import BadInput, DatasetError, MediaError
from engine.media.dataset_files import Root, clean, kind_of
from engine.media.kinds import CLIP_SUFFIXES, EVENT_SUFFIXES
from engine.media.media_files import by_number
from engine.prompts import LETTERS, MAX_ASKED_CHARS, MAX_CHOICES, WORDS
from engine.quoting import count, quoted
from engine.types import ChoiceForm, MediaKind, Sample

MAX_OPTION_CHARS = 1000
_LABEL = re.compile(r"\s*(?:\(([A-Z])\)|([A-Z])[.):])\s+(?=\S)")
_LETTER = re.compile(r"\(?([A-Za-z])[.):]?")
_PLACE = re.compile(r"[0-9]{1,2}")
_VARIANT = re.compile(r"event_image(_1f|_[0-9.]+Hz)")
MAX_PICTURES = 10_000
_CLIP_ENDING = re.compile(rf"({'|'.join(map(re.escape, CLIP_SUFFIXES))})\Z", re.I)
_EVENT_ENDING = re.compile(rf"({'|'.join(map(re.escape, EVENT_SUFFIXES))})\Z", re.I)
_MARKER = re.compile(r"\A\s*<event>\s*")
ANSWER_ALONE = (
    "answer is given without choices, so the question is no multiple-choice question: add choices."
)
_FRAMES = "Its record names neither an MP4 nor a frame folder: pick another sample for {} models."
_NOT_NAMED = {
    "events": "Its record names neither event images nor raw events: pick another sample for "
    "event models.",
    "video": _FRAMES.format("video"),
    "image": _FRAMES.format("picture"),
}
_Share = Annotated[float, Meta(ge=0, le=1)]
_Boxes = Annotated[list[tuple[_Share, _Share, _Share, _Share]], Meta(max_length=100)]


class Fields(msgspec.Struct):
    """The plain fields of a record; another form of one is a problem, and leaves its default."""

    split: str = ""
    task: str = ""
    conversations: list[object] = []
    truth: dict[str, str] = {}
    boxes: Annotated[dict[str, _Boxes], Meta(max_length=100)] = {}

    def __post_init__(self) -> None:
        for left, top, right, bottom in (box for boxes in self.boxes.values() for box in boxes):
            if not (left < right and top < bottom):
                raise ValueError("a box that encloses nothing")


WANTED = {
    "split": "text",
    "conversations": "a list",
    "truth": "texts by name",
    "boxes": "boxes by name, each as left, top, right and bottom from 0 to 1",
    "task": "text",
}


def fields_of(value: dict[str, Any], problems: list[str]) -> Fields:
    """The fields that have their form; of each other one a problem."""
    good: dict[str, object] = {}
    for key, wanted in WANTED.items():
        if (given := value.get(key)) is None:
            continue
        try:
            msgspec.convert({key: given}, Fields)
            good[key] = given
        except (msgspec.ValidationError, ValueError):  # a lone surrogate is a ValueError
            problems.append(f"{key} is {quoted(given)} instead of {wanted}: correct it.")
    return msgspec.convert(good, Fields)


def turns(fields: Fields, problems: list[str]) -> tuple[str, str]:
    """(the first question without its event marker, the first answer)."""
    first, odd = {"human": "", "gpt": ""}, list[object]()
    for turn in reversed(fields.conversations):
        match turn:
            case {"from": "human" | "gpt" as who, "value": str(value)}:
                first[who] = clean(value)
            case _:
                odd.append(turn)
    if odd:
        more = f" and {len(odd) - 1:,} more" if len(odd) > 1 else ""
        problems.append(f"The turn {quoted(odd[-1])}{more} has no text: correct the record.")
    return _MARKER.sub("", first["human"]), first["gpt"]


class DatasetRecord:
    """One value of the JSON list, its number counted from 1, and its problems."""

    def __init__(self, value: Any, number: int, root: Root) -> None:
        self.root, self.problems = root, list[str]()
        self._reasons: dict[str, list[str]] = {"events": [], "frames": []}
        if not isinstance(value, dict):
            self.problems.append(
                f"Record {number:,} is {kind_of(value)} instead of an object: remove it."
            )
        self.value: dict[str, Any] = value if isinstance(value, dict) else {}
        given = self.value.get("id")
        self.id = clean(given) if isinstance(given, str) and given.strip() else None
        # The name of its files in every folder: "seq/000000".
        values = [self.value.get(key) for key in ("event_data", "mp4_data", "video_data")]
        named = clean(next((name for name in values if isinstance(name, str) and name), ""))
        self.clip = _EVENT_ENDING.sub("", _CLIP_ENDING.sub("", named))

    def sample(self, sample_id: str) -> Sample:
        """The sample with that id, with the files that exist and reasons for missing ones."""
        event_images, given = self._event_images(), self.value.get("event_data")
        raw = None if given in (None, "") else self._file("events", "event_npy", given)
        mp4, frames = self._mp4(), self._frames()
        fields = fields_of(self.value, self.problems)
        question, reference = turns(fields, self.problems)
        in_form = vars(self._asked(question)).copy()
        refused = in_form.pop("refused")
        has_frames = bool(frames or mp4)
        there = {"events": bool(event_images or raw), "video": has_frames, "image": has_frames}
        absent = {kind: self._why(kind) for kind, found in there.items() if not found}
        return Sample(
            id=sample_id,
            sequence=self.clip.split("/")[0] if "/" in self.clip else clean(fields.split),
            reference=reference,
            event_images=event_images,
            events=raw,
            frames=frames,
            mp4=mp4,
            truth={clean(key): clean(value) for key, value in fields.truth.items()},
            boxes={clean(name): tuple(boxes) for name, boxes in fields.boxes.items()},
            missing=absent | missing(refused),
            task=clean(fields.task),
            problems=tuple(self.problems),
            **in_form,
        )

    def _asked(self, question: str) -> AskedQuestion:
        """The question with its choices, if the record has any that can be asked."""
        options, answer = self.value.get("choices"), self.value.get("answer")
        if options is None:
            self.problems += [ANSWER_ALONE] if answer not in (None, "") else []
            return AskedQuestion(question)
        form = self.value.get("choice_form")
        form = LETTERS if form in (None, "") else form
        found = asked(question, options, answer, form)
        self.problems += filter(None, [found.refused])
        return found

    def _file(self, kind: str, folder: str, value: object) -> Path | None:
        """The file that the record names below a folder; or None, and the reason is noted."""
        try:
            return self.root.file(self.root.path_of(folder, value))
        except MediaError as error:
            self._note(kind, error)
            return None

    def _note(self, kind: str, error: object) -> None:
        self._reasons[kind].append(str(error))
        self.problems.append(str(error))

    def _event_images(self) -> tuple[Path, ...]:
        """All event images of the first field that names any; none if one is unusable."""
        keys = ["event_image", *sorted(key for key in self.value if _VARIANT.fullmatch(key))]
        key = next((key for key in keys if self.value.get(key)), "event_image")
        values = self.value.get(key) or []
        if not isinstance(values, list):
            self._note("events", f"{key} is {quoted(values)} instead of a list: correct it.")
            return ()
        if len(values) > MAX_PICTURES:
            few = f"name at most {MAX_PICTURES:,}."
            self._note("events", f"{key} names {len(values):,} pictures: {few}")
            return ()
        paths = list[Path]()
        for value in values:
            if (path := self._file("events", key, value)) is None:  # the others would show less
                return ()
            paths.append(path)
        return tuple(sorted(paths, key=by_number))

    def _mp4(self) -> Path | None:
        value = self.value.get("mp4_data")
        if value not in (None, ""):
            return self._file("frames", "mp4", value)
        # The clip at its usual place; no reason is noted if there is none.
        video = self.value.get("video_data")
        named = isinstance(video, str) and Path(video).suffix.lower() in CLIP_SUFFIXES
        name = video if named else f"{self.clip}.mp4"
        for folder in ("mp4", "video") if self.clip else ():
            try:
                path = self.root.path_of(folder, name)
            except MediaError:
                return None  # another field's check reports the bad name
            if os.path.lexists(path):
                return self._file("frames", folder, name)
        return None

    def _frames(self) -> tuple[Path, ...]:
        value = self.value.get("video_data")
        value = _CLIP_ENDING.sub("", value) if isinstance(value, str) else value
        named = value not in (None, "")
        try:
            path = self.root.path_of("video", value if named else self.clip)
            return self.root.pictures(path) if named or os.path.lexists(path) else ()
        except MediaError as error:
            if named:
                self._note("frames", error)
            return ()

    def _why(self, kind: str) -> str:
        files = self._reasons["events" if kind == "events" else "frames"]
        reasons = [reason.rstrip(".") for reason in files]
        return "; ".join(reasons) + "." if reasons else _NOT_NAMED[kind]


@dataclass(frozen=True)
class AskedQuestion:
    """The fields of a Sample that a multiple-choice record decides.  `refused`: why the question
    must not be asked; `choices` are then the options as given."""

    question: str = ""
    choices: tuple[str, ...] = ()
    choice_form: ChoiceForm = "letters"
    answer: str = ""
    refused: str = ""


def missing(refused: str) -> dict[str, str]:
    """A refused question's sample is shown to no model: asked in another form, it would count as
    another question, or leave the accuracy without a word."""
    return dict.fromkeys(get_args(MediaKind), refused) if refused else {}


def asked(
    question: str,
    options: object,
    answer: object,
    form: object = LETTERS,
    *,
    where: str = "",
    as_text: bool = False,
) -> AskedQuestion:
    """The question in its form, with its options and the letter of the right one, or why it cannot
    be asked; `where` begins that sentence, as in "Record 4: ".  `as_text`: the layout gives the
    answer as an option's text and never as a letter."""
    kind: ChoiceForm = "words" if form == WORDS else "letters"
    try:
        if not question.strip():
            raise DatasetError("The record has choices and no question: add it.")
        if not isinstance(form, str):
            raise DatasetError(
                f"choice_form is {quoted(form)} instead of text: correct the record."
            )
        texts = option_texts(options)
        text = prompts.choice_question(question.strip(), texts, form)
        text = prompts.check_question(text, MAX_ASKED_CHARS)
        return AskedQuestion(text, texts, kind, letter_of(answer, texts, as_text=as_text))
    except BadInput as error:  # DatasetError is one
        # Wrong options as texts; at least one, so that the failed result counts as multiple choice.
        given = list(options.values()) if isinstance(options, Mapping) else options
        each = given if isinstance(given, list | tuple) and given else [given]
        wrong = [one if isinstance(one, str) else quoted(one) for one in each[:MAX_CHOICES]]
        shown = tuple(clean(text[:MAX_OPTION_CHARS]) for text in wrong)
        return AskedQuestion(question, shown, kind, refused=f"{where}{error}")


def option_texts(value: object) -> tuple[str, ...]:
    """The options' texts, from a list of texts or an object of letters, without their labels."""
    if isinstance(value, Mapping):  # by letter; the letters begin with A and have no gap
        by_letter = {str(letter).strip().upper(): text for letter, text in value.items()}
        letters = ascii_uppercase[: len(value)]
        if sorted(by_letter) != list(letters) or len(by_letter) != len(value):
            raise DatasetError(
                f"choices has the letters {quoted(list(value))}: name them A, B, C and so on."
            )
        value = [by_letter[letter] for letter in letters]
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise DatasetError(f"choices is {quoted(value)} instead of a list: correct the record.")
    if not 2 <= len(value) <= MAX_CHOICES:
        raise DatasetError(f"choices has {count(len(value), 'option')}: give 2 to {MAX_CHOICES}.")
    texts = [_option(one) for one in value]
    labels = [_LABEL.match(text) for text in texts]
    if [match and (match[1] or match[2]) for match in labels] == [*ascii_uppercase[: len(texts)]]:
        texts = [text[match.end() :] for text, match in zip(texts, labels, strict=True) if match]
    if any(not text for text in texts):
        raise DatasetError("choices has an empty option: write its text.")
    plain = [text.casefold() for text in texts]
    if twice := next((text for text in texts if plain.count(text.casefold()) > 1), None):
        raise DatasetError(f"choices has the option {quoted(twice)} twice: correct the record.")
    return tuple(texts)


def _option(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DatasetError(f"choices has {kind_of(value)} instead of a text: correct the record.")
    if isinstance(value, int) and value.bit_length() > 64:
        raise DatasetError("choices has a very long number: write it as a text.")
    text = " ".join(clean(str(value)).split())
    if len(text) > MAX_OPTION_CHARS:
        raise DatasetError(
            f"choices has an option of {len(text):,} characters: shorten it to "
            f"{MAX_OPTION_CHARS:,}."
        )
    return text


def letter_of(answer: object, texts: Sequence[str], *, as_text: bool = False) -> str:
    """The letter of the right option: from its letter, its number from 0, or its text; "" if None.
    DatasetError if the answer is none of the options, or means two of them."""
    if answer is None or answer == "":
        return ""
    meant = _places(answer, texts, as_text)
    if len(meant) == 1:
        return ascii_uppercase[meant.pop()]
    if not meant:
        way = "the text of an option" if as_text else "the letter or text"
        raise DatasetError(f"The answer {quoted(answer)} means none of its options: write {way}.")
    first = min(meant)
    clear = quoted(f"{ascii_uppercase[first]}. {texts[first]}")
    raise DatasetError(
        f"The answer {quoted(answer)} means two of its options: write letter and text, as {clear}."
    )


def _places(answer: object, texts: Sequence[str], as_text: bool) -> set[int]:
    if isinstance(answer, bool) or not isinstance(answer, str | int | float):
        return set()
    if isinstance(answer, int) and answer.bit_length() > 64:
        return set()
    said = " ".join(str(answer).split())  # a number may be the text of an option
    labelled = _LABEL.match(said)
    forms = {said.casefold()} | ({said[labelled.end() :].casefold()} if labelled else set())
    found = {place for place, text in enumerate(texts) if text.casefold() in forms}
    if as_text or isinstance(answer, float):
        return found
    if _PLACE.fullmatch(said):
        place = int(said)
    else:
        match = _LETTER.fullmatch(said)
        letter = match[1] if match else (labelled[1] or labelled[2]) if labelled else ""
        place = ascii_uppercase.find(letter.upper()) if letter else -1
    return found | ({place} if 0 <= place < len(texts) else set())
