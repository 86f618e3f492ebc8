"""Rules about which model answered, from which input, and whether its answers are usable.

Boundary: each rule yields its findings, or nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from engine.analysis.number_text import count
from engine.published.audit.finding import CheckResult, name_of, share, verb
from engine.published.read import answer_tokens, corrected
from engine.published.read.record_types import NAMES, AnswerRecord, FailedSample, ResultFile
from engine.published.read.who_answered import ONE_IMAGE

WINDOWS = {"llava": 4096, "video_llava": 4096}  # positions that the checkpoints were trained on
DISTINCT_FROM = 5
LEFT_OUT = (
    "Unusable values are left out. Sums and means that lack a value are called wrong only if no "
    "possible value explains them."
)
REPEATED = 0.8
REPEATED_FROM = 8


def label(file: ResultFile) -> Iterator[CheckResult]:
    """The evidence contradicts the model label."""
    for model in file.models:
        identity = file.identities.get(model)
        if identity and identity.agrees is False and identity.family:
            yield CheckResult(
                f"{identity.claimed} ({model}) has a wrong label: {identity.evidence}.",
                file.of(model),
                {},
                f"It is shown as {NAMES.get(identity.family, identity.family)}."
                if not file.own
                else "",
                model,
            )


def one_image(file: ResultFile) -> Iterator[CheckResult]:
    """EventGPT's features come from one event image instead of five."""
    for model in file.models:
        identity = file.identities.get(model)
        records = file.of(model)
        found = [r for r in records if identity and identity.family == "eventgpt"
                 and _of_one_image(r, file)]  # fmt: skip
        if found and (file.own or not _mixed(records)):
            tokens = found[0].context or 0
            of = "" if len(found) == len(records) else f" of {len(records):,}"
            yield CheckResult(
                f"{name_of(file, model)}: {len(found):,}{of} answer{'s' * (len(records) > 1)} "
                f"{verb(len(found), 'uses', 'use')} one event image "
                f"(a context of {tokens:,.0f}; five images give 582 visual tokens). These are not "
                "the model's features, so its answers cannot equal those of generate().",
                found,
                {"context": float(tokens)},
                model=model,
            )


def _of_one_image(record: AnswerRecord, file: ResultFile) -> bool:
    if file.own:
        images, pixels = record.sizes.get("images"), record.sizes.get("pixels")
        return images is not None and pixels is not None and pixels < images
    return record.context in ONE_IMAGE


def _mixed(records: Sequence[AnswerRecord]) -> bool:
    """Whether contexts and questions both differ: then text or images may explain a context."""
    contexts = {record.context for record in records}
    return len(contexts) > 1 and len({record.question for record in records}) > 1


def doubled_context(file: ResultFile) -> Iterator[CheckResult]:
    """Visual tokens are counted twice in a context."""
    for model in file.models:
        identity = file.identities.get(model)
        found = [r for r in file.of(model) if corrected.is_doubled(r.context, identity)
                 and not (file.own and len(r.question.split()) > 500)]  # fmt: skip
        if found:
            tokens = found[0].context or 0.0
            yield CheckResult(
                f"{name_of(file, model)}: the context of {tokens:,.0f} includes 2,048 visual "
                f"tokens twice in {share(len(found), len(file.of(model)), 'record')}; the model "
                f"read {tokens - 2048:,.0f}.",
                found,
                {"stated": tokens, "corrected": tokens - 2048},
                "2,048 are subtracted.",
                model,
            )


def beyond_window(file: ResultFile) -> Iterator[CheckResult]:
    """A context is longer than the model was trained on."""
    for model in file.models:
        identity = file.identities.get(model)
        window = WINDOWS.get(identity.family or "") if identity else None
        records = file.of(model, corrected=True)
        found = [r for r in records if window and r.context and r.context > window]
        if found and window:
            yield CheckResult(
                f"{name_of(file, model)}: a context of {found[0].context:,.0f} tokens is longer "
                f"than the {window:,} positions that the model supports.",
                found,
                {"context": float(found[0].context or 0), "window": float(window)},
                model=model,
            )


def degenerate(file: ResultFile) -> Iterator[CheckResult]:
    """The same text for every sample, one token repeated, or no text."""
    for model in file.models:
        records = file.of(model)
        yield from _one_text(file, model, records)
        yield from _repeating(file, model, records)
        yield from _empty(file, model, records)


def _one_text(
    file: ResultFile, model: str, records: tuple[AnswerRecord, ...]
) -> Iterator[CheckResult]:
    answered = [record for record in records if record.text and record.text.strip()]
    samples = {record.sample for record in answered}
    if len(samples) >= DISTINCT_FROM and len({record.text for record in answered}) == 1:
        yield CheckResult(
            f"{name_of(file, model)}: all {len(samples):,} samples get the same answer "
            f"({str(answered[0].text).strip()[:40]!r}).",
            answered,
            {"distinct_texts": 1.0, "samples": float(len(samples))},
            model=model,
        )


def _repeating(
    file: ResultFile, model: str, records: tuple[AnswerRecord, ...]
) -> Iterator[CheckResult]:
    found = [record for record in records if _repeats(record)]
    if found:
        yield CheckResult(
            f"{name_of(file, model)}: {share(len(found), len(records), 'answer')} "
            f"{verb(len(found), 'repeats', 'repeat')} one token "
            f"({_shown(found[0])}) and {verb(len(found), 'is', 'are')} not usable.",
            found,
            {"answers": float(len(found))},
            model=model,
        )


def _shown(record: AnswerRecord) -> str:
    if record.text and record.text.strip():
        return repr(record.text.strip()[:24])
    return f"id {Counter(record.ids or ('unknown',)).most_common(1)[0][0]}"


def _repeats(record: AnswerRecord) -> bool:
    items: list[object] = list(record.ids or ())
    items = items[answer_tokens.prompt_ids(record.ids) :]
    if len(items) < REPEATED_FROM:
        items = list((record.text or "").split())
    if len(items) < REPEATED_FROM:
        return False
    return Counter(items).most_common(1)[0][1] >= REPEATED * len(items)


def _empty(
    file: ResultFile, model: str, records: tuple[AnswerRecord, ...]
) -> Iterator[CheckResult]:
    found = [record for record in records
             if record.text is not None and not record.text.strip() and not file.own]  # fmt: skip
    if found:
        yield CheckResult(
            f"{name_of(file, model)}: {share(len(found), len(records), 'answer')} "
            f"{verb(len(found), 'is', 'are')} empty; {verb(len(found), 'its', 'their')} times are "
            "not those of a real answer.",
            found,
            {"answers": float(len(found))},
            model=model,
        )


def failures(file: ResultFile) -> Iterator[CheckResult]:
    """Failed samples, which are in no mean."""
    if not file.failures or file.own:
        return
    answered = {record.sample for record in file.records}
    lost = [failure for failure in file.failures if failure.sample not in answered]
    if lost:
        yield _failed(file, lost)
    kept = [failure for failure in file.failures if failure.sample in answered]
    if kept:
        names = {failure.sample for failure in kept}
        yield CheckResult(
            f"{count(len(kept), 'error')} {verb(len(kept), 'names', 'name')} "
            f"{count(len(names), 'sample')} that still {verb(len(names), 'has', 'have')} a result, "
            f"which is in the means. First message: {kept[0].message}.",
            figures={"errors": float(len(kept)), "samples": float(len(names))},
            paths=tuple(failure.path for failure in kept),
        )


def _failed(file: ResultFile, lost: Sequence[FailedSample]) -> CheckResult:
    """The finding for samples without a result; several errors may name one sample."""
    count = len({failure.sample for failure in lost})
    tried = file.samples + count
    failed = share(count, tried, "sample")
    if file.status == "failed":
        text = f"{failed[0].upper()}{failed[1:]} failed; the file has no figures"
    else:
        text = f"{failed} failed and {verb(count, 'is', 'are')} not in the means"
    return CheckResult(
        f"{text}. First message: {lost[0].message}.",
        figures={"failed": float(count), "tried": float(tried)},
        paths=tuple(failure.path for failure in lost),
    )


def unusable(file: ResultFile) -> Iterator[CheckResult]:
    """Unusable values: text for numbers, NaN, Infinity, negative times, wrong types."""
    kinds = {
        "text": ("is text instead of a number", "are text instead of numbers"),
        "finite": ("is not a finite number", "are not finite numbers"),
        "negative": ("is negative", "are negative"),
        "type": ("is of the wrong type", "are of the wrong type"),
        "whole": ("is not a whole number", "are not whole numbers"),
        "empty": ("has no answer", "have no answer"),
        "model": ("is not read", "are not read"),
        "key": ("is not read", "are not read"),
    }
    nouns = {"empty": "row", "model": "further model", "key": "key"}
    for kind, words in kinds.items():
        found = [problem for problem in file.problems if problem.kind == kind]
        if found:
            which = "" if len(found) == 1 else "the first: "
            yield CheckResult(
                f"{count(len(found), nouns.get(kind, 'value'))} {verb(len(found), *words)} "
                f"({which}{found[0].path}, {found[0].message}).",
                figures={"values": float(len(found))},
                correction=LEFT_OUT if kind not in ("model", "key") else "",
                paths=tuple(problem.path for problem in found),
            )


def duplicates(file: ResultFile) -> Iterator[CheckResult]:
    """A sample and question appears more than once."""
    if file.own:
        return  # repeated runs of a sample are how a spread is measured
    for model in file.models:
        records = file.of(model)
        counts = Counter((record.sample, record.question) for record in records)
        found = [r for r in records if counts[r.sample, r.question] > 1]
        if found:
            times = counts[found[0].sample, found[0].question]
            yield CheckResult(
                f"{name_of(file, model)}: {len(found):,} records share their sample and question "
                f"with another record ({found[0].sample[:40]!r} appears {times:,} times). Pairs of "
                "answers use the first record, means use all.",
                found,
                {"records": float(len(found))},
                model=model,
            )


def one_sided(file: ResultFile) -> Iterator[CheckResult]:
    """Samples that only one of the two compared models answered."""
    if not (file.draft and file.target) or file.own:
        return
    sides = [{(r.sample, r.question): r for r in file.of(m)} for m in (file.draft, file.target)]
    for (mine, other), names in (
        (sides, (file.draft, file.target)),
        (sides[::-1], (file.target, file.draft)),
    ):
        alone = [record for key, record in mine.items() if key not in other]
        if alone:
            yield CheckResult(
                f"{count(len(alone), 'sample')} {verb(len(alone), 'has', 'have')} an answer of "
                f"{name_of(file, names[0])} and none of {name_of(file, names[1])}: the means of "
                "the two models are over different samples.",
                alone,
                {"samples": float(len(alone))},
                model=names[0],
            )
