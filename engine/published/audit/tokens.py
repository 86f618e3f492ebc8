"""Checks of token counts and ids: prompts, missing and begin-of-text ids, limits, acceptance."""

from __future__ import annotations

from collections.abc import Sequence

from engine.analysis.acceptance import Pair
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
    share,
)
from engine.published.read import answer_pairs, answer_tokens, lengths
from engine.published.read.answer_tokens import SLICE
from engine.published.read.cells import is_number
from engine.published.read.file_reading import COUNTS
from engine.published.read.record_types import BOS, AnswerRecord, ResultFile
from engine.quoting import count

BOS_SHARE = 0.9
MATCHED, COMPARED = "acceptance.matched_tokens", "acceptance.total_tokens"
SAME_FROM = 3  # models
SHIFT_GAIN = 2.0
SLACK = 0.005  # of a rate: files round it to two digits
# what a row calls its rate, its matches and its comparisons
NAMES = (
    ("acceptance.acceptance_rate", MATCHED, COMPARED),
    ("acceptance.rate", "acceptance.matched", "acceptance.compared"),
    ("acceptance_rate", "accepted_tokens", "total_compared"),
    ("acceptance_rate", "matched_tokens", "compared_tokens"),
    ("acceptance_rate", "matched_tokens", "total_tokens"),
    ("acceptance_rate", "total_matches", "total_tokens"),
)


def _without_prompt(file: ResultFile, model: str) -> list[AnswerRecord]:
    records = file.of(model)
    prompted = any(answer_tokens.prompt_ids(record.ids) for record in records)
    return [answer_tokens.stripped(record, prompted) for record in records]


@of_model
def sliced(file: ResultFile, model: str) -> Hits:
    """Answers with fewer tokens than words."""
    records = _without_prompt(file, model)
    short = [record for record in records if answer_tokens.is_sliced(record)]
    if not short:
        return
    worst = min(short, key=lambda record: record.tokens or 0.0)
    tokens, words = worst.tokens or 0.0, answer_tokens.words(worst)
    stated = any(worst.sizes.get(key) == tokens for key in COUNTS)
    text = {"states": "states" if stated else "has", "text": count(words, "word")}
    text |= {"shown": count(int(tokens), "token"), "added": _added(file, model, short)}
    compared = ""
    every = answer_pairs.variants(file)
    main, complete = every.get("main"), every.get("without_sliced")
    if model == file.draft and main and main.rate:
        compared = f" and are compared as recorded: {main.rate.value:.1%} of the ids match by "
        compared += "position; without these answers no pair is left"
        if complete and complete.rate:
            rest = f"{complete.rate.value:.1%} in the {count(complete.pairs, 'pair')} without them"
            compared = compared.replace("; without these answers no pair is left", f", {rest}")
    yield hit(short, len(records), tokens=tokens, words=words, compared=compared, **text)


def _added(file: ResultFile, model: str, short: Sequence[AnswerRecord]) -> str:
    """What was added to the counts, and why nothing to some of them."""
    added = f"{SLICE} tokens, the number that these scripts cut off, were added to each such count"
    lost = {r.path for r in file.of(model, True) if "sliced" in r.marks and r.tokens is None}
    left = sum(record.path in lost for record in short)
    if not left:
        return added
    some = f"{added} except {left:,}" if left < len(short) else "Nothing was added"
    return f"{some}: the number of missing ids is unknown, so such counts are left out"


@of_model
def prompt_counted(file: ResultFile, model: str) -> Hits:
    """The ids of an answer begin with the prompt."""
    both = zip(file.of(model), _without_prompt(file, model), strict=True)
    pairs = [(record, new) for record, new in both if answer_tokens.prompt_ids(record.ids)]
    if pairs:
        recorded, new = zip(*pairs, strict=True)
        most = max(answer_tokens.prompt_ids(record.ids) for record in recorded)
        until = ""
        if any(answer_tokens.is_open(record.ids) for record in recorded):
            until = ', up to the last image placeholder (no "ASSISTANT:" marks the start of the '
            until += "answer),"
        figures = {"tokens_recorded": _mean(recorded), "tokens_corrected": _mean(new)}
        yield hit(recorded, len(file.of(model)), prompt_ids=most, until=until, **figures)


def _mean(records: Sequence[AnswerRecord]) -> float:
    counts = [record.tokens for record in records if record.tokens is not None]
    return sum(counts) / len(counts) if counts else 0.0


@of_record(of=_without_prompt, most="tokens")
def beyond_limit(file: ResultFile, record: AnswerRecord) -> Values | None:
    """An answer has more new tokens than the limit (without a prompt, which has its own rule)."""
    limits = [file.config.get(key) for key in ("max_new_tokens", "max_tokens")]
    limit = record.sizes.get("max_new_tokens", next(filter(is_number, limits), 0.0))
    if not isinstance(limit, (int, float)) or not limit or (record.tokens or 0.0) <= limit:
        return None
    new = " new" if "prompt" in record.marks else ""
    return {"tokens": record.tokens or 0.0, "max_new_tokens": limit, "new": new}


@of_record()
def uncounted(_file: ResultFile, record: AnswerRecord) -> Values | None:
    if record.ids is None or record.tokens is None or len(record.ids) == record.tokens:
        return None
    return {"stated": record.tokens, "ids": len(record.ids)}


@of_record(of=lambda file, model: [record for record in file.of(model) if record.ids])
def begins_with_bos(_file: ResultFile, record: AnswerRecord) -> Values | None:
    """An answer begins with the begin-of-text id, which every pair matches."""
    begins = record.ids and record.ids[0] == BOS and not answer_tokens.prompt_ids(record.ids)
    return {"first_id": BOS} if begins else None


@of_file
def bos_matched(file: ResultFile) -> Hits:
    """The matched tokens are one more per sample than the ids give.

    Rows are matched by place, not by sample name: a sample may appear twice.
    """
    stated, compared = by_row(file, MATCHED), by_row(file, COMPARED)
    drafts, targets = (
        {row_of(r.path): r.ids for r in file.of(model, True) if r.ids is not None}
        for model in (file.draft, file.target)
    )
    rows = stated.keys() & compared.keys() & drafts.keys() & targets.keys()
    real = {row: Pair(row, drafts[row], targets[row]).matched for row in rows}
    counted = sum(stated[row].value == real[row] + 1 for row in rows)
    matched, places = (sum(some[row].value for row in rows) for some in (stated, compared))
    if not counted or counted < BOS_SHARE * len(rows) or places <= len(rows):
        return
    ours, left = answer_pairs.acceptance(file), places - counted
    words = {"compared": f"{places:,.0f}", "left": f"{left:,.0f}", "where": "every sample"}
    if counted < len(rows):
        words["where"] = share(counted, len(rows), "sample")
    words["other"], position_rate = "", 0.0
    if ours and ours.rate:
        position_rate = ours.rate.value
        if ours.compared != left:  # the tables of acceptance divide by another number
            both = f"{ours.compared:,} where both answers have an id"
            words["other"] = f", {position_rate:.1%} of the {both}"
    without = sum(real.values())
    rates = {"stated_rate": matched / places, "rate_without_bos": without / left}
    counts = {"stated_matched": matched, "matched": without, "samples": len(rows)}
    rates |= {"position_rate": position_rate, "samples_with_bos": counted}
    yield hit(stated.values(), **counts, **rates, **words)


@of_file
def capped(file: ResultFile) -> Hits:
    """Many answers stop at the same maximum length without an end-of-text id."""
    groups: dict[tuple[object, ...], dict[str, lengths.LengthCut]] = {}
    for model in file.models:
        if cut := lengths.cut(file, model):
            key = cut.tokens, len(cut.records), cut.answers, cut.named
            groups.setdefault(key, {})[model] = cut
    for cuts in groups.values():
        alike = [[*cuts]] if len(cuts) >= SAME_FROM else [[model] for model in cuts]
        for first, *others in alike:
            cut, records = cuts[first], [r for m in (first, *others) for r in cuts[m].records]
            who, model = name_of(file, first), first
            if others:
                who = f"{1 + len(others)} models ({first}, {others[0]}, ...), each"
                model = ""
            unseen = "and the file has no ids to show an end"
            words = {"who": who, "end": "without an end-of-text id" if cut.ended else unseen}
            words["stopped"] = share(len(cut.records), cut.answers, "answer")
            words["limit"] = f", the limit of {cut.named}," if cut.named else ""
            figures = {"answers": cut.answers, "share": len(cut.records) / cut.answers}
            yield hit(records, 0, model, tokens=cut.tokens, **figures, **words)


@of_record(
    of=lambda file, model: [r for r in file.of(model) if r.text and r.text.strip()],
    least=lambda records: max(3, 0.8 * records),
)
def begins_inside(_file: ResultFile, record: AnswerRecord) -> Values | None:
    """The text begins in lower case and later sentences begin with capitals."""
    text = (record.text or "").strip()
    later = [part.lstrip()[:1] for part in text.split(". ")[1:]]
    inside = text[:1].islower() and any(letter.isupper() for letter in later)
    return {"text": repr(text[:24])} if inside else None


@of_model
def shifted(file: ResultFile, model: str) -> Hits:
    """An adapter's draft matches the target better from its second id."""
    if model in ("adapter", "adapted"):
        plain, later = (
            sum(pair.matched for pair in answer_pairs.pairs_of(file, model, file.target, way))
            for way in ("", "shifted")
        )
        if later > SHIFT_GAIN * max(plain, 1):
            yield hit(file.of(model), matched=plain, matched_shifted=later)


@of_file
def acceptance_rows(file: ResultFile) -> Hits:
    """A row's rate is not matches / comparisons, or its matches do not follow from its ids."""
    for names in NAMES:
        rates, matches, compared = (by_row(file, name) for name in names)
        rows = [row for row in rates if row in matches and row in compared]
        if rows:
            break
    possible, wrong = _possible(file) if rows else {}, {}
    for row in rows:
        rate, matched, places = (some[row].value for some in (rates, matches, compared))
        right = matched / places if places > 0 else rate
        if abs(rate - right) > SLACK:
            of = f"{matched:,.0f} of {places:,.0f}"
            wrong[row] = f"states {rate:.1%} for {of}, which is {right:.1%}"
        elif row in possible and matched not in possible[row]:
            most = max(possible[row]) - 1  # the highest count includes the begin-of-text id
            wrong[row] = f"counts {matched:,.0f} matches, but its ids give {most:,}"
    if wrong:
        row, why = next(iter(wrong.items()))
        figures = {"stated_rate": rates[row].value, "matched": matches[row].value}
        figures |= {"compared": compared[row].value, "rows": len(wrong)}
        yield hit((rates[one] for one in wrong), len(rows), why=why, **figures)


def _possible(file: ResultFile) -> dict[str, set[int]]:
    """By row, the match counts that its ids allow: by position or as a prefix, with or without the
    prompt, and one more for a begin-of-text id (which has its own rule).  Rows without ids are
    left out."""
    counts: dict[str, set[int]] = {}
    cut = {record.path for record in file.corrected if "sliced" in record.marks}
    for draft in answer_pairs.drafts(file):
        for corrected in (False, True):
            for mine, other in answer_pairs.matched(file, draft, file.target, corrected):
                if mine.ids and other.ids and not cut & {mine.path, other.path}:
                    pair = Pair(mine.sample, mine.ids, other.ids)
                    for number in (pair.matched, pair.prefix):
                        counts.setdefault(row_of(mine.path), set()).update({number, number + 1})
    return counts
