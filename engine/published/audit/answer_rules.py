"""Rules about answers: which model gave them, from which input, whether they are usable, and what
was concluded from comparing them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from engine.published.audit.finding import (
    Findings,
    Values,
    each_model,
    each_record,
    finding,
    name_of,
    share,
    verb,
)
from engine.published.audit.token_rules import row_of
from engine.published.read import answer_pairs, answer_tokens, corrected
from engine.published.read.cells import quoted
from engine.published.read.record_types import NAMES, AnswerRecord, ResultFile
from engine.published.read.who_answered import EXPANSION, ONE_IMAGE
from engine.quoting import count

WINDOWS = {"llava": 4096, "video_llava": 4096}  # positions that the checkpoints were trained on
DISTINCT_FROM = 5
LEFT_OUT = (
    "Unusable values are left out. Sums and means that lack a value are called wrong only if no "
    "possible value explains them."
)
# kind of a problem -> what it is a problem of, and what it is, for one and for several
PROBLEMS = {
    "text": ("value", "is text instead of a number", "are text instead of numbers"),
    "finite": ("value", "is not a finite number", "are not finite numbers"),
    "negative": ("value", "is negative", "are negative"),
    "type": ("value", "is of the wrong type", "are of the wrong type"),
    "whole": ("value", "is not a whole number", "are not whole numbers"),
    "empty": ("row", "has no answer", "have no answer"),
    "model": ("further model", "is not read", "are not read"),
    "key": ("key", "is not read", "are not read"),
}
REPEATED, REPEATED_FROM = 0.8, 8
FEW_PAIRS = 5
FLAG = "output_matches"
_ESTIMATED = re.compile(r"estimated_acceptance(_rate)?$")


def label(file: ResultFile) -> Findings:
    for model, identity in file.identities.items():
        if identity.agrees is False and identity.family:
            yield finding(
                f"{identity.claimed} ({model}) has a wrong label: {identity.evidence}.",
                file.of(model),
                f"It is shown as {NAMES[identity.family]}.",
                model,
            )


@each_model
def one_image(file: ResultFile, model: str) -> Findings:
    """EventGPT's features come from one event image instead of five."""
    records = file.of(model)
    found = [record for record in records if record.context in ONE_IMAGE]
    contexts = {record.context for record in records}
    # if contexts and questions both differ, text or images may explain a context
    mixed = len(contexts) > 1 and len({record.question for record in records}) > 1
    if found and not mixed and file.identities[model].family == "eventgpt":
        tokens = found[0].context or 0
        of = "" if len(found) == len(records) else f" of {len(records):,}"
        yield finding(
            f"{len(found):,}{of} answer{'s' * (len(records) > 1)} "
            f"{verb(len(found), 'uses', 'use')} one event image "
            f"(a context of {tokens:,.0f}; five images give 582 visual tokens). These are not "
            "the model's features, so its answers cannot equal those of generate().",
            found,
            figures={"context": tokens},
        )


@each_record(
    "the context of {stated:,.0f} includes 2,048 visual tokens twice in {share}; the model read "
    "{corrected:,.0f}.",
    noun="record",
    correction="2,048 are subtracted.",
)
def doubled_context(file: ResultFile, record: AnswerRecord) -> Values | None:
    if not corrected.is_doubled(record.context, file.identities[record.model]):
        return None
    tokens = record.context or 0.0
    return {"stated": tokens, "corrected": tokens - EXPANSION}


@each_record(
    "a context of {context:,.0f} tokens is longer than the {window:,} positions that the model "
    "supports.",
    of=lambda file, model: file.of(model, corrected=True),
)
def beyond_window(file: ResultFile, record: AnswerRecord) -> Values | None:
    """A corrected context is longer than the model was trained on."""
    window = WINDOWS.get(file.identities[record.model].family or "")
    if not window or not record.context or record.context <= window:
        return None
    return {"context": record.context, "window": window}


def degenerate(file: ResultFile) -> Findings:
    found = [finding for check in (one_text, repeats, empty) for finding in check(file)]
    yield from sorted(found, key=lambda finding: file.models.index(finding.model))


@each_model
def one_text(file: ResultFile, model: str) -> Findings:
    """All samples get the same text."""
    answered = [record for record in file.of(model) if record.text and record.text.strip()]
    samples = {record.sample for record in answered}
    if len(samples) >= DISTINCT_FROM and len({record.text for record in answered}) == 1:
        text = str(answered[0].text).strip()[:40]
        yield finding(
            f"all {len(samples):,} samples get the same answer ({text!r}).",
            answered,
            figures={"distinct_texts": 1, "samples": len(samples)},
        )


@each_record("{share} {repeats|repeat} one token ({token}) and {is|are} not usable.")
def repeats(_file: ResultFile, record: AnswerRecord) -> Values | None:
    """One token is most of the answer."""
    text = (record.text or "").strip()
    items: Sequence[object] = (record.ids or ())[answer_tokens.prompt_ids(record.ids) :]
    if len(items) < REPEATED_FROM:
        items = text.split()
    if len(items) < REPEATED_FROM:
        return None
    if Counter(items).most_common(1)[0][1] < REPEATED * len(items):
        return None
    most = Counter(record.ids or ("unknown",)).most_common(1)[0][0]
    return {"token": repr(text[:24]) if text else f"id {most}"}


@each_record("{share} {is|are} empty; {its|their} times are not those of a real answer.")
def empty(_file: ResultFile, record: AnswerRecord) -> Values | None:
    return {} if record.text is not None and not record.text.strip() else None


def failures(file: ResultFile) -> Findings:
    """Failed samples, which are in no mean; several errors may name one sample."""
    answered = {record.sample for record in file.records}
    lost = [failure for failure in file.failures if failure.sample not in answered]
    if lost:
        number = len({failure.sample for failure in lost})
        tried = file.samples + number
        failed = share(number, tried, "sample")
        if file.status == "failed":
            text = f"{failed[0].upper()}{failed[1:]} failed; the file has no figures"
        else:
            text = f"{failed} failed and {verb(number, 'is', 'are')} not in the means"
        message = f"{text}. First message: {lost[0].message}."
        yield finding(message, lost, figures={"failed": number, "tried": tried})
    kept = [failure for failure in file.failures if failure.sample in answered]
    if kept:
        number = len({failure.sample for failure in kept})
        yield finding(
            f"{count(len(kept), 'error')} {verb(len(kept), 'names', 'name')} "
            f"{count(number, 'sample')} that still {verb(number, 'has', 'have')} a result, "
            f"which is in the means. First message: {kept[0].message}.",
            kept,
            figures={"errors": len(kept), "samples": number},
        )


def unusable(file: ResultFile) -> Findings:
    """Unusable values: text for numbers, NaN, Infinity, negative times, wrong types."""
    for kind, (noun, *words) in PROBLEMS.items():
        found = [problem for problem in file.problems if problem.kind == kind]
        if found:
            which = "" if len(found) == 1 else "the first: "
            yield finding(
                f"{count(len(found), noun)} {verb(len(found), *words)} "
                f"({which}{found[0].path}, {found[0].message}).",
                found,
                LEFT_OUT if kind not in ("model", "key") else "",
                figures={"values": len(found)},
            )


@each_model
def duplicates(file: ResultFile, model: str) -> Findings:
    """A sample and question appears more than once."""
    records = file.of(model)
    counts = Counter(record.key for record in records)
    found = [record for record in records if counts[record.key] > 1]
    if found:
        yield finding(
            f"{len(found):,} records share their sample and question with another record "
            f"({found[0].sample[:40]!r} appears {counts[found[0].key]:,} times). Pairs of answers "
            "use the first record, means use all.",
            found,
            figures={"records": len(found)},
        )


def one_sided(file: ResultFile) -> Findings:
    """Samples that only one of the two compared models answered."""
    both = (file.draft, file.target)
    for model, other in (both, reversed(both)) if all(both) else ():
        others = {record.key for record in file.of(other)}
        alone = {record.key: record for record in file.of(model) if record.key not in others}
        if alone:
            yield finding(
                f"{count(len(alone), 'sample')} {verb(len(alone), 'has', 'have')} an answer of "
                f"{name_of(file, model)} and none of {name_of(file, other)}: the means of "
                "the two models are over different samples.",
                alone.values(),
                model=model,
                figures={"samples": len(alone)},
            )


def estimates(file: ResultFile) -> Findings:
    """An acceptance that was estimated from words and lengths, or assumed: the same in each row."""
    assumed = [figure for figure in file.figures if _ESTIMATED.search(figure.name)]
    if len(assumed) >= FEW_PAIRS and len({figure.value for figure in assumed}) == 1:
        yield finding(
            f"The stated acceptance of {assumed[0].value:.1%} is the same number in all "
            f"{len(assumed):,} rows: it was assumed, not measured.",
            assumed,
            figures={"stated": assumed[0].value, "rows": len(assumed)},
        )
    claim = next((c for c in file.claims if c.path.endswith("acceptance_rate_avg")), None)
    parts = {figure.name.rsplit(".", 1)[-1] for figure in file.figures}
    if claim is None or not parts & {"word_overlap", "char_similarity"}:
        return
    found = answer_pairs.acceptance(file)
    ours = {"position_rate": found.rate.value} if found and found.rate else {}
    by_position = "the file has no token ids to compare"
    if ours:
        by_position = f"{ours['position_rate']:.1%} of the ids match by position"
    yield finding(
        f"The stated acceptance of {claim.stated:.1%} is computed from word overlap and text "
        f"similarity, not of tokens; {by_position}.",
        [claim],
        figures={"stated": claim.stated, **ours},
    )


def chance(file: ResultFile) -> Findings:
    """True pairs match no more often than pairs of different samples."""
    found = answer_pairs.acceptance(file) if file.draft else None
    if found is None or not found.rate or not found.shuffled or found.says_something is not False:
        return
    low, high = found.shuffled.interval or (found.shuffled.value, found.shuffled.value)
    few = f" (only {found.pairs} pairs)" if found.pairs < FEW_PAIRS else ""
    yield finding(
        f"{found.rate.value:.1%} of the ids match by position{few}, and "
        f"{found.shuffled.value:.1%} ({low:.1%} to {high:.1%}) match if the samples are shuffled. "
        "So the match says nothing about the images.",
        file.of(file.draft),
        figures={"position_rate": found.rate.value, "shuffled_rate": found.shuffled.value,
                 "shuffled_low": low, "shuffled_high": high},
    )  # fmt: skip


def _is_sampled(key: str, value: object) -> bool:
    name = key.rsplit(".", 1)[-1]
    if name == "do_sample":
        return value is True
    return name == "temperature" and isinstance(value, (int, float)) and value > 0


def equality(file: ResultFile) -> Findings:
    sampled = [key for key, value in file.config.items() if _is_sampled(key, value)]
    claims = [c for c in file.claims if re.search(r"match_rate|identical|same_output", c.path)]
    if sampled and claims:
        yield finding(
            f"{claims[0].path} compares outputs, but the run sampled (config.{sampled[0]} is "
            f"{quoted(file.config[sampled[0]])}): sampled outputs cannot show equality.",
            claims,
            figures={"stated": claims[0].stated},
        )


def lossless(file: ResultFile) -> Findings:
    """Speculative answers that differ from the target's own; greedy ones would be equal."""
    changed, compared, ways = {}, 0, 0  # changed: the different answers by way to draft
    for model in file.models:
        alone = {"sd": file.target}.get(model, "baseline")
        if model in (alone, file.draft) or alone not in file.models:
            continue
        pairs = answer_pairs.matched(file, model, alone, corrected=False)
        same = [(mine, equal) for mine, own in pairs if (equal := _same(mine, own)) is not None]
        compared, ways = compared + len(same), ways + bool(same)
        if different := [mine for mine, equal in same if not equal]:
            changed[model] = different
    if not changed:
        return
    every = [record for found in changed.values() for record in found]
    answers = share(len(every), compared, "answer")
    if ways == 1:
        answers += f" of {name_of(file, next(iter(changed)))}"
    else:
        counts = sorted({len(found) for found in changed.values()})
        span = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
        which = f"{len(changed)} of the " if len(changed) < ways else ""
        answers += f" ({span} in each of {which}{ways} ways to draft)"
    known = {key.rsplit(".", 1)[-1] for key in file.config} & {"do_sample", "temperature"}
    or_sampled = "" if known else ", unless the outputs were sampled; the settings do not say"
    yield finding(
        f"Speculation changed {answers}. Greedy speculation would keep the target's own"
        f"{or_sampled}.",
        every,
        model=next(iter(changed)) if len(changed) == 1 else "",
        figures={"different": len(every), "compared": compared, "ways": len(changed)},
    )


def flags(file: ResultFile) -> Findings:
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
        yield finding(
            f"{share(len(found), len(stated), 'row')} {verb(len(found), 'has', 'have')} an "
            f"{FLAG} flag that the answers contradict; the first is {'false' if same else 'true'}, "
            f"but its answers are {'identical' if same else 'different'}.",
            [flag for flag, _ in found],
            figures={"wrong": len(found), "rows": len(stated)},
        )


def _same(mine: AnswerRecord, own: AnswerRecord) -> bool | None:
    """By ids if both have them, otherwise by texts; None if neither can be compared."""
    if mine.ids is not None and own.ids is not None:
        return mine.ids == own.ids
    return None if mine.text is None or own.text is None else mine.text == own.text
