"""What answers rest on: the explanations kept with a run, each with its map and its figures.

Only documents that show charts have this part.  Without the dataset, or if it has changed since
the run, the figures stand without a map.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import partial
from html import escape

from engine.attribution import kept, wording
from engine.attribution.explained import Explanation, nats_text
from engine.errors import StageScopeError
from engine.palette import HEAT_COLOURS
from engine.report.blocks import Block, Bullets, ChartBlock, Heading, Paragraph
from engine.report.drawers import printable
from engine.report.seen_part import samples_of
from engine.storage import explanations
from engine.storage.explanations import StoredExplanation
from engine.storage.run_store import Run
from engine.types import Sample

MOST = 12  # of a run; each map adds some hundred kilobytes to the file
TITLE = "What answers rest on"


def explained(run: Run, several: bool = False) -> Iterator[Block]:
    """Nothing if no explanation is kept with the run; `several`: the heading names it."""
    found, problem = kept.of_run(run.folder), explanations.problem(run.folder)
    if not found and not problem:
        return
    yield Heading(2, f"{TITLE}: {run.id}" if several else TITLE)
    if problem:
        yield Paragraph(problem)
    if len(found) > MOST:
        yield Paragraph(f"The first {MOST} of the {len(found):,} explanations of {run.id}.")
    samples, why = _samples(run)
    if why:
        yield Paragraph(f"The maps are left out: {why}")
    for stored in found[:MOST]:
        yield from _one(run, stored, samples)
    yield from limits()


def _samples(run: Run) -> tuple[dict[str, Sample], str]:
    """The run's samples by id; none, and the reason, if they are not here."""
    try:
        return {sample.id: sample for sample in samples_of(run.header)}, ""
    except StageScopeError as error:
        return {}, str(error)


def _one(run: Run, stored: StoredExplanation, samples: dict[str, Sample]) -> Iterator[Block]:
    labels = {one.name: one.label for one in run.header.models}
    yield Heading(3, f"{labels.get(stored.model, stored.model)}, sample {stored.sample}")
    yield Paragraph(f"Words: {stored.words}")
    sample = samples.get(stored.sample, Sample(stored.sample, ""))
    try:
        if samples:
            found, picture = kept.mapped(stored, run.header, sample)
        else:
            request = run.header.plan.ask(sample, stored.model, stored.prompt)
            found, picture = kept.restored(stored, request), b""
    except StageScopeError as error:
        yield Paragraph(f"Left out: {error}")
        return
    yield from figures(found, picture)


def figures(found: Explanation, picture: bytes = b"") -> Iterator[Block]:
    """What the words rest on: the conclusion first, then the places and the moments."""
    yield Paragraph(wording.conclusion(found))
    if picture:
        alt = wording.alt(found, found.request.run.sample.id)
        yield ChartBlock(_caption(found), partial(_image, picture, alt))
    places = wording.cells(found) or ("No part: the words lose nothing without any of them.",)
    title = "Largest losses:" if wording.no_place(found) else "Places that the words rest on:"
    yield Bullets(places, title)
    if found.moments:
        from engine.report import charts

        words = charts.moments_words(found.moments)
        yield ChartBlock(words, partial(charts.moments, found.moments))
    yield Paragraph(f"{wording.plain(found)} {wording.how(found)}")
    if found.notes:
        yield Bullets(found.notes)


def limits() -> list[Block]:
    """What an explanation does not prove."""
    return [Paragraph(wording.UNIT), Bullets(wording.LIMITS, "Not proved:")]


def _caption(found: Explanation) -> str:
    """The legend in words: the picture stands alone in print."""
    pale = " The map is pale, because no place is named." if wording.no_place(found) else ""
    ends = f"from {nats_text(-found.most)} (blue-green) over 0 to {nats_text(found.most)} (orange"
    return f"Colours {ends}: the words rest on it).{pale}"


def _image(picture: bytes, alt: str) -> str:
    data = base64.b64encode(picture).decode()
    bar = (
        f'<div style="width: 14rem; height: .9rem; background: linear-gradient(to right, '
        f'{HEAT_COLOURS["against"]}, #A9ADB3, {HEAT_COLOURS["carries"]})"></div>'
    )
    words = escape(printable(alt))
    return f'<img style="max-width: 100%" alt="{words}" src="data:image/png;base64,{data}">{bar}'
