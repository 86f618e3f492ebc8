"""Turns one record of a dataset's JSON into a Sample, whatever the record holds.

Fields: id, split, event_data ("seq/000000.npy" below event_npy/), video_data ("seq/000000" below
video/), mp4_data ("seq/000000.mp4" below mp4/), event_image or a variant of it (names below the
folder with the field's name), conversations; truth and boxes, the known content of a generated
scene; and choices, answer, task and choice_form of a multiple-choice question.

Boundary: never raises for a bad record; each wrong field becomes a sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import MediaError
from engine.media.choices import AskedQuestion, asked_or_refused, missing
from engine.media.dataset_files import kind_of
from engine.media.kinds import CLIP_SUFFIXES, EVENT_SUFFIXES
from engine.media.media_files import by_number
from engine.media.roots import Root
from engine.media.thing_boxes import WANTED, thing_boxes
from engine.prompts import LETTERS
from engine.quoting import quoted
from engine.types import Box, Sample

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


@dataclass
class DatasetRecord:
    """One value of the JSON list, its number counted from 1, and its problems."""

    value: Any
    number: int
    root: Root
    clip: str = ""
    problems: list[str] = field(default_factory=list)
    reasons: dict[str, list[str]] = field(default_factory=lambda: {"events": [], "frames": []})

    def __post_init__(self) -> None:
        if not isinstance(self.value, dict):
            self.problems.append(
                f"Record {self.number:,} is {kind_of(self.value)} instead of an object: remove it."
            )
            self.value = {}

    def id(self) -> str | None:
        """The id, or None if it is absent, blank or not text."""
        value = self.value.get("id")
        return clean(value) if isinstance(value, str) and value.strip() else None

    def sample(self, sample_id: str) -> Sample:
        """The sample with that id, with the files that exist and reasons for missing ones."""
        self.clip = self._clip()
        event_images, raw = self._event_images(), self._raw()
        mp4, frames = self._mp4(), self._frames()
        question, reference = self.turns()
        in_form = vars(self._asked(question)).copy()
        refused = in_form.pop("refused")
        absent: dict[str, str] = {}
        if not event_images and raw is None:
            absent["events"] = self._why("events", "events")
        if not frames and mp4 is None:
            absent |= {kind: self._why(kind, "frames") for kind in ("video", "image")}
        return Sample(
            id=sample_id,
            sequence=self.clip.split("/")[0] if "/" in self.clip else self._text("split"),
            reference=reference,
            event_images=event_images,
            events=raw,
            frames=frames,
            mp4=mp4,
            truth=self._truth(),
            boxes=self._boxes(),
            missing=absent | missing(refused),
            task=self._text("task"),
            problems=tuple(self.problems),
            **in_form,
        )

    def _asked(self, question: str) -> AskedQuestion:
        """The question with its choices, if the record has any that can be asked."""
        if self.value.get("choices") is None:
            if self.value.get("answer") not in (None, ""):
                self.problems.append(ANSWER_ALONE)
            return AskedQuestion(question)
        form = self.value.get("choice_form")
        form = LETTERS if form in (None, "") else form
        options, answer = self.value["choices"], self.value.get("answer")
        found = asked_or_refused("", question, options, answer, form)
        self.problems += filter(None, [found.refused])
        return found

    def _text(self, key: str) -> str:
        """A text field; "" if it is absent; a problem is noted if it is not text."""
        value = self.value.get(key)
        if value is None or isinstance(value, str):
            return clean(value or "")
        self.problems.append(f"{key} is {quoted(value)} instead of text: correct the record.")
        return ""

    def _clip(self) -> str:
        """The name of its files in every folder: "seq/000000"."""
        values = [self.value.get(key) for key in ("event_data", "mp4_data", "video_data")]
        named = [value for value in values if isinstance(value, str) and value]
        return _EVENT_ENDING.sub("", _CLIP_ENDING.sub("", clean(named[0]))) if named else ""

    def _file(self, kind: str, folder: str, value: object) -> Path | None:
        """The file that the record names below a folder; or None, and the reason is noted."""
        try:
            return self.root.file(self.root.path_of(folder, value))
        except MediaError as error:
            self._note(kind, error)
            return None

    def _note(self, kind: str, error: object) -> None:
        self.reasons[kind].append(str(error))
        self.problems.append(str(error))

    def _raw(self) -> Path | None:
        value = self.value.get("event_data")
        return None if value in (None, "") else self._file("events", "event_npy", value)

    def _event_images(self) -> tuple[Path, ...]:
        """All event images of the first field that names any; none if one is unusable."""
        keys = ["event_image", *sorted(key for key in self.value if _VARIANT.fullmatch(key))]
        key = next((key for key in keys if self.value.get(key)), "event_image")
        values = self.value.get(key) or []
        if not isinstance(values, list):
            self._note("events", f"{key} is {quoted(values)} instead of a list: correct it.")
            return ()
        if len(values) > MAX_PICTURES:
            self._note(
                "events", f"{key} names {len(values):,} pictures: name at most {MAX_PICTURES:,}."
            )
            return ()
        paths = []
        for value in values:
            path = self._file("events", key, value)
            if path is None:  # the other images alone would show less
                return ()
            paths.append(path)
        return tuple(sorted(paths, key=by_number))

    def _mp4(self) -> Path | None:
        value = self.value.get("mp4_data")
        if value not in (None, ""):
            return self._file("frames", "mp4", value)
        return self._derived_mp4()

    def _derived_mp4(self) -> Path | None:
        """The clip at its usual place; no reason is noted if there is none."""
        video = self.value.get("video_data")
        named = isinstance(video, str) and Path(video).suffix.lower() in CLIP_SUFFIXES
        name = video if named else f"{self.clip}.mp4"
        for folder in ("mp4", "video") if self.clip else ():
            try:
                path = self.root.path_of(folder, name)
            except MediaError:
                return None  # another field's check reports the bad name
            if self.root.has(path):
                return self._file("frames", folder, name)
        return None

    def _frames(self) -> tuple[Path, ...]:
        value = self.value.get("video_data")
        if isinstance(value, str):
            value = _CLIP_ENDING.sub("", value)
        named = value not in (None, "")
        try:
            path = self.root.path_of("video", value if named else self.clip)
            if not named and not self.root.has(path):
                return ()
            return self.root.pictures(path)
        except MediaError as error:
            if named:
                self._note("frames", error)
            return ()

    def turns(self) -> tuple[str, str]:
        """(the first question without its event marker, the first answer)."""
        turns = self.value.get("conversations")
        first = {"human": "", "gpt": ""}
        if not isinstance(turns, list | None):
            self.problems.append(f"conversations is {quoted(turns)} instead of a list: correct it.")
            turns = None
        odd = []
        for turn in reversed(turns or []):
            match turn:
                case {"from": "human" | "gpt" as who, "value": str(value)}:
                    first[who] = clean(value)
                case _:
                    odd.append(turn)
        if odd:
            more = f" and {len(odd) - 1:,} more" if len(odd) > 1 else ""
            self.problems.append(
                f"The turn {quoted(odd[-1])}{more} has no text: correct the record."
            )
        return _MARKER.sub("", first["human"]), first["gpt"]

    def _truth(self) -> dict[str, str]:
        truth = self.value.get("truth")
        if truth is None:
            return {}
        if not isinstance(truth, dict) or not all(isinstance(v, str) for v in truth.values()):
            self.problems.append(f"truth is {quoted(truth)} instead of texts by name: correct it.")
            return {}
        return {clean(key): clean(value) for key, value in truth.items()}

    def _boxes(self) -> dict[str, tuple[Box, ...]]:
        value = self.value.get("boxes")
        found = {} if value is None else thing_boxes(value)
        if found is None:
            self.problems.append(f"boxes is {quoted(value)} instead of {WANTED}: correct it.")
        return {clean(name): boxes for name, boxes in (found or {}).items()}

    def _why(self, kind: str, files: str) -> str:
        """All reasons noted for these files, as one sentence."""
        reasons = [reason.rstrip(".") for reason in self.reasons[files]]
        return "; ".join(reasons) + "." if reasons else _NOT_NAMED[kind]


def clean(text: str) -> str:
    """The text without lone surrogates, which JSON can hold and no output can encode."""
    return text.encode("utf-8", "replace").decode("utf-8")
