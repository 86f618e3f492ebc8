"""What answers rest on: the explanations kept with a run, each with its map and its figures.  Only
documents that show charts have this part.  Without the dataset, or if it has changed since the run,
the figures stand without a map."""

import base64
from collections.abc import Iterator
from functools import partial
from html import escape

from engine.attribution import wording
from engine.attribution.explained import Explanation, nats_text, of_run, restored
from engine.errors import StageScopeError
from engine.palette import HEAT_COLOURS
from engine.report.blocks import Block, Bullets, ChartBlock, Heading, Paragraph
from engine.report.drawers import printable
from engine.report.report_figures import samples_of
from engine.storage import explanations
from engine.storage.run_store import Run
from engine.types import Sample

MOST = 12  # of a run; each map adds some hundred kilobytes to the file
TITLE = "What answers rest on"
END = (Paragraph(wording.UNIT), Bullets(wording.LIMITS, "Not proved:"))


def explained(run: Run, several: bool = False) -> Iterator[Block]:
    """Nothing if no explanation is kept with the run; `several`: the heading names it."""
    from engine.attribution import occlusion

    stored, problem = of_run(run.folder), explanations.problem(run.folder)
    if not stored and not problem:
        return
    yield Heading(2, f"{TITLE}: {run.id}" if several else TITLE)
    if problem:
        yield Paragraph(problem)
    if len(stored) > MOST:
        yield Paragraph(f"The first {MOST} of the {len(stored):,} explanations of {run.id}.")
    samples: dict[str, Sample] = {}
    try:
        samples = {sample.id: sample for sample in samples_of(run.header)}
    except StageScopeError as error:
        yield Paragraph(f"The maps are left out: {error}")
    labels = {model.name: model.label for model in run.header.models}
    for one in stored[:MOST]:
        yield Heading(3, f"{labels.get(one.model, one.model)}, sample {one.sample}")
        yield Paragraph(f"Words: {one.words}")
        sample = samples.get(one.sample, Sample(one.sample, ""))
        try:
            if samples:
                explanation, picture = occlusion.mapped(one, run.header, sample)
            else:
                request = run.header.plan.ask(sample, one.model, one.prompt)
                explanation, picture = restored(one, request), b""
        except StageScopeError as error:
            yield Paragraph(f"Left out: {error}")
            continue
        yield from figures(explanation, picture)
    yield from END


def figures(found: Explanation, picture: bytes = b"") -> Iterator[Block]:
    """What the words rest on: the conclusion first, then the places and the moments."""
    yield Paragraph(found.chance.sentence)
    if picture:
        # The legend in words: the picture stands alone in print.
        pale = " The map is pale, because no place is named." if wording.no_place(found) else ""
        ends = f"from {nats_text(-found.most)} (blue-green) over 0 to {nats_text(found.most)}"
        words = f"Colours {ends} (orange: the words rest on it).{pale}"
        alt = escape(printable(wording.alt(found, found.request.run.sample.id)))
        data = base64.b64encode(picture).decode()
        image = (
            f'<img style="max-width: 100%" alt="{alt}" src="data:image/png;base64,{data}"><div '
            'style="width: 14rem; height: .9rem; background: linear-gradient(to right, '
            f'{HEAT_COLOURS["against"]}, #A9ADB3, {HEAT_COLOURS["carries"]})"></div>'
        )
        yield ChartBlock(words, lambda: image)
    yield places(found)
    yield from moments(found)
    yield Paragraph(f"{wording.plain(found)} {wording.how(found)}")
    if found.notes:
        yield Bullets(found.notes)


def answered(found: Explanation, picture: bytes = b"") -> Iterator[Block]:
    """An explanation alone, with the answer that it is of."""
    run, (first, after) = found.request.run, found.scored
    yield Heading(3, f"{run.model}, sample {run.sample.id}")
    yield Paragraph(found.answer)
    yield Paragraph(f"Words: {found.words} (tokens {first + 1} to {after})")
    yield from figures(found, picture)
    yield from END


def places(found: Explanation) -> Bullets:
    lines = wording.cells(found) or ("No part: the words lose nothing without any of them.",)
    no_place = wording.no_place(found)
    return Bullets(lines, "Largest losses:" if no_place else "Places that the words rest on:")


def moments(found: Explanation) -> Iterator[Block]:
    if found.moments:
        from engine.report import charts  # imports Altair, which is slow

        words = charts.moments_words(found.moments)
        yield ChartBlock(words, partial(charts.moments, found.moments))
