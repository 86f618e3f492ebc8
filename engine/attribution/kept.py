"""Explanations kept with a run, as the same types that explain() gives."""

from __future__ import annotations

from pathlib import Path

import msgspec

from engine.attribution.explained import (
    ExplainOptions,
    ExplainRequest,
    Explanation,
    as_json,
    places,
)
from engine.errors import BadInput, StoreError, UnknownModel
from engine.models.families import FAMILIES
from engine.quoting import cut, quoted
from engine.storage import explanations
from engine.storage.explanations import StoredExplanation
from engine.storage.run_header import Header
from engine.types import RunRequest, Sample

OTHER_ANSWER = (
    "{} answers sample {} otherwise now than in the run, so the explanation does not belong to it: "
    "leave --run out, or run the samples again."
)


def of_run(folder: Path) -> tuple[StoredExplanation, ...]:
    """The explanations kept with a run, oldest first; none if they cannot be read, which the run's
    problems report."""
    try:
        return explanations.read(folder)
    except StoreError:
        return ()


def mapped(stored: StoredExplanation, header: Header, sample: Sample) -> tuple[Explanation, bytes]:
    """An explanation of the run, and its map over the sample's pictures as a PNG."""
    from engine.attribution import heatmap
    from engine.attribution.occlusion import shown

    request = header.plan.ask(sample, stored.model, stored.prompt)
    found = restored(stored, request)
    for model in header.models:
        if model.name == stored.model and model.family in FAMILIES:
            kind = model.shows or FAMILIES[model.family].kind
            return found, heatmap.sheet(found, shown(request, kind).shown())
    raise UnknownModel(
        f"The run has no model {quoted(stored.model)} of a known family, so the map of its "
        "explanation cannot be drawn: explain the words again."
    )


def keep(folder: Path, found: Explanation, repeat: int) -> None:
    """Appends the explanation to the run; StoreError if it cannot be saved."""
    explanations.put(folder, as_json(found) | {"repeat": repeat})


def refuse_other(now: tuple[int, ...], before: tuple[int, ...] | None, run: RunRequest) -> None:
    """BadInput if the model's answer now is not that of the run."""
    if now != before:
        raise BadInput(OTHER_ANSWER.format(cut(run.model), quoted(run.sample.id)))


def restored(stored: StoredExplanation, run: RunRequest) -> Explanation:
    """The explanation of this request, without pictures; StoreError for impossible options."""
    try:
        options = msgspec.convert(stored.options, ExplainOptions)
        request = ExplainRequest(run, stored.words, (), options)
        if not all(places(cell.box, options.grid) for cell in stored.cells):
            raise BadInput("its cells are not those of its options")
    except (BadInput, msgspec.MsgspecError) as error:
        raise StoreError(
            f"An explanation of the run cannot be used ({cut(str(error).rstrip('.'))}): explain "
            "the words again."
        ) from error
    kept = {name: getattr(stored, name) for name in explanations.KEPT}
    return Explanation(request=request, **kept)
