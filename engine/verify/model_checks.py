"""Checks that are done once per model, on the first sample that the model can take.

Boundary: runs the checks in order; each check is in its own module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.errors import BadInput
from engine.models.adapter import Adapter
from engine.types import Sample
from engine.verify import controls, extents, picture_shapes, projection, sampling, stage_work
from engine.verify.answer_paths import ANOTHER_QUESTION, RecordedAnswer, Subject, rounding
from engine.verify.equality import Pieces
from engine.verify.verdict import NEEDS, CheckFinding


@dataclass(frozen=True)
class CheckContext:
    """How to compare and show answers: rounding of logits, ids as pieces and as text.

    `doing` reports the next step, and raises Cancelled if the user cancelled.
    """

    rounding: float
    pieces: Pieces
    text: Callable[[Sequence[int]], str]
    doing: Callable[[str], None]


def findings(
    subject: Subject, other: Sample, plain: RecordedAnswer, reading: CheckContext, folder: Path
) -> Iterator[tuple[str, CheckFinding]]:
    """(check, finding) pairs; `other`: a second sample for the batch, `plain`: plain's answer."""
    adapter = subject.adapter
    yield "settings", _settings(subject, plain, reading)
    yield (
        "equal_batch",
        refused(adapter, "equal_batch") or _batch(subject, other, plain, reading, folder / "other"),
    )
    yield "shapes", picture_shapes.shapes(subject, folder / "shapes", reading.pieces, reading.doing)
    reading.doing("forcing a long answer")
    config = extents.forced(subject)
    forced = subject.plain(config)
    yield "comparison", controls.comparison(forced, reading.rounding)
    if "decoupled" in adapter.refuses:
        for check in ("long", "rows", "probe", "work", "synchronised"):
            yield check, CheckFinding("refused", adapter.refuses["decoupled"])
        return
    noise = max(reading.rounding, rounding(adapter, subject.prepared, forced))
    yield "long", extents.long(forced, [subject.decoupled(config)], noise, reading.pieces)
    reading.doing("computing visual rows in float64")
    yield "rows", projection.rows(adapter, subject.prepared)
    yield "probe", projection.probe(adapter, subject.prepared)
    reading.doing("recording what each stage does")
    logs, contents = stage_work.runs(subject, folder / "work")
    yield "work", stage_work.work(logs, contents)
    yield "synchronised", stage_work.synchronised(logs[-1])


def refused(adapter: Adapter, check: str) -> CheckFinding | None:
    """The finding of a check about something that the model does not offer, else None."""
    refuses: Mapping[str, str] = {str(way): why for way, why in adapter.refuses.items()}
    needs = NEEDS.get(check, "")
    why = refuses.get("decoupled") if needs in ("decoupled", "prefix") else None
    why = why or refuses.get(needs)
    return CheckFinding("refused", why) if why else None


def _settings(subject: Subject, plain: RecordedAnswer, reading: CheckContext) -> CheckFinding:
    tried = []
    for one in sampling.try_settings(subject, plain):
        reading.doing(f"sampling on flattened logits: {one.name}")
        tried.append(one)
    eos_ids = subject.adapter.eos_ids
    return sampling.settings(tried, reading.rounding, eos_ids, reading.text)


def _batch(
    subject: Subject, sample: Sample, plain: RecordedAnswer, reading: CheckContext, folder: Path
) -> CheckFinding:
    """Answers the subject's question and another question about another sample, in turn."""
    adapter, size = subject.adapter, subject.request.batch
    if size < 2:
        return CheckFinding("unresolved", "No batch was requested, so batches are not covered.")
    reading.doing(f"answering a batch of {size}")
    request = replace(subject.request, prompt=ANOTHER_QUESTION)
    try:
        other = Subject(adapter, sample, request, folder, subject.cancelled)
    except BadInput:  # the sample's own row reports it
        other = Subject(adapter, subject.sample, request, folder, subject.cancelled)
    found = extents.batch((subject, other), (plain, other.plain(other.greedy)), size)
    other.cache.close()
    return extents.equal_batch(found, size, adapter, reading.rounding, reading.pieces)
