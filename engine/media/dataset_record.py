"""Turns one record of a dataset's JSON into a Sample; each wrong field becomes a sentence.

Fields: id, split, event_data ("seq/000000.npy" below event_npy/), video_data ("seq/000000" below
video/), mp4_data ("seq/000000.mp4" below mp4/), event_image or a variant of it (names below the
folder with the field's name), conversations; truth and boxes, the known content of a generated
scene; and choices, answer, task and choice_form of a multiple-choice question, which are asked in
the forms of engine/prompts.py.
"""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta

from engine import prompts
from engine.errors import BadInput, DatasetError, MediaError
from engine.media.dataset_files import Root, clean, kind_of, plain_text
from engine.media.media_files import CLIP_SUFFIXES, EVENT_SUFFIXES, by_number
from engine.prompts import LETTERS, MAX_ASKED_CHARS, MAX_CHOICES, WORDS
from engine.quoting import quoted
from engine.types import ChoiceForm, MediaKind, Sample

MAX_OPTION_CHARS = 1000
MAX_PICTURES = 10_000
_LABEL = re.compile(r"\s*(?:\(([A-Z])\)|([A-Z])[.):])\s+(?=\S)")
_LETTER = re.compile(r"\(?([A-Za-z])[.):]?")
_PLACE = re.compile(r"[0-9]{1,2}")
_VARIANT = re.compile(r"event_image(_1f|_[0-9.]+Hz)")
_CLIP_ENDING = re.compile(rf"({'|'.join(map(re.escape, CLIP_SUFFIXES))})\Z", re.I)
_ENDING = re.compile(rf"({'|'.join(map(re.escape, CLIP_SUFFIXES + EVENT_SUFFIXES))})\Z", re.I)
_MARKER = re.compile(r"\A\s*<event>\s*")
ANSWER_ALONE = (
    "answer is given without choices, so the question is no multiple-choice question: add choices."
)
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
                raise ValueError("A box encloses nothing")


def fields_of(value: dict[str, Any], problems: list[str]) -> Fields:
    """The fields that have their form; of each other one a problem."""
    good: dict[str, object] = {}
    for key in Fields.__struct_fields__:
        if (given := value.get(key)) is None:
            continue
        try:
            msgspec.convert({key: given}, Fields)
            good[key] = given
        except (msgspec.ValidationError, ValueError) as error:  # a lone surrogate: a ValueError
            why = str(error).partition(" - at")[0].replace("`", "")
            problems.append(f"{key} is {quoted(given)} ({quoted(why)[1:-1]}): correct it.")
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
            wrong = f"Record {number:,} is {kind_of(value)} instead of an object: remove it."
            self.problems.append(wrong)
        self.value: dict[str, Any] = value if isinstance(value, dict) else {}
        given = self.value.get("id")
        self.id = clean(given) if isinstance(given, str) and given.strip() else None
        # The name of its files in every folder: "seq/000000".
        values = [self.value.get(key) for key in ("event_data", "mp4_data", "video_data")]
        named = clean(next((name for name in values if isinstance(name, str) and name), ""))
        self.clip = _ENDING.sub("", named)

    def sample(self, sample_id: str) -> Sample:
        """The sample with that id, with the files that exist and reasons for missing ones."""
        event_images, given = self._event_images(), self.value.get("event_data")
        raw = None if given in (None, "") else self._file("events", "event_npy", given)
        mp4, frames = self._mp4(), self._frames()
        fields = fields_of(self.value, self.problems)
        question, reference = turns(fields, self.problems)
        options, answer = self.value.get("choices"), self.value.get("answer")
        found = AskedQuestion(question)
        if options is not None:
            found = asked(question, options, answer, self.value.get("choice_form") or LETTERS)
        elif answer not in (None, ""):
            self.problems.append(ANSWER_ALONE)
        missing = dict[str, str]()
        if not event_images and not raw:
            missing["events"] = self._why("events", "event images nor raw events")
        if not frames and not mp4:
            missing["video"] = missing["image"] = self._why("frames", "an MP4 nor a frame folder")
        if found.refused:
            self.problems.append(found.refused)
            missing = dict.fromkeys(get_args(MediaKind), found.refused)
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
            missing=missing,
            task=clean(fields.task),
            problems=tuple(self.problems),
            question=found.question,
            choices=found.choices,
            choice_form=found.choice_form,
            answer=found.answer,
        )

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
        if not isinstance(values, list) or len(values) > MAX_PICTURES:
            most = f"give a list of at most {MAX_PICTURES:,} pictures"
            self._note("events", f"{key} is {quoted(values)}: {most}.")
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
        with suppress(MediaError):  # another field's check reports the bad name
            for folder in ("mp4", "video") if self.clip else ():
                if os.path.lexists(self.root.path_of(folder, name)):
                    return self._file("frames", folder, name)
        return None

    def _frames(self) -> tuple[Path, ...]:
        value = self.value.get("video_data")
        named = value not in (None, "")
        if not named and not self.clip:
            return ()
        try:
            name = _CLIP_ENDING.sub("", value) if isinstance(value, str) else value
            path = self.root.path_of("video", name if named else self.clip)
            return self.root.pictures(path) if named or os.path.lexists(path) else ()
        except MediaError as error:
            if named:
                self._note("frames", error)
            return ()

    def _why(self, kind: str, needs: str) -> str:
        reasons = self._reasons[kind]
        none = f"Its record names neither {needs}: pick another sample."
        return "; ".join(reason.rstrip(".") for reason in reasons) + "." if reasons else none


@dataclass(frozen=True)
class AskedQuestion:
    """The fields of a Sample that a multiple-choice record decides.  `refused`: why the question
    must not be asked; `choices` are then the options as given.  The sample is then shown to no
    model: asked in another form, it would count as another question, or leave the accuracy without
    a word."""

    question: str = ""
    choices: tuple[str, ...] = ()
    choice_form: ChoiceForm = "letters"
    answer: str = ""
    refused: str = ""


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
        texts = option_texts(options)
        named = form if isinstance(form, str) else quoted(form)
        text = prompts.choice_question(question.strip(), texts, named)
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
    each = value
    if isinstance(value, Mapping):  # by letter; the letters begin with A and have no gap
        by_letter = {str(letter).strip().upper(): text for letter, text in value.items()}
        each = [by_letter.get(letter) for letter in ascii_uppercase[: len(value)]]
    texts = [plain_text(one) for one in each] if isinstance(each, list | tuple) else []
    labels = [_LABEL.match(text) for text in texts]
    if [match and (match[1] or match[2]) for match in labels] == [*ascii_uppercase[: len(texts)]]:
        texts = [text[match.end() :] for text, match in zip(texts, labels, strict=True) if match]
    different = len({text.casefold() for text in texts}) == len(texts) and all(texts)
    longest = max(map(len, texts), default=0)
    if not (different and 2 <= len(texts) <= MAX_CHOICES and longest <= MAX_OPTION_CHARS):
        raise DatasetError(
            f"choices is {quoted(value)}: give 2 to {MAX_CHOICES} different texts of at most "
            f"{MAX_OPTION_CHARS:,} characters, in a list or by letter."
        )
    return tuple(texts)


def letter_of(answer: object, texts: Sequence[str], *, as_text: bool = False) -> str:
    """The letter of the right option: from its letter, its number from 0, or its text; "" if None.
    DatasetError if the answer is none of the options, or means two of them."""
    if answer is None or answer == "":
        return ""
    said = plain_text(answer)  # a number may be the text of an option
    labelled, letter = _LABEL.match(said), _LETTER.fullmatch(said)
    forms = {said.casefold()} | ({said[labelled.end() :].casefold()} if labelled else set())
    meant = {place for place, text in enumerate(texts) if text.casefold() in forms}
    if not as_text and not isinstance(answer, float):
        if _PLACE.fullmatch(said):
            meant |= {int(said)} & set(range(len(texts)))
        elif letter or labelled:
            named = letter[1] if letter else said.strip(" (")[0]
            meant |= {ascii_uppercase.find(named.upper())} & set(range(len(texts)))
    if len(meant) == 1:
        return ascii_uppercase[meant.pop()]
    first = min(meant, default=0)
    clear = quoted(f"{ascii_uppercase[first]}. {texts[first]}")
    number = "two" if meant else "none"
    raise DatasetError(
        f"The answer {quoted(answer)} means {number} of its options: write letter and text, as "
        f"{clear}."
    )
