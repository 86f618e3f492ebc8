"""Compares answers up to their natural end, past position 256, and in a batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from engine.models.adapter import Adapter
from engine.pipeline import batch_run
from engine.types import DecodeConfig, RunResult
from engine.verify import equality
from engine.verify.answer_paths import RecordedAnswer, Subject
from engine.verify.equality import Pieces
from engine.verify.verdict import CheckFinding, judged

PAST = 256  # tokens; the default limit of an ordinary run
LONG = 272  # tokens of the forced long answer


def forced(subject: Subject, length: int = 0) -> DecodeConfig:
    """Greedy with exactly `length` (default LONG) tokens, or fewer if the context is too short."""
    room = subject.adapter.context_limit - subject.prepared.context_tokens
    length = min(length or LONG, room)
    return replace(subject.greedy, max_new_tokens=length, min_new_tokens=length)


def long(
    plain: RecordedAnswer, others: Sequence[RecordedAnswer], rounding: float, pieces: Pieces
) -> CheckFinding:
    """Compares a forced answer; open if the context ends before its position 256."""
    found, worst = equality.finding(plain, others, rounding, pieces)
    length = len(plain.ids)
    reached = {"new_tokens": length, "positions": plain.context + length}
    sentence = f"Forced to {length:,} tokens. {worst.sentence}"
    found = replace(found, sentence=sentence, evidence={**found.evidence, **reached})
    if found.outcome in ("passed", "tie") and length <= PAST:
        sentence += f" The context is too short for an answer of more than {PAST} tokens."
        return replace(found, outcome="unresolved", sentence=sentence)
    return found


def ends(answers: Mapping[str, RecordedAnswer], eos_ids: Sequence[int]) -> CheckFinding:
    """Every way must end where plain does, with one end token; open if plain reaches its limit."""
    faults = [fault for answer in answers.values() for fault in ends_wrong(answer, eos_ids)]
    plain = answers["plain"]
    natural = bool(plain.ids) and plain.ids[-1] in eos_ids
    for way, answer in answers.items():
        if natural and (not answer.ids or answer.ids[-1] not in eos_ids):
            faults.append(f"{way}: the end token of plain's answer is missing.")
    evidence = {
        "natural_end": natural,
        "new_tokens": {way: len(answer.ids) for way, answer in answers.items()},
        "faults": faults,
    }
    found = judged(
        faults, f"All ways end after {len(plain.ids):,} tokens, with one end token.", "", evidence
    )
    if natural or faults:
        return found
    sentence = f"It does not end within {len(plain.ids):,} tokens, so its end is not covered."
    return replace(found, outcome="unresolved", sentence=sentence)


def ends_wrong(answer: RecordedAnswer, eos_ids: Sequence[int]) -> Iterator[str]:
    """Faults: an end token before the last one, or a stop reason that contradicts the ids."""
    if any(one in eos_ids for one in answer.ids[:-1]):
        yield f"{answer.way}: there is an end token before the last token."
    if answer.result is None or not answer.ids:
        return
    right = "eos" if answer.ids[-1] in eos_ids else "length"
    if answer.result.generation.stop != right:
        stop = answer.result.generation.stop
        yield f"{answer.way}: it reports a stop by {stop!r}, but stopped by {right!r}."


@dataclass(frozen=True, eq=False)
class Batched:
    """The answers of a batch, each with plain's answer to the same question."""

    rows: tuple[tuple[RecordedAnswer, RecordedAnswer], ...]  # (plain, the batch's row)
    results: tuple[RunResult, ...]


def batch(subjects: Sequence[Subject], plains: Sequence[RecordedAnswer], size: int) -> Batched:
    """Answers `size` requests together: the subjects in turn, with their known plain answers."""
    order = [place % len(subjects) for place in range(size)]
    requests = [subjects[i].run_request(subjects[i].greedy, "off") for i in order]
    adapter = subjects[0].adapter
    with _BatchScores(adapter) as seen:
        found = batch_run.run(adapter, requests, None)
    results = tuple(one for one in found if isinstance(one, RunResult))
    rows = []
    for row, result in enumerate(results):
        plain, ids = plains[order[row]], result.generation.token_ids
        logits = torch.stack([scores[row] for scores in seen.steps[: len(ids)]])
        rows.append((plain, replace(plain, way=f"row {row + 1}", ids=ids, logits=logits)))
    return Batched(tuple(rows), results)


class _BatchScores:
    """Records the head's scores [B, vocabulary] of every step inside a `with`."""

    def __init__(self, adapter: Adapter) -> None:
        self._head = adapter.decoder.head
        self.steps: list[torch.Tensor] = []

    def __enter__(self) -> _BatchScores:
        self._handle = self._head.register_forward_hook(self._see)
        return self

    def __exit__(self, *exc: object) -> None:
        self._handle.remove()

    def _see(self, module: Any, arguments: Any, out: torch.Tensor) -> None:
        self.steps.append(out.detach().to("cpu", torch.float32, copy=True))


def equal_batch(
    found: Batched, size: int, adapter: Adapter, rounding: float, pieces: Pieces
) -> CheckFinding:
    """Compares rows with plain; open if another dtype than float32 rounds a batch differently."""
    if len(found.results) < size:
        return CheckFinding(
            "failed", f"{len(found.results):,} of {size:,} rows of a batch answered."
        )
    compared = [
        (equality.compare(plain, row, 4 * rounding), plain, row) for plain, row in found.rows
    ]
    order = list(equality.OUTCOMES)
    worst, plain, row = max(compared, key=lambda one: order.index(one[0].result))
    evidence = equality.evidence(worst, plain, row, pieces) | {"size": size}
    outcome = equality.OUTCOMES[worst.result]
    sentence = f"A batch of {size:,}. {row.way}: {worst.sentence}"
    if outcome == "failed" and adapter.dtype != torch.float32:
        outcome, sentence = "unresolved", f"{sentence} Batches are not covered in this dtype."
    if faults := list(_batch_misreported(found)):
        outcome, sentence = "failed", faults[0]
    equal = worst.length if worst.position is None else worst.position
    return CheckFinding(outcome, sentence, equal, worst.length, "equal tokens", evidence)


def _batch_misreported(found: Batched) -> Iterator[str]:
    """Faults in what a batch reports besides its rows' ids."""
    tokens = sum(len(result.generation.token_ids) for result in found.results)
    for number, ((plain, _), result) in enumerate(zip(found.rows, found.results, strict=True), 1):
        if result.generation.prompt_tokens != plain.context:
            yield f"Row {number} reports a context that did not enter the language model."
        if result.batch is None:
            yield f"Row {number} does not report that it belongs to a batch."
        elif result.batch.tokens != tokens:
            yield f"The batch reports {result.batch.tokens:,} tokens, but its rows have {tokens:,}."
        elif result.generation.token_ms or result.spans:
            yield f"Row {number} of a batch has its own times, which a batch cannot have."
