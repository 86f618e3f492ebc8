"""A comparison on one sample as a run on disk, so that all that reads runs reads it too.  Nothing
is run, and the sample's files are not copied."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from engine.analysis.compared import ComparedModel, verdict
from engine.attribution import explained
from engine.attribution.explained import Explanation
from engine.benchmark import execute
from engine.errors import BadInput
from engine.models import registry
from engine.storage import run_header, run_store
from engine.storage.plan import COMPARISON, Plan, Task
from engine.storage.result_rows import ResultRow
from engine.types import RunRequest, RunResult
from engine.verify import certificates


@dataclass(frozen=True)
class ModelAnswers:
    """Each repeat gave a result, or the error.  An explanation has the number of its repeat."""

    request: RunRequest
    outcomes: tuple[RunResult | str, ...]
    explanations: tuple[tuple[int, Explanation], ...] = ()


def save(answers: Sequence[ModelAnswers], root: Path, base: Path) -> Path:
    """The folder of a new finished run in `base`; `root` is the dataset of the sample.  BadInput if
    there is no result or the requests differ in more than the model; StoreError if nothing can be
    written."""
    if not any(isinstance(one, RunResult) for model in answers for one in model.outcomes):
        raise BadInput("There is no answer to save: wait until a model has answered.")
    plan, sample = _plan(answers), answers[0].request.sample
    entries = {name: registry.entry(name) for name in plan.models}
    header = execute.describe(plan, root, {sample.id: sample}, entries)
    rows = list(_rows(answers))
    with run_store.create(header, base / header.id) as writer:
        writer.note("started", f"{len(rows):,} {COMPARISON}.")
        for row in rows:
            writer.append(row)
        for model in answers:
            for repeat, found in model.explanations:
                explained.keep(writer.folder, found, repeat)
        writer.finish(execute.summary(writer, {}))
        writer.note("finished")
        writer.note("verdict", _verdict(answers))
    return writer.folder


def _verdict(answers: Sequence[ModelAnswers]) -> str:
    """What these results decide, in the words of the Compare page: it compares results, and a row
    cannot be turned back into one."""
    compared, failed = [], {}
    for model in answers:
        entry = registry.entry(model.request.model)
        results = tuple(one for one in model.outcomes if isinstance(one, RunResult))
        errors = tuple(one for one in model.outcomes if isinstance(one, str))
        if results:
            compared.append(ComparedModel(entry.label, entry.colour, results, errors))
        else:
            failed[entry.label] = "failed"
    found = verdict(compared, failed)
    return "\n".join(filter(None, (found.headline, found.reason, *found.mixed)))


def _plan(answers: Sequence[ModelAnswers]) -> Plan:
    requests = [model.request for model in answers]
    settings = [replace(request, model="") for request in requests]
    if any(other != settings[0] for other in settings):
        why = "These answers have different settings or inputs, and a run has one of each"
        raise BadInput(f"{why}: press Run to repeat all of them, then save.")
    return Plan(
        models=tuple(request.model for request in requests),
        samples=(requests[0].sample.id,),
        prompt=requests[0].prompt,
        repeat=max(len(model.outcomes) for model in answers),
        warmup=0,
        order="interleaved",
        order_why=COMPARISON,
        **vars(requests[0].how),
    )


def _rows(answers: Sequence[ModelAnswers]) -> list[ResultRow]:
    """The rows in the order in which the runs took turns."""
    at, rows = run_header.now(), []
    for repeat, turn in enumerate(zip_longest(*(model.outcomes for model in answers))):
        for model, outcome in zip(answers, turn, strict=True):
            if outcome is not None:
                request = model.request
                task = Task(request.model, request.sample.id, repeat, "measured")
                if isinstance(outcome, str):
                    answer = ResultRow.failed(request, registry.entry(request.model), outcome)
                else:
                    answer = certificates.row_of(outcome)
                rows.append(answer.placed(task, 1, 0.0, at, None))
    return rows
