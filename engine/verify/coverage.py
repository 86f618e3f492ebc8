"""What a verification covers, and what of a result it does not cover.

Boundary: findings and results in, plain data out; no torch and no files.  Coverage is computed from
a certificate's verdicts, so it includes only what the checks compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.storage.schemas import PASSED
from engine.types import RunResult


@dataclass(frozen=True)
class Coverage:
    """What one model's verification compared with the model's own generate().

    new_tokens: the longest answer; positions: prompt and answer together; natural_end: an answer
    was compared up to its end token; batch: the largest batch; pictures: numbers of pictures in a
    prompt; frames: the frame rules, for video models.
    """

    new_tokens: int = 0
    positions: int = 0
    natural_end: bool = False
    sampling: bool = False
    prefix: bool = False
    batch: int = 1
    pictures: tuple[int, ...] = ()
    frames: tuple[str, ...] = ()

    def sentence(self) -> str:
        """The coverage in one sentence, for the certificate."""
        ends = "an answer to its natural end" if self.natural_end else "no answer to its end"
        parts = [
            f"answers of up to {self.new_tokens:,} tokens",
            f"contexts of up to {self.positions:,} positions",
            ends,
            "greedy and sampled tokens" if self.sampling else "greedy tokens",
            f"batches of up to {self.batch:,}" if self.batch > 1 else "no batches",
            "reused prefixes" if self.prefix else "no reused prefixes",
            f"prompts with {_numbers(self.pictures)} picture(s)",
        ]
        parts += [f"frame rules {', '.join(self.frames)}"] if self.frames else []
        return f"Covered: {'; '.join(parts)}."


def of(rows: Iterable[Mapping[str, Any]]) -> Coverage:
    """What the verdicts of one model cover; `rows`: verdicts as in certificates."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(str(row["check"]), []).append(row)
    answers = [_evidence(row) for row in found.get("answer", ()) if row["outcome"] in PASSED]
    long = [_evidence(row) for row in found.get("long", ()) if row["outcome"] in PASSED]
    batches = [_evidence(row) for row in found.get("equal_batch", ()) if row["outcome"] in PASSED]
    return Coverage(
        new_tokens=_most([*answers, *long], "new_tokens"),
        positions=_most([*answers, *long], "positions"),
        natural_end=_one_passed(found.get("ends", ())),
        sampling=_all_passed(found, "equal_sampled") and _all_passed(found, "settings"),
        prefix=_all_passed(found, "equal_prefix"),
        batch=max(1, _most(batches, "size")),
        pictures=tuple(sorted({_whole(one, "pictures") for one in answers} - {0})),
        frames=tuple(_frames(found.get("frames", ()))),
    )


def _evidence(row: Mapping[str, Any]) -> Mapping[str, Any]:
    found = row["evidence"]
    return found if isinstance(found, Mapping) else {}


def _whole(evidence: Mapping[str, Any], name: str) -> int:
    value = evidence.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _most(evidence: Iterable[Mapping[str, Any]], name: str) -> int:
    return max((_whole(one, name) for one in evidence), default=0)


def _one_passed(rows: Iterable[Mapping[str, Any]]) -> bool:
    return any(row["outcome"] in PASSED for row in rows)


def _all_passed(found: Mapping[str, list[Mapping[str, Any]]], check: str) -> bool:
    rows = found.get(check, [])
    return bool(rows) and all(row["outcome"] in (*PASSED, "skipped") for row in rows)


def _frames(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    seen: dict[str, None] = {}
    for row in rows:
        rules = _evidence(row).get("rules")
        if row["outcome"] in PASSED and isinstance(rules, list | tuple):
            seen |= dict.fromkeys(map(str, rules))
    yield from seen


def missing(cover: Coverage, result: RunResult) -> tuple[str, ...]:
    """What a result has that was not verified, e.g. "96 tokens (48 verified)"."""
    return tuple(_missing(cover, result))


def _missing(cover: Coverage, result: RunResult) -> Iterator[str]:
    request, answer = result.request, result.generation
    positions = answer.prompt_tokens + result.new_tokens
    if not request.decode.greedy and not cover.sampling:
        yield "sampling"
    if result.new_tokens > cover.new_tokens:
        yield f"{result.new_tokens:,} tokens ({cover.new_tokens:,} verified)"
    if positions > cover.positions:
        yield f"{positions:,} positions ({cover.positions:,} verified)"
    if answer.stop == "eos" and not cover.natural_end:
        yield "natural end"
    if result.batch is not None and result.batch.size > cover.batch:
        known = f"{cover.batch:,} verified" if cover.batch > 1 else "none verified"
        yield f"batch of {result.batch.size:,} ({known})"
    if result.prefix is not None and result.prefix.state == "reused" and not cover.prefix:
        yield "reused prefix"
    yield from _prompt(cover, result)


def _prompt(cover: Coverage, result: RunResult) -> Iterator[str]:
    """The parts about the prompt: its number of pictures, and the rule that chose them."""
    # Pictures of several sizes have an entry for each size.
    shown = sum(one.shape[0] for one in result.tensors if one.name == "images")
    if shown and shown not in cover.pictures:
        yield f"prompt with {shown:,} picture(s) ({_numbers(cover.pictures)} verified)"
    rule = result.request.frames
    if result.shown.endswith(f"({rule})") and rule not in cover.frames:
        yield f"frame rule {rule}"


def _numbers(values: Iterable[int]) -> str:
    return " or ".join(f"{value:,}" for value in values) or "none"
