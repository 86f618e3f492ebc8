"""The time lines of a run's first samples: when the pictures that its models received are from.

Only documents that show charts have this part.  A dataset that is not here, or has changed since
the run, is left out with a sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from engine.errors import DatasetError
from engine.media import dataset
from engine.models.families import FAMILIES
from engine.palette import family_colour, tones
from engine.report.blocks import Block, Bullets, ChartBlock, Heading, Paragraph
from engine.storage import provenance
from engine.storage.run_header import Header
from engine.storage.run_store import Run
from engine.types import MediaKind, Sample
from engine.viewing import seen_markup, seen_times
from engine.viewing.seen_markup import RowHead

SAMPLES = 3  # of a run; each adds some hundred kilobytes to the file


def seen(run: Run) -> Iterator[Block]:
    """A heading, then a time line per sample."""
    heads = dict[MediaKind, RowHead]()  # the first model of a kind gives the colour
    models, plan = run.header.models, run.header.plan
    for model, tone in zip(models, tones([one.family for one in models]), strict=True):
        if model.family in FAMILIES:  # otherwise the run is of another version
            kind = model.shows or FAMILIES[model.family].kind
            first = heads.get(kind, RowHead("", family_colour(tone)))
            heads[kind] = RowHead(
                ", ".join(filter(None, (first.models, model.label))), first.colour
            )
    yield Heading(2, "What each model saw")
    try:
        samples = samples_of(run.header)[:SAMPLES]
    except DatasetError as error:
        yield Paragraph(f"The time lines of the samples are left out: {error}")
        return
    if len(plan.samples) > SAMPLES:
        yield Paragraph(f"The first {SAMPLES} of the {len(plan.samples):,} samples of {run.id}.")
    for sample in samples:
        line = seen_times.timeline(sample, tuple(heads), plan.media)
        yield Heading(3, f"{sample.sequence} · {sample.id}")
        if line.rows:
            words = seen_markup.words(line, heads)
            yield ChartBlock(words, partial(seen_markup.markup, line, heads))
        if line.notes:
            yield Bullets(line.notes)


def samples_of(header: Header) -> list[Sample]:
    """The plan's samples; DatasetError unless the dataset is here and as it was."""
    found = dataset.read(Path(header.dataset.root))
    samples = [dataset.find(found, name) for name in header.plan.samples]
    if provenance.describe_dataset(found.root, samples).digest != header.dataset.digest:
        raise DatasetError(f"The samples in {found.root} have changed since the run.")
    return samples
