"""What a verification covers and does not prove, and what of a result it does not cover.

Coverage is computed from a certificate's verdicts, so it includes only what the checks compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.quoting import count
from engine.storage.schemas import PASSED
from engine.types import FRAME_RULES, RunResult
from engine.verify.verdict import EVERY, SERVED, Verdict, checks_of

# The worst come first.
OUTCOMES = {"failed": "Failed", "unresolved": "Open", "skipped": "Cannot run",
    "refused": "Not offered", "tie": "Tie", "passed": "Passed"}  # fmt: skip
NAMED = 5  # missing checks that are listed by name

# Not checked, because all ways share it or because it lies outside this run.
ALWAYS = (
    "What all ways share: the prompt; files into pictures; vision tower and language model (for "
    "EventGPT, StageScope's implementation; projector, adaptor and pooling are recomputed).",
    "Answers for other samples, questions, dtypes, devices or libraries.",
    "Times and speeds in general: they hold for this machine at the time of each run.",
)
# What the code alone decides: the same on every machine, for every checkpoint.
BY_TESTS = (
    "Proved by the tests of this version, not here: frame rules, cache keys, damaged entries of "
    "the cache, the work of each stage, waits for the device, the arithmetic of all figures, and "
    "that a difference between two answers is found."
)
# The same of a server.
ALWAYS_SERVED = (
    "Answers to other questions, about other samples, or with other settings.",
    "What the server does tomorrow: it can change under its name.",
)


@dataclass(frozen=True)
class Coverage:
    """What one model's verification compared with the model's own generate().

    new_tokens: the longest answer; positions: prompt and answer together; natural_end: an answer
    was compared up to its end token; batch: the largest batch; pictures: numbers of pictures in a
    prompt; frames: the frame rules.
    """

    new_tokens: int = 0
    positions: int = 0
    natural_end: bool = False
    sampling: bool = False
    batch: int = 1
    pictures: tuple[int, ...] = ()
    frames: tuple[str, ...] = ()

    def sentence(self) -> str:
        ends = "an answer to its natural end" if self.natural_end else "no answer to its end"
        parts = [
            f"answers of up to {self.new_tokens:,} tokens",
            f"contexts of up to {self.positions:,} positions",
            ends,
            "greedy and sampled tokens" if self.sampling else "greedy tokens",
            f"batches of up to {self.batch:,}" if self.batch > 1 else "no batches",
            _pictures("prompts", self.pictures),
        ]
        by_tests = self.frames == FRAME_RULES
        parts += [f"frame rules {', '.join(self.frames)}"] if self.frames and not by_tests else []
        return f"Covered: {'; '.join(parts)}." + (f" {BY_TESTS}" if by_tests else "")


def of(verdicts: Sequence[Verdict]) -> Coverage:
    """What the verdicts of one model cover."""
    good: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.outcome in PASSED:
            good[verdict.check].append(verdict.evidence)
    sampled = {verdict.outcome for verdict in verdicts if verdict.check == "sampled"}
    answers = [*good["answer"], *good["long"], *good["same"]]
    lists = [one["rules"] for one in good["same"] if isinstance(one.get("rules"), list | tuple)]
    lists += [FRAME_RULES] if good["answer"] else []  # of a local model the tests prove them
    return Coverage(
        new_tokens=max(_whole(answers, "new_tokens")),
        positions=max(_whole(answers, "positions")),
        natural_end=bool(good["ends"]) or any(one.get("natural_end") for one in good["same"]),
        sampling=bool(sampled) and sampled <= {*PASSED, "skipped"},
        batch=max(1, *_whole(good["equal_batch"], "size")),
        pictures=tuple(sorted({*_whole(answers, "pictures")} - {0})),
        frames=tuple(dict.fromkeys(str(rule) for rules in lists for rule in rules)),
    )


def _whole(evidence: Iterable[Mapping[str, Any]], name: str) -> list[int]:
    """The whole numbers of this name, and 0."""
    return [0, *(one[name] for one in evidence if type(one.get(name)) is int)]


def unproved(rows: Sequence[Verdict], samples: Sequence[str]) -> list[str]:
    """What a model's verification on these samples does not prove: what failed, stayed open, cannot
    run, is not offered or was not done; and what no verification proves."""
    titles = {word: list[str]() for outcome, word in OUTCOMES.items() if outcome not in PASSED}
    found = Counter((OUTCOMES[row.outcome], row.title, row.sample != "") for row in rows)
    for (word, title, by_sample), n in found.items():
        if word in titles:
            where = f" on {n} of {len(samples)} samples" if by_sample and n < len(samples) else ""
            titles[word].append(title + where)
    titles["Not done on every sample"] = [EVERY[check].title for check in undone(rows, samples)]
    sentences = [
        f"{word}: {count(len(some), 'check') if len(some) > NAMED else '; '.join(some)}."
        for word, some in titles.items()
        if some
    ]
    return [*sentences, *(ALWAYS_SERVED if checks_of(rows) is SERVED else ALWAYS)]


def taken(rows: Iterable[Verdict], samples: Sequence[str]) -> tuple[str, ...]:
    """The samples that a model can run on."""
    left = {row.sample for row in rows if row.outcome == "skipped"}
    return tuple(sample for sample in samples if sample not in left)


def undone(rows: Sequence[Verdict], samples: Sequence[str]) -> list[str]:
    """Checks without a finding on some sample."""
    done, able = {(row.check, row.sample) for row in rows}, taken(rows, samples)
    return [
        check
        for check, row in checks_of(rows).items()
        if not all((check, sample) in done for sample in (("",) if row.once else able))
    ]


def missing(cover: Coverage, result: RunResult) -> Iterator[str]:
    """What a result has that was not verified, e.g. "96 tokens (48 verified)"."""
    request, answer = result.request, result.generation
    new_tokens = result.new_tokens or 0
    positions = (answer.prompt_tokens or 0) + new_tokens
    if not request.how.decode.greedy and not cover.sampling:
        yield "sampling"
    if new_tokens > cover.new_tokens:
        yield f"{new_tokens:,} tokens ({cover.new_tokens:,} verified)"
    if positions > cover.positions:
        yield f"{positions:,} positions ({cover.positions:,} verified)"
    if answer.stop == "eos" and not cover.natural_end:
        yield "natural end"
    if result.batch is not None and result.batch.size > cover.batch:
        known = f"{cover.batch:,} verified" if cover.batch > 1 else "none verified"
        yield f"batch of {result.batch.size:,} ({known})"
    # Pictures of several sizes have an entry for each size.
    shown = sum(one.shape[0] for one in result.tensors if one.name == "images")
    if shown and shown not in cover.pictures:
        yield f"{_pictures('prompt', [shown])} ({_numbers(cover.pictures)} verified)"
    rule = request.how.frames
    if result.shown.endswith(f"({rule})") and rule not in cover.frames:
        yield f"frame rule {rule}"


def _pictures(prompts: str, numbers: Sequence[int]) -> str:
    return f"{prompts} with {_numbers(numbers)} picture{'s' * (list(numbers) != [1])}"


def _numbers(values: Iterable[int]) -> str:
    return " or ".join(f"{value:,}" for value in values) or "none"
