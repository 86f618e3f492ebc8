"""Checks of answers: which model gave them, from which input, whether they are usable, and what
was concluded from comparing them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from engine.published.audit.findings import (
    Hits,
    Values,
    by_row,
    hit,
    name_of,
    of_file,
    of_model,
    of_record,
    row_of,
)
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
# kind of a problem -> what is affected, what is wrong with it
PROBLEMS = {
    "text": ("value", "text instead of a number"),
    "finite": ("value", "not finite"),
    "negative": ("value", "negative"),
    "type": ("value", "of the wrong type"),
    "whole": ("value", "not whole"),
    "empty": ("row", "without an answer"),
    "model": ("further model", "not read"),
    "key": ("key", "not read"),
}
REPEATED, REPEATED_FROM = 0.8, 8
FEW_PAIRS = 5


@of_model
def label(file: ResultFile, model: str) -> Hits:
    identity = file.identities[model]
    if identity.agrees is False and identity.family:
        yield hit(file.of(model), evidence=identity.evidence, shown=NAMES[identity.family])


@of_model
def one_image(file: ResultFile, model: str) -> Hits:
    """EventGPT's features come from one event image instead of five."""
    records = file.of(model)
    single = [record for record in records if record.context in ONE_IMAGE]
    contexts = {record.context for record in records}
    # if contexts and questions both differ, text or images may explain a context
    mixed = len(contexts) > 1 and len({record.question for record in records}) > 1
    if single and not mixed and file.identities[model].family == "eventgpt":
        yield hit(single, len(records), context=single[0].context or 0)


@of_record()
def doubled_context(file: ResultFile, record: AnswerRecord) -> Values | None:
    if not corrected.is_doubled(record.context, file.identities[record.model]):
        return None
    tokens = record.context or 0.0
    return {"stated": tokens, "corrected": tokens - EXPANSION}


@of_record(of=lambda file, model: file.of(model, corrected=True))
def beyond_window(file: ResultFile, record: AnswerRecord) -> Values | None:
    """A corrected context is longer than the model was trained on."""
    window = WINDOWS.get(file.identities[record.model].family or "")
    if not window or not record.context or record.context <= window:
        return None
    return {"context": record.context, "window": window}


@of_model
def same_text(file: ResultFile, model: str) -> Hits:
    answered = [record for record in file.of(model) if record.text and record.text.strip()]
    samples = len({record.sample for record in answered})
    if samples >= DISTINCT_FROM and len({record.text for record in answered}) == 1:
        text = str(answered[0].text).strip()[:40]
        yield hit(answered, distinct_texts=1, samples=samples, text=text)


@of_record()
def repeats(_file: ResultFile, record: AnswerRecord) -> Values | None:
    """One token is most of the answer."""
    text = (record.text or "").strip()
    items: Sequence[object] = (record.ids or ())[answer_tokens.prompt_ids(record.ids) :]
    if len(items) < REPEATED_FROM:
        items = text.split()
    most = max(Counter(items).values(), default=0)
    if len(items) < REPEATED_FROM or most < REPEATED * len(items):
        return None
    usual = Counter(record.ids or ("unknown",)).most_common(1)[0][0]
    return {"token": repr(text[:24]) if text else f"id {usual}"}


@of_record()
def empty(_file: ResultFile, record: AnswerRecord) -> Values | None:
    return {} if record.text is not None and not record.text.strip() else None


@of_file
def lost(file: ResultFile) -> Hits:
    """Failed samples, which are in no mean; several errors may name one."""
    answered = {record.sample for record in file.records}
    errors = [failure for failure in file.failures if failure.sample not in answered]
    if errors:
        failed = len({failure.sample for failure in errors})
        yield hit(errors, failed=failed, tried=file.samples + failed, first=errors[0].message)


@of_file
def kept(file: ResultFile) -> Hits:
    answered = {record.sample for record in file.records}
    if errors := [failure for failure in file.failures if failure.sample in answered]:
        samples = len({failure.sample for failure in errors})
        words = {"named": count(samples, "sample"), "first": errors[0].message}
        yield hit(errors, errors=len(errors), samples=samples, **words)


@of_file
def unusable(file: ResultFile) -> Hits:
    """Unusable values: text for numbers, NaN, Infinity, negative times, wrong types."""
    for kind, (noun, what) in PROBLEMS.items():
        if some := [problem for problem in file.problems if problem.kind == kind]:
            words = {"things": count(len(some), noun), "what": what, "path": some[0].path}
            words |= {"which": "the first: " if some[1:] else "", "first": some[0].message}
            done = LEFT_OUT if kind not in ("model", "key") else ""
            yield hit(some, values=len(some), done=done, **words)


@of_model
def duplicates(file: ResultFile, model: str) -> Hits:
    """A sample and question appears more than once."""
    counts = Counter(record.key for record in file.of(model))
    if some := [record for record in file.of(model) if counts[record.key] > 1]:
        times = f"{counts[some[0].key]:,}"
        yield hit(some, records=len(some), first=some[0].sample[:40], times=times)


@of_model
def one_sided(file: ResultFile, model: str) -> Hits:
    """Samples that only this one of the two compared models answered."""
    if model in (file.draft, file.target) and file.draft and file.target:
        other = file.draft if model == file.target else file.target
        others = {record.key for record in file.of(other)}
        alone = {record.key: record for record in file.of(model) if record.key not in others}
        if alone:
            yield hit(alone.values(), samples=len(alone), other=name_of(file, other))


@of_file
def assumed(file: ResultFile) -> Hits:
    """An acceptance that is the same in each row."""
    ends = ("estimated_acceptance", "estimated_acceptance_rate")
    figures = [figure for figure in file.figures if figure.name.endswith(ends)]
    if len(figures) >= FEW_PAIRS and len({figure.value for figure in figures}) == 1:
        yield hit(figures, stated=figures[0].value, rows=len(figures))


@of_file
def estimated(file: ResultFile) -> Hits:
    """An acceptance that was estimated from words and lengths."""
    claims = [claim for claim in file.claims if claim.path.endswith("acceptance_rate_avg")][:1]
    parts = {figure.name.rsplit(".", 1)[-1] for figure in file.figures}
    if not claims or not parts & {"word_overlap", "char_similarity"}:
        return
    by_position, figures = "the file has no token ids to compare", {"stated": claims[0].stated}
    ours = answer_pairs.acceptance(file)
    if ours and ours.rate:
        figures["position_rate"] = ours.rate.value
        by_position = f"{ours.rate.value:.1%} of the ids match by position"
    yield hit(claims, by_position=by_position, **figures)


@of_file
def chance(file: ResultFile) -> Hits:
    """True pairs match no more often than pairs of different samples."""
    ours = answer_pairs.acceptance(file) if file.draft else None
    if ours and ours.rate and ours.shuffled and ours.says_something is False:
        low, high = ours.shuffled.interval or (ours.shuffled.value, ours.shuffled.value)
        figures = {"position_rate": ours.rate.value, "shuffled_rate": ours.shuffled.value}
        few = f" (only {ours.pairs} pairs)" if ours.pairs < FEW_PAIRS else ""
        yield hit(file.of(file.draft), shuffled_low=low, shuffled_high=high, few=few, **figures)


@of_file
def equality(file: ResultFile) -> Hits:
    """Outputs are compared although they were sampled."""
    claims = [c for c in file.claims if re.search(r"match_rate|identical|same_output", c.path)]
    for key, value in file.config.items():
        name = key.rsplit(".", 1)[-1]
        warm = name == "temperature" and isinstance(value, (int, float)) and value > 0
        if claims and (warm or (name == "do_sample" and value is True)):
            words = {"path": claims[0].path, "key": key, "value": quoted(value)}
            yield hit(claims, stated=claims[0].stated, **words)
            return


@of_file
def lossless(file: ResultFile) -> Hits:
    """Speculative answers that differ from the target's own; greedy ones would be equal."""
    same: dict[str, list[tuple[AnswerRecord, bool]]] = {}  # by way to draft
    for model in file.models:
        alone = file.target if model == "sd" else "baseline"
        if model not in (alone, file.draft) and alone in file.models:
            pairs = answer_pairs.matched(file, model, alone, corrected=False)
            judged = [(mine, equal) for mine, own in pairs
                      if (equal := _same(mine, own)) is not None]  # fmt: skip
            same |= {model: judged} if judged else {}
    changed = {model: [mine for mine, equal in some if not equal] for model, some in same.items()}
    wrong = [model for model, some in changed.items() if some]
    if not wrong:
        return
    of = f" of {name_of(file, wrong[0])}"
    if len(same) > 1:
        of = f", in {len(wrong)} of {len(same)} ways to draft"
    told = {key.rsplit(".", 1)[-1] for key in file.config} & {"do_sample", "temperature"}
    unless = "" if told else ", unless the outputs were sampled; the settings do not say"
    records = [record for some in changed.values() for record in some]
    every = sum(map(len, same.values()))
    figures = {"different": len(records), "compared": every, "ways": len(wrong)}
    model = wrong[0] if len(wrong) == 1 else ""
    yield hit(records, every, model, of=of, unless=unless, **figures)


@of_file
def flags(file: ResultFile) -> Hits:
    """A flag says that a speculative answer equals the target's own, or not; its ids disagree."""
    stated = by_row(file, "output_matches")
    wrong = []
    for mine, own in answer_pairs.matched(file, "sd", file.target, corrected=False):
        flag, same = stated.get(row_of(mine.path)), _same(mine, own)
        if flag is not None and same is not None and bool(flag.value) != same:
            wrong.append(flag)
    if wrong:
        true = bool(wrong[0].value)
        words = {"flag": str(true).lower(), "answers": "different" if true else "identical"}
        yield hit(wrong, len(stated), wrong=len(wrong), rows=len(stated), **words)


def _same(mine: AnswerRecord, own: AnswerRecord) -> bool | None:
    """By ids if both have them, otherwise by texts; None if neither can be compared."""
    if mine.ids is not None and own.ids is not None:
        return mine.ids == own.ids
    return None if mine.text is None or own.text is None else mine.text == own.text
