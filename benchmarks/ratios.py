"""Stored figures as rows of the table: what, against what, the ratio, the target.

Boundary: one function per kind of stored file, from its JSON to rows; reads and measures nothing.
A ratio is the median of pairs measured by turns; CPU time unless the row says wall.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Row = dict[str, Any]
OWN, ALL = "StageScope", "decode all"
# Times less CPU than decoding everything, by clip.
CLIPS = {
    "1 s, GOP 250": 1.5,
    "1 s, GOP 12": 1.4,
    "5 s, GOP 250": 1.8,
    "5 s, GOP 12": 2.4,
    "16 s, GOP 250": 1.9,
    "16 s, GOP 12": 6.0,
}
PIXELS = {"exact": 1.15, "fast": 5.0}
WAYS = {"eager": 1.5, "compiled": 3.0}
TTFT = {"video-llava-demo": 3.0}
EVENTS = 18.0


def rows(name: str, kept: dict[str, Any]) -> list[Row]:
    """The rows of one stored file: its own, if any; none for an unknown kind."""
    if "rows" in kept and isinstance(kept["rows"], list):
        return list(kept["rows"])
    made = KINDS.get(name)
    repeat = f"python -m benchmarks.{name}"
    return [row | {"repeat": repeat} for row in made(kept)] if made else []


def _row(what: str, against: str, ratio: dict[str, Any], target: float | None = None) -> Row:
    """`ratio` is a spread: its median is shown, with its range and how many pairs gave it."""
    found: Row = {"what": what, "against": against, "ratio": round(ratio["median"], 2)}
    found |= {"low": round(ratio["min"], 2), "high": round(ratio["max"], 2), "n": ratio["n"]}
    return found if target is None else found | {"target": target}


def _video(kept: dict[str, Any]) -> Iterator[Row]:
    for clip, target in CLIPS.items():
        cell, what = kept[clip], f"MP4 to 8 frames, {clip}, one thread"
        yield _row(what, "decoding everything", cell[OWN]["times_less_cpu"], target)
        for rival in (name for name in cell if name not in (OWN, ALL)):
            yield _row(what, rival, cell[rival]["times_of_own_cpu"], 1.0)


def _events(kept: dict[str, Any]) -> Iterator[Row]:
    for name, what in (("recording", "a recording"), ("demo", "a demo scene")):
        if found := kept.get(name):
            said = f"{found['events']:,} events of {what} to 5 images"
            yield _row(said, "a loop over events", found["times_less"], EVENTS)


def _preprocessing(kept: dict[str, Any]) -> Iterator[Row]:
    for case, found in kept.items():
        if " -> " in case:
            for kind, ways in found.items():
                for setting, target in PIXELS.items():
                    what = f"pixels {setting}, {case}, {kind}"
                    ratio = ways[setting]["times_less"]
                    yield _row(what, "the image processor", ratio, target)
        elif case.startswith("stages"):
            for setting in PIXELS:
                ratio = found[setting]["times_less"]
                yield _row(f"{case}, pixels {setting}", "decoding everything, processor", ratio)


def _decoding(kept: dict[str, Any]) -> Iterator[Row]:
    for model, found in kept["models"].items():
        for way, target in WAYS.items():
            ratio = found["answer"]["generate_over_cpu"][way]
            what = f"decoding {found['new_tokens']} tokens, {way}, {model}"
            yield _row(what, "generate()", ratio, target)


def _again(kept: dict[str, Any]) -> Iterator[Row]:
    against = {"computed": "everything computed", "features_read": "features read from the disk"}
    for model, found in kept["models"].items():
        for kind, words in against.items():
            ratio = found["ttft_times_lower_than"][kind]
            target = TTFT.get(model) if kind == "computed" else None
            yield _row(f"TTFT of a second question, {model}, wall", words, ratio, target)


def _drafting(kept: dict[str, Any]) -> Iterator[Row]:
    for draft, lengths in kept["drafts"].items():
        for gamma, found in lengths.items():
            what = f"token steps of {kept['target']}, drafted by {draft}, gamma {gamma}, wall"
            predicted = found["predicted_in_the_loop"]
            told = f"without a draft (predicted {predicted:.2f}x)"
            yield {"what": what, "against": told, "ratio": round(found["measured"]["median"], 2)}


def _batches(kept: dict[str, Any]) -> Iterator[Row]:
    for model, sizes in kept["models"].items():
        for size, found in sizes.items():
            if size != "batch of 1":
                ratio = found["cpu"]["times_single_runs"]
                yield _row(f"samples a second, {size}, {model}", "one by one", ratio)


def _families(kept: dict[str, Any]) -> Iterator[Row]:
    said = f"{kept['pictures']} pictures and {kept['new_tokens']} tokens"
    for family, found in kept["models"].items():
        for way, words in (("computed", "in stages"), ("cached", "from cached features")):
            ratio = found["generate_over_cpu"][way]
            yield _row(f"{said}, {words}, {family}", "generate()", ratio)


KINDS: dict[str, Callable[[dict[str, Any]], Iterator[Row]]] = {
    "video": _video,
    "events": _events,
    "preprocessing": _preprocessing,
    "decoding": _decoding,
    "again": _again,
    "drafting": _drafting,
    "batches": _batches,
    "families": _families,
}
