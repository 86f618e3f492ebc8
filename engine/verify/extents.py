"""Compares answers in batches and under other sampling settings.

A trained model's best token is often so likely that no sampling setting changes the answer.
Therefore a hook on the language model's head flattens the logits of every way, so that temperature,
top_p, seed and minimum length change the tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch

from engine.models.adapter import Adapter
from engine.pipeline import batch_run
from engine.types import DecodeConfig, RunResult
from engine.verify import checks
from engine.verify.answer_paths import RecordedAnswer, Subject
from engine.verify.checks import Pieces
from engine.verify.verdict import CheckFinding, judged

LONG = 272  # tokens of the forced long answer


def forced(subject: Subject) -> DecodeConfig:
    """Greedy with exactly LONG tokens, or fewer if the context is too short."""
    length = min(LONG, subject.adapter.context_limit - subject.prepared.context_tokens)
    return replace(subject.greedy, max_new_tokens=length, min_new_tokens=length)


def batch(
    subjects: Sequence[Subject],
    plains: Sequence[RecordedAnswer],
    size: int,
    rounding: float,
    pieces: Pieces,
) -> CheckFinding:
    """Answers `size` requests together, the subjects in turn, and compares with their plain
    answers; open if another dtype than float32 rounds a batch differently."""
    order = [place % len(subjects) for place in range(size)]
    requests = [subjects[i].run_request(subjects[i].greedy, "off") for i in order]
    adapter, steps = subjects[0].adapter, list[torch.Tensor]()  # scores [B, vocabulary] per step
    with adapter.decoder.head.register_forward_hook(
        lambda module, given, out: steps.append(out.detach().to("cpu", torch.float32, copy=True))
    ):
        rows = batch_run.run(adapter, requests, None)
    results = [row for row in rows if isinstance(row, RunResult)]
    if len(results) < size:
        return CheckFinding("failed", f"{len(results):,} of {size:,} rows of a batch answered.")
    pairs = []
    for row, result in enumerate(results):
        plain, ids = plains[order[row]], result.generation.token_ids
        logits = torch.stack([scores[row] for scores in steps[: len(ids)]])
        pairs.append((plain, replace(plain, way=f"row {row + 1}", ids=ids, logits=logits)))
    found, worst = checks.finding(pairs, 4 * rounding, pieces)
    sentence = f"A batch of {size:,}. {worst.way}: {worst.sentence}"
    found = replace(found, sentence=sentence, evidence={**found.evidence, "size": size})
    if faults := list(_batch_misreported([plain for plain, _ in pairs], results)):
        return replace(found, outcome="failed", sentence=faults[0])
    if found.outcome == "failed" and adapter.dtype != torch.float32:
        return found.opened("Batches are not covered in this dtype.")
    return found


def _batch_misreported(
    plains: Sequence[RecordedAnswer], results: Sequence[RunResult]
) -> Iterator[str]:
    """Faults in what a batch reports besides its rows' ids."""
    tokens = sum(len(result.generation.token_ids) for result in results)
    for number, (plain, result) in enumerate(zip(plains, results, strict=True), 1):
        if result.generation.prompt_tokens != plain.context:
            yield f"Row {number} reports a context that did not enter the language model."
        if result.batch is None:
            yield f"Row {number} does not report that it belongs to a batch."
        elif result.batch.tokens != tokens:
            yield f"The batch reports {result.batch.tokens:,} tokens, but its rows have {tokens:,}."
        elif result.generation.token_ms or result.spans:
            yield f"Row {number} of a batch has its own times, which a batch cannot have."


TOKENS = 8  # of the answers under other settings
RANGE = 3.0  # of the flattened logits, from their mean to their largest
SETTINGS: dict[str, dict[str, Any]] = {
    "sampled": {"temperature": 1.0, "seed": 11},
    "temperature": {"temperature": 0.4, "seed": 11},
    "top_p": {"temperature": 1.0, "top_p": 0.3, "seed": 11},
    "least top_p": {"temperature": 1.0, "top_p": 0.01, "seed": 11},  # of few tokens: leaves one
    "temperature and top_p": {"temperature": 2.5, "top_p": 0.8, "seed": 11},
    "seed": {"temperature": 1.0, "seed": 2**31 + 5},
}
# Used with logits that favour the end token.
ENDING: dict[str, dict[str, Any]] = {"end token": {}, "minimum length": {"min_new_tokens": 5}}
LogitsChange = Callable[[torch.Tensor], torch.Tensor]


@contextmanager
def changed(adapter: Adapter, change: LogitsChange) -> Iterator[None]:
    """Changes the head's logits in the eager and in the compiled step."""

    def compiled(module: Any, arguments: Any, out: tuple[torch.Tensor, Any]) -> tuple[Any, Any]:
        scores = change(out[0])
        return scores, scores.argmax(-1)

    step = adapter.use.compiled
    inner = step.register_forward_hook(compiled) if step is not None else nullcontext()
    with adapter.decoder.head.register_forward_hook(lambda *given: change(given[-1])), inner:
        yield


def flat(plain: RecordedAnswer) -> LogitsChange:
    """Scales logits so that the largest is RANGE above their mean."""
    height = float((plain.logits.max(dim=-1).values - plain.logits.mean(dim=-1)).mean())
    scale = RANGE / max(height, 1e-6)
    return lambda logits: logits * scale


def ending(plain: RecordedAnswer, eos_id: int) -> LogitsChange:
    lift = 2 * float(plain.logits.abs().max()) + 1
    return lambda logits: logits.index_fill(-1, torch.tensor(eos_id, device=logits.device), lift)


def sampled(
    subject: Subject,
    plain: RecordedAnswer,
    rounding: float,
    text: Callable[[Sequence[int]], str],
    doing: Callable[[str], None],
) -> CheckFinding:
    """All ways must give the tokens of generate() under every setting, and settings must change
    the tokens.

    Results must also report why they stopped, and the text that `text` gives for their ids.  Open
    if logits differ by rounding: one random number may then draw different tokens.
    """
    adapter, answers = subject.adapter, dict[str, tuple[int, ...]]()
    unequal, misreported, open_ = list[str](), list[str](), list[str]()
    favoured = ENDING if subject.backend == "eager" else {}  # a graph has its own minimum length
    flattened, ended = flat(plain), ending(plain, adapter.eos_ids[0])
    for name, values in {**SETTINGS, **favoured}.items():
        doing(f"sampling on flattened logits: {name}")
        config = replace(subject.greedy, max_new_tokens=TOKENS, **values)
        with changed(adapter, flattened if name in SETTINGS else ended):
            wanted = subject.plain(config)
            ways = [way for way in ("hooked", "decoupled", "features") if way in subject.ways]
            others = [getattr(subject, way)(config) for way in ways]
        answers[name] = wanted.ids
        for other in others:
            compared = checks.compare(wanted, other, rounding)
            if compared.result != "EXACT":
                close = 0 < compared.logit_difference <= rounding and name in SETTINGS
                kept = open_ if close else unequal
                kept.append(f"With another {name}, {other.way}: {compared.sentence}")
            wrong = (*checks.misreported(other, text), *checks.ends_wrong(other, adapter.eos_ids))
            misreported += [f"With another {name}: {fault}" for fault in wrong]
    open_ += [
        f"Another {name} does not change the tokens, so this was not compared."
        for name in SETTINGS
        if name != "sampled" and answers[name] == answers["sampled"]
    ]
    faults = unequal + misreported
    good = f"All ways give plain's tokens with {len(answers)} settings, on flattened logits."
    evidence = {"tokens": {name: list(ids) for name, ids in answers.items()}, "faults": faults}
    return judged(faults, good, "settings", evidence, open_)
