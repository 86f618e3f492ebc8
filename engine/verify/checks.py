"""Compares two answers token by token: exact, a tie within rounding, or a mismatch; and checks what
recorded answers show: greedy, counted, encodings, ends, batches, sampling, and what is left behind.
The comparison must itself find differences that are planted in a recorded answer."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal

import torch

from engine import quoting
from engine.models.adapter import Adapter
from engine.pipeline import batch_run
from engine.storage.result_rows import PASSED, Outcome
from engine.types import RunResult
from engine.verify.answer_paths import RecordedAnswer, Subject
from engine.verify.verdict import CheckFinding, judged

Result = Literal["EXACT", "NUMERIC TIE", "DRIFT", "MISMATCH"]
OUTCOMES: dict[Result, Outcome] = {
    "EXACT": "passed",
    "NUMERIC TIE": "tie",
    "DRIFT": "failed",
    "MISMATCH": "failed",
}
Pieces = Callable[[Sequence[int]], list[str]]
Pair = tuple[RecordedAnswer, RecordedAnswer]  # plain, and another way


@dataclass(frozen=True)
class AnswerComparison:
    """plain compared with another way; `position`: the first difference from 0, or None."""

    way: str
    result: Result
    length: int
    position: int | None
    logit_difference: float
    rounding: float

    @property
    def sentence(self) -> str:
        apart, noise = f"{self.logit_difference:.3g}", f"{self.rounding:.3g}"
        equal = f"{self.result}: all {self.length} tokens are equal"
        if self.result == "EXACT":
            return f"{equal}; logits differ by at most {apart}."
        if self.result == "DRIFT":
            why = f"logits differ by {apart}; rounding explains only {noise}"
            return f"{equal}, but {why}, so the computation is not the same."
        where = f"{self.result}: token {(self.position or 0) + 1} of {self.length} differs"
        tie = ", and both tokens are equally good" if self.result == "NUMERIC TIE" else ""
        return f"{where}{tie} (logits {apart} apart, rounding explains {noise})."


def compare(plain: RecordedAnswer, other: RecordedAnswer, rounding: float) -> AnswerComparison:
    """Compares two answers; in a tie both margins and the logits' difference are within rounding.
    Equal tokens are not enough.  If logits differ by more than twice the rounding, the computation
    is a different one and could give other tokens on another sample."""
    at = first_difference(plain.ids, other.ids)
    rows = slice(0, len(plain.ids)) if at is None else slice(at, at + 1)
    apart = _apart(plain, other, rows)
    result: Result = "EXACT" if apart <= 2 * rounding else "DRIFT"
    if at is not None:
        result = "NUMERIC TIE" if _tied(plain, other, at, apart, rounding) else "MISMATCH"
    return AnswerComparison(other.way, result, len(plain.ids), at, apart, rounding)


def first_difference(one: Sequence[int], two: Sequence[int]) -> int | None:
    """The first position where two lists of ids differ, or None; may be the end of the shorter."""
    ends = None if len(one) == len(two) else min(len(one), len(two))
    return next((at for at, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), ends)


def _apart(plain: RecordedAnswer, other: RecordedAnswer, rows: slice) -> float:
    """The largest difference of logits; infinite if one side has none."""
    one, two = plain.logits[rows], other.logits[rows]
    return float((one - two).abs().max()) if one.shape == two.shape and len(one) else inf


def _tied(
    plain: RecordedAnswer, other: RecordedAnswer, at: int, apart: float, rounding: float
) -> bool:
    if at >= min(len(plain.ids), len(other.ids)) or apart > rounding:
        return False
    a, b = plain.ids[at], other.ids[at]
    if plain.scores is not None:  # the tokens were not chosen by the raw logits
        return 0 <= float(plain.scores[at, a] - plain.scores[at, b]) <= rounding
    margins = (plain.logits[at, a] - plain.logits[at, b], other.logits[at, b] - other.logits[at, a])
    return all(0 <= float(margin) <= rounding for margin in margins)


def finding(pairs: Sequence[Pair], rounding: float, pieces: Pieces) -> CheckFinding:
    """The worst comparison of plain with another way, as a finding with evidence: both answers as
    tokens, and both sides' two best logits at the first difference."""
    compared = [(compare(*pair, rounding), *pair) for pair in pairs]
    worst, plain, other = max(compared, key=lambda row: list(OUTCOMES).index(row[0].result))
    at, embeddings = worst.position, None
    if plain.embeds.shape == other.embeds.shape and plain.embeds.numel():
        embeddings = float((plain.embeds.float() - other.embeds.float()).abs().max())
    sides: dict[str, dict[str, Any]] = {}
    for side, answer in (("plain", plain), ("other", other)):
        sides[side] = {"ids": list(answer.ids), "pieces": pieces(answer.ids)}
        if at is not None:
            best = zip(*answer.logits[at].topk(2), strict=True) if at < len(answer.logits) else ()
            two = [(int(i), float(v)) for v, i in best]
            sides[side]["best"] = [{"id": i, "piece": pieces([i])[0], "logit": v} for i, v in two]
    evidence = {
        "way": worst.way,
        "result": worst.result,
        "position": at,
        "logit_difference": None if worst.logit_difference == inf else worst.logit_difference,
        "rounding": worst.rounding,
        "first_embeddings_difference": embeddings,
        **sides,
    }
    shown = (worst.length if at is None else at, worst.length, "equal tokens", evidence)
    return CheckFinding(OUTCOMES[worst.result], worst.sentence, *shown)


PAST = 256  # tokens; the default limit of an ordinary run
LONG = 272  # tokens of the forced long answer, fewer if the context is too short


def long(pair: Pair, rounding: float, pieces: Pieces) -> CheckFinding:
    """Compares a forced answer; open if the context ends before its position 256."""
    found = finding([pair], rounding, pieces)
    plain, _ = pair
    length = len(plain.ids)
    reached = {"new_tokens": length, "positions": plain.context + length}
    sentence = f"Forced to {length:,} tokens. {found.sentence}"
    found = replace(found, sentence=sentence, evidence={**found.evidence, **reached})
    if found.outcome not in PASSED or length > PAST:
        return found
    return found.opened(f"The context is too short for an answer of more than {PAST} tokens.")


def not_the_best(answer: RecordedAnswer) -> list[int]:
    """Positions whose token does not have the highest logit of its step."""
    logits = answer.logits if answer.scores is None else answer.scores
    steps = min(len(answer.ids), len(logits))
    best = logits[:steps].max(dim=-1).values if steps else torch.empty(0)
    return [i for i in range(steps) if not logits[i, answer.ids[i]] >= best[i]]  # NaN too


def state(adapter: Adapter) -> dict[str, object]:
    """The state that inference must not change.  "weights": the sum of torch's in-place change
    counters of all parameters.  "generator": the state of torch's global random generator."""
    model = adapter.model
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return {
        "hooks": sum(len(getattr(module, kind)) for module in model.modules() for kind in kinds),
        "training": any(module.training for module in model.modules()),
        "weights": sum(weight._version for weight in model.parameters()),
        "generation_config": model.generation_config.to_json_string(),
        "generator": bytes(torch.get_rng_state().tolist()),
        "threads": torch.get_num_threads(),
    }


def greedy(answers: Iterable[RecordedAnswer]) -> CheckFinding:
    faults, wrong = [], {}
    for answer in answers:
        if places := not_the_best(answer):
            wrong[answer.way] = places
            tokens = f"{len(places)} of {len(answer.ids)} tokens"
            faults.append(f"{answer.way}: not the highest logit of its step at {tokens}.")
    good = "Every token of every way has the highest logit of its step."
    return judged(faults, good, "ways", {"positions": wrong})


def counted(ways: Iterable[RecordedAnswer], text: Callable[[Sequence[int]], str]) -> CheckFinding:
    """The result has exactly the tokens that the head computed; `text` decodes ids."""
    counts, faults, misquoted = {}, list[str](), list[str]()
    for answer in ways:
        computed, returned = len(answer.logits), len(answer.ids)
        counts[answer.way] = {"computed": computed, "returned": returned}
        if computed != returned:
            faults.append(f"{answer.way}: {computed} tokens were computed and {returned} returned.")
        misquoted += misreported(answer, text)
    good = (
        "Every way returns exactly the tokens that the language model's head computed, with their "
        "text and context."
    )
    return judged(faults + misquoted, good, "ways", {"counts": counts})


def misreported(answer: RecordedAnswer, text: Callable[[Sequence[int]], str]) -> Iterable[str]:
    """Faults in what a result reports besides its ids."""
    if answer.result is None:
        return
    generation = answer.result.generation
    if generation.text != text(answer.ids):
        yield f"{answer.way}: the text is not that of its tokens."
    if generation.prompt_tokens != answer.context:
        reported = f"it reports a context of {generation.prompt_tokens} tokens"
        yield f"{answer.way}: {reported}, but {answer.context} entered the language model."


def ends(answers: Mapping[str, RecordedAnswer], eos_ids: Sequence[int]) -> CheckFinding:
    """Every way must end where plain does, with one end token; open if plain reaches its limit."""
    faults = [fault for answer in answers.values() for fault in ends_wrong(answer, eos_ids)]
    length, natural = len(answers["plain"].ids), _ended(answers["plain"], eos_ids)
    faults += [
        f"{way}: the end token of plain's answer is missing."
        for way, answer in answers.items()
        if natural and not _ended(answer, eos_ids)
    ]
    counts = {way: len(answer.ids) for way, answer in answers.items()}
    evidence = {"natural_end": natural, "new_tokens": counts, "faults": faults}
    good = f"All ways end after {length:,} tokens, with one end token."
    endless = f"It does not end within {length:,} tokens, so its end is not covered."
    return judged(faults, good, "", evidence, () if natural else (endless,))


def _ended(answer: RecordedAnswer, eos_ids: Sequence[int]) -> bool:
    return bool(answer.ids) and answer.ids[-1] in eos_ids


def ends_wrong(answer: RecordedAnswer, eos_ids: Sequence[int]) -> Iterator[str]:
    """Faults: an end token before the last one, or a stop reason that contradicts the ids."""
    if any(token in eos_ids for token in answer.ids[:-1]):
        yield f"{answer.way}: there is an end token before the last token."
    if answer.result is None or not answer.ids:
        return
    right, stop = "eos" if _ended(answer, eos_ids) else "length", answer.result.generation.stop
    if stop != right:
        yield f"{answer.way}: it reports a stop by {stop!r}, but stopped by {right!r}."


def encoded_once(answers: Mapping[str, RecordedAnswer], subject: Subject) -> CheckFinding:
    plain, shown, units = answers["plain"], len(subject.media.images), subject.units()
    tower, *after = plain.seen
    faults = []
    if units is None and tower.pictures != shown:
        faults = [f"plain: the vision tower saw {tower.pictures} pictures, but {shown} are shown."]
    if units is not None and tower.pictures != units:
        faults = [f"plain: the vision tower saw {tower.pictures} tiles or patches, not {units}."]
    faults += [
        f"plain: {seen.module} ran {seen.calls} times, the tower {tower.calls}."
        for seen in after
        if seen.calls != tower.calls
    ]
    for way, answer in answers.items():
        if way in ("hooked", "computed") and answer.seen != plain.seen:
            faults.append(f"{way}: its calls of the vision modules differ from those of plain.")
        calls = sum(seen.calls for seen in answer.seen)
        if way in ("decoupled", "features") and calls:
            faults.append(f"{way}: {calls} calls of vision modules, though features were given.")
    once = f"plain, hooked and computed each encode {quoting.count(shown, 'picture')} once"
    good = f"{once}; with cached or given features nothing is encoded."
    by_way = {way: [vars(seen) for seen in answer.seen] for way, answer in answers.items()}
    return judged(faults, good, "ways", {"calls": by_way, "pictures": shown, "faults": faults})


def left_as_found(
    before: dict[str, object], after: dict[str, object], again: AnswerComparison
) -> CheckFinding:
    faults = [f"{name} has changed." for name in before if before[name] != after[name]]
    if again.result in ("DRIFT", "MISMATCH"):
        faults.append(f"plain gives another answer afterwards. {again.sentence}")
    good = "plain gives the same answer as before; no hook or changed setting remains."
    return judged(faults, good, "traces", {"faults": faults, "again": again.sentence})


def batch(
    subjects: Sequence[Subject], plains: Sequence[RecordedAnswer], size: int, rounding: float
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
    tokens = sum(len(result.generation.token_ids) for result in results)
    pairs, faults = list[Pair](), list[str]()
    for row, (place, result) in enumerate(zip(order, results, strict=True), 1):
        plain, ids = plains[place], result.generation.token_ids
        logits = torch.stack([scores[row - 1] for scores in steps[: len(ids)]])
        pairs.append((plain, replace(plain, way=f"row {row}", ids=ids, logits=logits)))
        if result.generation.prompt_tokens != plain.context:
            faults.append(f"Row {row} reports a context that did not enter the language model.")
        if result.batch is None:
            faults.append(f"Row {row} does not report that it belongs to a batch.")
        elif result.batch.tokens != tokens:
            reported = f"The batch reports {result.batch.tokens:,} tokens"
            faults.append(f"{reported}, but its rows have {tokens:,}.")
        elif result.generation.token_ms or result.spans:
            faults.append(f"Row {row} of a batch has its own times, which a batch cannot have.")
    found = finding(pairs, 4 * rounding, adapter.pieces)
    sentence = f"A batch of {size:,}. {found.evidence['way']}: {found.sentence}"
    found = replace(found, sentence=sentence, evidence={**found.evidence, "size": size})
    if faults:
        return replace(found, outcome="failed", sentence=faults[0])
    if found.outcome == "failed" and adapter.dtype != torch.float32:
        return found.opened("Batches are not covered in this dtype.")
    return found


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
    subject: Subject, plain: RecordedAnswer, rounding: float, doing: Callable[[str], None]
) -> CheckFinding:
    """All ways must give generate()'s tokens under every setting, and settings must change them.
    Results must also report why they stopped, and the text of their ids.  Open if logits differ by
    rounding: one random number may then draw different tokens."""
    adapter, answers = subject.adapter, dict[str, tuple[int, ...]]()
    unequal, misquoted, open_ = list[str](), list[str](), list[str]()
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
            compared = compare(wanted, other, rounding)
            if compared.result != "EXACT":
                close = 0 < compared.logit_difference <= rounding and name in SETTINGS
                kept = open_ if close else unequal
                kept.append(f"With another {name}, {other.way}: {compared.sentence}")
            wrong = (*misreported(other, subject.text), *ends_wrong(other, adapter.eos_ids))
            misquoted += [f"With another {name}: {fault}" for fault in wrong]
    open_ += [
        f"Another {name} does not change the tokens, so this was not compared."
        for name in SETTINGS
        if name != "sampled" and answers[name] == answers["sampled"]
    ]
    faults = unequal + misquoted
    good = f"All ways give plain's tokens with {len(answers)} settings, on flattened logits."
    evidence = {"tokens": {name: list(ids) for name, ids in answers.items()}, "faults": faults}
    return judged(faults, good, "settings", evidence, open_)
