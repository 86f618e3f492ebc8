"""Rules about where answers begin and end: token limits and missing first tokens.

Boundary: each rule yields its findings, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.analysis.number_text import count
from engine.published.audit.finding import CheckResult, name_of, share
from engine.published.read import answer_pairs, lengths
from engine.published.read.record_types import ResultFile

SAME_FROM = 3
SHIFT_GAIN = 2.0


def capped(file: ResultFile) -> Iterator[CheckResult]:
    """Many answers stop at the same maximum length without an end-of-text id."""
    cuts: dict[tuple[int, int, int, str], list[tuple[str, lengths.LengthCut]]] = {}
    for model in file.models:
        found = lengths.cut(file, model)
        if found:
            key = found.tokens, len(found.records), found.answers, found.named
            cuts.setdefault(key, []).append((model, found))
    for group in cuts.values():
        if len(group) >= SAME_FROM:
            yield _capped([model for model, _ in group], group[0][1], file, group)
        else:
            yield from (_capped([model], found, file, [(model, found)]) for model, found in group)


def _capped(
    names: list[str],
    cut: lengths.LengthCut,
    file: ResultFile,
    every: list[tuple[str, lengths.LengthCut]],
) -> CheckResult:
    at = f"{cut.tokens:,} tokens" + (f", the limit of {cut.named}," if cut.named else "")
    end = "without an end-of-text id" if cut.ended else "and the file has no ids to show an end"
    who = name_of(file, names[0])
    if len(names) > 1:
        who = f"{len(names)} models ({', '.join(names[:2])}, ...), each"
    return CheckResult(
        f"{who}: {share(len(cut.records), cut.answers, 'answer')} stop at {at} {end}. Their "
        "lengths and times depend on the limit, not on the model.",
        [record for _, found in every for record in found.records],
        {
            "tokens": float(cut.tokens),
            "answers": float(cut.answers),
            "share": len(cut.records) / cut.answers,
        },
        model=names[0] if len(names) == 1 else "",
    )


def first_token_missing(file: ResultFile) -> Iterator[CheckResult]:
    """Texts begin inside a sentence, or a draft matches the target better from its second id."""
    for model in file.models:
        records = [record for record in file.of(model) if record.text and record.text.strip()]
        found = [record for record in records if _begins_inside(str(record.text).strip())]
        if len(found) >= max(3, 0.8 * len(records)) and not file.own:
            yield CheckResult(
                f"{name_of(file, model)}: {share(len(found), len(records), 'answer')} begin in "
                f"the middle of a sentence ({str(found[0].text).strip()[:24]!r}): the first token "
                "is missing.",
                found,
                {"answers": float(len(found))},
                model=model,
            )
    yield from _shifted(file)


def _begins_inside(text: str) -> bool:
    """The text begins in lower case and later sentences begin with capitals."""
    later = [part.lstrip()[:1] for part in text.split(". ")[1:]]
    return text[0].islower() and any(letter.isupper() for letter in later)


def _shifted(file: ResultFile) -> Iterator[CheckResult]:
    for model in file.models:
        if model not in ("adapter", "adapted"):
            continue
        plain, later = (
            sum(
                pair.matched
                for pair in answer_pairs.pairs_of(file, model, file.target, shift=shift)
            )
            for shift in (0, 1)
        )
        if later > SHIFT_GAIN * max(plain, 1):
            yield CheckResult(
                f"{name_of(file, model)}: its ids match the target {count(later, 'time')} from the "
                f"target's second id and {count(plain, 'time')} from the first: its first token is "
                "missing.",
                file.of(model),
                {"matched": float(plain), "matched_shifted": float(later)},
                "The shifted comparison is shown beside the plain one.",
                model,
            )
