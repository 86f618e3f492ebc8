"""Rules about conclusions from answers: acceptance and equality.

Boundary: each rule yields its findings, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from engine.analysis.number_text import count
from engine.published.audit.accepted import row_of
from engine.published.audit.finding import CheckResult, name_of, share, verb
from engine.published.read import answer_pairs
from engine.published.read.cells import quoted
from engine.published.read.record_types import AnswerRecord, ResultFile, SampleFigure

FEW_PAIRS = 5
FLAG = "output_matches"
_ESTIMATED = re.compile(r"estimated_acceptance(_rate)?$")


def estimates(file: ResultFile) -> Iterator[CheckResult]:
    """An acceptance that was estimated from words and lengths, or assumed."""
    yield from _assumed(file)
    claim = next((c for c in file.claims if c.path.endswith("acceptance_rate_avg")), None)
    parts = [figure for figure in file.figures if _is_overlap(figure)]
    if claim is None or not parts:
        return
    found = answer_pairs.acceptance(file)
    ours = found.rate if found else None
    by_position = (
        f"; {ours.value:.1%} of the ids match by position"
        if ours
        else "; the file has no token ids to compare"
    )
    yield CheckResult(
        f"The stated acceptance of {claim.stated:.1%} is computed from word overlap and text "
        f"similarity, not of tokens{by_position}.",
        figures={"stated": claim.stated, **({"position_rate": ours.value} if ours else {})},
        paths=(claim.path,),
    )


def _assumed(file: ResultFile) -> Iterator[CheckResult]:
    """The same estimate in every row."""
    found = [figure for figure in file.figures if _ESTIMATED.search(figure.name)]
    if len(found) >= FEW_PAIRS and len({figure.value for figure in found}) == 1:
        yield CheckResult(
            f"The stated acceptance of {found[0].value:.1%} is the same number in all "
            f"{len(found):,} rows: it was assumed, not measured.",
            figures={"stated": found[0].value, "rows": float(len(found))},
            paths=tuple(figure.path for figure in found),
        )


def _is_overlap(figure: SampleFigure) -> bool:
    return figure.name.rsplit(".", 1)[-1] in ("word_overlap", "char_similarity")


def chance(file: ResultFile) -> Iterator[CheckResult]:
    """True pairs match no more often than pairs of different samples."""
    if file.own or not file.draft:
        return
    found = answer_pairs.acceptance(file)
    if found is None or not found.rate or not found.shuffled or found.says_something is not False:
        return
    low, high = found.shuffled.interval or (found.shuffled.value, found.shuffled.value)
    few = f" (only {found.pairs} pairs)" if found.pairs < FEW_PAIRS else ""
    yield CheckResult(
        f"{found.rate.value:.1%} of the ids match by position{few}, and "
        f"{found.shuffled.value:.1%} ({low:.1%} to {high:.1%}) match if the samples are shuffled. "
        "So the match says nothing about the images.",
        figures={
            "position_rate": found.rate.value,
            "shuffled_rate": found.shuffled.value,
            "shuffled_low": low,
            "shuffled_high": high,
        },
        paths=tuple(record.path for record in file.of(file.draft)),
    )


def equality(file: ResultFile) -> Iterator[CheckResult]:
    """Outputs are compared for equality although they were sampled."""
    if file.own:
        found = [r for r in file.records if "verified" in r.marks
                 and r.sizes.get("temperature", 0) > 0 and "seed" not in r.sizes]  # fmt: skip
        if found:
            yield CheckResult(
                f"{count(len(found), 'answer')} sampled without a seed cannot be verified.",
                found,
                {"temperature": found[0].sizes["temperature"]},
            )
        return
    sampled = [key for key, value in file.config.items() if _samples(key, value)]
    claims = [c for c in file.claims if re.search(r"match_rate|identical|same_output", c.path)]
    if sampled and claims:
        yield CheckResult(
            f"{claims[0].path} compares outputs, but the run sampled (config.{sampled[0]} is "
            f"{quoted(file.config[sampled[0]])}): sampled outputs cannot show equality.",
            figures={"stated": claims[0].stated},
            paths=tuple(claim.path for claim in claims),
        )


def lossless(file: ResultFile) -> Iterator[CheckResult]:
    """Speculative answers that differ from the target's own; greedy ones would be equal."""
    ways = [] if file.own else _ways(file)
    changed = [(model, found) for model, found, _ in ways if found]
    if not changed:
        return
    every = [record for _, found in changed for record in found]
    compared = sum(compared for _, _, compared in ways)
    changed_answers = share(len(every), compared, "answer")
    if len(ways) == 1:
        changed_answers += f" of {name_of(file, changed[0][0])}"
    else:
        counts = sorted({len(found) for _, found in changed})
        span = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
        which = f"{len(changed)} of the " if len(changed) < len(ways) else ""
        changed_answers += f" ({span} in each of {which}{len(ways)} ways to draft)"
    settings = {key.rsplit(".", 1)[-1] for key in file.config}
    known = settings & {"do_sample", "temperature"}
    or_sampled = "" if known else ", unless the outputs were sampled; the settings do not say"
    yield CheckResult(
        f"Speculation changed {changed_answers}. Greedy speculation would keep the target's own"
        f"{or_sampled}.",
        every,
        {"different": float(len(every)), "compared": float(compared), "ways": float(len(changed))},
        model=changed[0][0] if len(changed) == 1 else "",
    )


def flags(file: ResultFile) -> Iterator[CheckResult]:
    """A row's flag says that its speculative answer equals the target's own, or not; its ids show
    the opposite."""
    stated = {row_of(f.path): f for f in file.figures if f.name == FLAG}
    pairs = answer_pairs.matched(file, "sd", file.target, corrected=False) if stated else ()
    found = []
    for mine, own in pairs:
        same, flag = _same(mine, own), stated.get(row_of(mine.path))
        if flag is not None and same is not None and bool(flag.value) != same:
            found.append((flag, same))
    if found:
        same = found[0][1]
        yield CheckResult(
            f"{share(len(found), len(stated), 'row')} {verb(len(found), 'has', 'have')} an "
            f"{FLAG} flag that the answers contradict; the first is {'false' if same else 'true'}, "
            f"but its answers are {'identical' if same else 'different'}.",
            figures={"wrong": float(len(found)), "rows": float(len(stated))},
            paths=tuple(flag.path for flag, _ in found),
        )


def _ways(file: ResultFile) -> list[tuple[str, list[AnswerRecord], int]]:
    """(name, answers that differ from the target's own, answers compared) of each way to draft."""
    found = []
    for model in file.models:
        alone = {"sd": file.target}.get(model, "baseline")
        if model in (alone, file.draft) or alone not in file.models:
            continue
        pairs = answer_pairs.matched(file, model, alone, corrected=False)
        same = [(mine, equal) for mine, own in pairs if (equal := _same(mine, own)) is not None]
        if same:
            found.append((model, [mine for mine, equal in same if not equal], len(same)))
    return found


def _same(mine: AnswerRecord, own: AnswerRecord) -> bool | None:
    """By ids if both have them, otherwise by texts; None if neither can be compared."""
    if mine.ids is not None and own.ids is not None:
        return mine.ids == own.ids
    return None if mine.text is None or own.text is None else mine.text == own.text


def _samples(key: str, value: object) -> bool:
    name = key.rsplit(".", 1)[-1]
    if name == "do_sample":
        return value is True
    return name == "temperature" and isinstance(value, (int, float)) and value > 0
