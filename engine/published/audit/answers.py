"""Checks of answers and token counts: which model gave them, from which input, whether they are
whole, and what was concluded from comparing them.  rules.toml says what each one looks for."""

import re
from collections import Counter
from collections.abc import Sequence

from engine.analysis.acceptance import Pair
from engine.published.audit.findings import (
    Hits,
    Values,
    hit,
    name_of,
    of_file,
    of_model,
    of_record,
    share,
)
from engine.published.read import answer_pairs, corrected
from engine.published.read.cells import is_number, quoted
from engine.published.read.corrected import SLICE
from engine.published.read.file_reading import COUNTS
from engine.published.read.file_summary import average
from engine.published.read.record_types import BOS, NAMES, AnswerRecord, ResultFile
from engine.published.read.who_answered import EXPANSION, ONE_IMAGE
from engine.quoting import count

WINDOWS = {"llava": 4096, "video_llava": 4096}  # positions that the checkpoints were trained on
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
}
REPEATED, REPEATED_FROM = 0.8, 8
FEW_PAIRS = 5
MATCHED, COMPARED = "acceptance.matched_tokens", "acceptance.total_tokens"
SLACK = 0.005  # of a rate: files round it to two digits
# what a row calls its rate, its matches and its comparisons
RATES = (
    ("acceptance.acceptance_rate", MATCHED, COMPARED),
    ("acceptance.rate", "acceptance.matched", "acceptance.compared"),
    ("acceptance_rate", "accepted_tokens", "total_compared"),
    ("acceptance_rate", "matched_tokens", "compared_tokens"),
    ("acceptance_rate", "matched_tokens", "total_tokens"),
    ("acceptance_rate", "total_matches", "total_tokens"),
)


@of_model
def label(file: ResultFile, model: str) -> Hits:
    identity = file.identities[model]
    if identity.agrees is False and identity.family:
        yield hit(file.of(model), evidence=identity.evidence, shown=NAMES[identity.family])


@of_model
def one_image(file: ResultFile, model: str) -> Hits:
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
    window = WINDOWS.get(file.identities[record.model].family or "")
    if not window or not record.context or record.context <= window:
        return None
    return {"context": record.context, "window": window}


def _with_text(file: ResultFile, model: str) -> list[AnswerRecord]:
    return [record for record in file.of(model) if record.text and record.text.strip()]


@of_model
def same_text(file: ResultFile, model: str) -> Hits:
    answered = _with_text(file, model)
    samples = len({record.sample for record in answered})
    if samples >= 5 and len({record.text for record in answered}) == 1:
        text = str(answered[0].text).strip()[:40]
        yield hit(answered, distinct_texts=1, samples=samples, text=text)


@of_record()
def repeats(_file: ResultFile, record: AnswerRecord) -> Values | None:
    text = (record.text or "").strip()
    items: Sequence[object] = (record.ids or ())[corrected.prompt_ids(record.ids) :]
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
        samples, first = len({failure.sample for failure in errors}), errors[0].message
        named = count(samples, "sample")
        yield hit(errors, errors=len(errors), samples=samples, named=named, first=first)


@of_file
def unusable(file: ResultFile) -> Hits:
    for kind, (noun, what) in PROBLEMS.items():
        if some := [problem for problem in file.problems if problem.kind == kind]:
            things, done = count(len(some), noun), LEFT_OUT if noun in ("value", "row") else ""
            yield hit(some, values=len(some), things=things, what=what, first=some[0], done=done)


@of_model
def duplicates(file: ResultFile, model: str) -> Hits:
    counts = Counter(record.key for record in file.of(model))
    if some := [record for record in file.of(model) if counts[record.key] > 1]:
        times = f"{counts[some[0].key]:,}"
        yield hit(some, records=len(some), first=some[0].sample[:40], times=times)


@of_model
def one_sided(file: ResultFile, model: str) -> Hits:
    if model in (file.draft, file.target) and file.draft and file.target:
        other = file.draft if model == file.target else file.target
        others = {record.key for record in file.of(other)}
        alone = {record.key: record for record in file.of(model) if record.key not in others}
        if alone:
            yield hit(alone.values(), samples=len(alone), other=name_of(file, other))


@of_file
def assumed(file: ResultFile) -> Hits:
    ends = ("estimated_acceptance", "estimated_acceptance_rate")
    figures = [figure for figure in file.figures if figure.name.endswith(ends)]
    if len(figures) >= FEW_PAIRS and len({figure.value for figure in figures}) == 1:
        yield hit(figures, stated=figures[0].value, rows=len(figures))


@of_file
def estimated(file: ResultFile) -> Hits:
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
    ours = answer_pairs.acceptance(file) if file.draft else None
    if ours and ours.rate and ours.shuffled and ours.says_something is False:
        low, high = ours.shuffled.interval or (ours.shuffled.value, ours.shuffled.value)
        figures = {"position_rate": ours.rate.value, "shuffled_rate": ours.shuffled.value}
        figures |= {"shuffled_low": low, "shuffled_high": high}
        few = f" (only {ours.pairs} pairs)" if ours.pairs < FEW_PAIRS else ""
        yield hit(file.of(file.draft), few=few, **figures)


@of_file
def equality(file: ResultFile) -> Hits:
    claims = [c for c in file.claims if re.search(r"match_rate|identical|same_output", c.path)]
    for key, value in file.config.items():
        name = key.rsplit(".", 1)[-1]
        warm = name == "temperature" and isinstance(value, (int, float)) and value > 0
        if claims and (warm or (name == "do_sample" and value is True)):
            claim, value = claims[0], quoted(value)
            yield hit(claims, stated=claim.stated, path=claim.path, key=key, value=value)
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
    stated = file.by_row("output_matches")
    wrong = []
    for mine, own in answer_pairs.matched(file, "sd", file.target, corrected=False):
        flag, same = stated.get(mine.row), _same(mine, own)
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


def _without_prompt(file: ResultFile, model: str) -> list[AnswerRecord]:
    records = file.of(model)
    prompted = any(corrected.prompt_ids(record.ids) for record in records)
    return [corrected.stripped(record, prompted) for record in records]


@of_model
def sliced(file: ResultFile, model: str) -> Hits:
    records = _without_prompt(file, model)
    short = [record for record in records if corrected.is_sliced(record)]
    if not short:
        return
    worst = min(short, key=lambda record: record.tokens or 0.0)
    tokens, words = worst.tokens or 0.0, corrected.words(worst)
    stated = any(worst.sizes.get(key) == tokens for key in COUNTS)
    text = {"states": "states" if stated else "has", "text": count(words, "word")}
    added = f"{SLICE} tokens, the number that these scripts cut off, were added to each such count"
    lost = {r.path for r in file.of(model, True) if "sliced" in r.marks and r.tokens is None}
    if left := sum(record.path in lost for record in short):
        some = f"{added} except {left:,}" if left < len(short) else "Nothing was added"
        added = f"{some}: the number of missing ids is unknown, so such counts are left out"
    text |= {"shown": count(int(tokens), "token"), "added": added, "compared": ""}
    every = answer_pairs.variants(file)
    main, whole = every.get("main"), every.get("without_sliced")
    if model == file.draft and main and main.rate:
        rest = "; without these answers no pair is left"
        if whole and whole.rate:
            rest = f", {whole.rate.value:.1%} in the {count(whole.pairs, 'pair')} without them"
        match = f"{main.rate.value:.1%} of the ids match by position"
        text["compared"] = f" and are compared as recorded: {match}{rest}"
    yield hit(short, len(records), tokens=tokens, words=words, **text)


@of_model
def prompt_counted(file: ResultFile, model: str) -> Hits:
    both = zip(file.of(model), _without_prompt(file, model), strict=True)
    pairs = [(record, new) for record, new in both if corrected.prompt_ids(record.ids)]
    if pairs:
        recorded, new = zip(*pairs, strict=True)
        prompts = [(one.ids or ())[: corrected.prompt_ids(one.ids)] for one in recorded]
        until = ""
        if any(ids[-len(corrected.ASSISTANT) :] != corrected.ASSISTANT for ids in prompts):
            until = ', up to the last image placeholder (no "ASSISTANT:" marks the start of the '
            until += "answer),"
        before, after = (average(r.tokens for r in some)["mean"] or 0.0 for some in (recorded, new))
        figures = {"tokens_recorded": before, "tokens_corrected": after}
        longest = max(map(len, prompts))
        yield hit(recorded, len(file.of(model)), prompt_ids=longest, until=until, **figures)


@of_record(of=_without_prompt, most="tokens")
def beyond_limit(file: ResultFile, record: AnswerRecord) -> Values | None:
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
    begins = record.ids and record.ids[0] == BOS and not corrected.prompt_ids(record.ids)
    return {"first_id": BOS} if begins else None


@of_file
def bos_matched(file: ResultFile) -> Hits:
    """The matched tokens are one more per sample than the ids give.  Rows are matched by place, not
    by sample name: a sample may appear twice."""
    stated, compared = file.by_row(MATCHED), file.by_row(COMPARED)
    drafts, targets = (
        {r.row: r.ids for r in file.of(model, True) if r.ids is not None}
        for model in (file.draft, file.target)
    )
    rows = stated.keys() & compared.keys() & drafts.keys() & targets.keys()
    real = {row: Pair(row, drafts[row], targets[row]).matched for row in rows}
    counted = sum(stated[row].value == real[row] + 1 for row in rows)
    matched, places = (sum(some[row].value for row in rows) for some in (stated, compared))
    if not counted or counted < 0.9 * len(rows) or places <= len(rows):
        return
    ours, left, other = answer_pairs.acceptance(file), places - counted, ""
    where = share(counted, len(rows), "sample") if counted < len(rows) else "every sample"
    rate = ours.rate.value if ours and ours.rate else 0.0
    if ours and ours.compared != left:  # the tables of acceptance divide by another number
        other = f", {rate:.1%} of the {ours.compared:,} where both answers have an id"
    without = sum(real.values())
    figures = {"stated_matched": matched, "matched": without, "samples": len(rows)}
    figures |= {"stated_rate": matched / places, "rate_without_bos": without / left}
    figures |= {"position_rate": rate, "samples_with_bos": counted, "stated_positions": places}
    yield hit(stated.values(), left=f"{left:,.0f}", where=where, other=other, **figures)


@of_file
def capped(file: ResultFile) -> Hits:
    groups: dict[tuple[object, ...], dict[str, answer_pairs.LengthCut]] = {}
    for model in file.models:
        if cut := answer_pairs.cut(file, model):
            key = cut.tokens, len(cut.records), cut.answers, cut.named
            groups.setdefault(key, {})[model] = cut
    for cuts in groups.values():
        alike = [[*cuts]] if len(cuts) >= 3 else [[model] for model in cuts]
        for first, *others in alike:
            cut, records = cuts[first], [r for m in (first, *others) for r in cuts[m].records]
            who, unseen = name_of(file, first), "and the file has no ids to show an end"
            if others:
                who = f"{1 + len(others)} models ({first}, {others[0]}, ...), each"
            words = {"who": who, "end": "without an end-of-text id" if cut.ended else unseen}
            words["stopped"] = share(len(cut.records), cut.answers, "answer")
            words["limit"] = f", the limit of {cut.named}," if cut.named else ""
            figures = {"answers": cut.answers, "share": len(cut.records) / cut.answers}
            yield hit(records, 0, "" if others else first, tokens=cut.tokens, **figures, **words)


@of_record(of=_with_text, least=lambda records: max(3, 0.8 * records))
def begins_inside(_file: ResultFile, record: AnswerRecord) -> Values | None:
    """The text begins in lower case and later sentences begin with capitals."""
    text = (record.text or "").strip()
    later = [part.lstrip()[:1] for part in text.split(". ")[1:]]
    inside = text[:1].islower() and any(letter.isupper() for letter in later)
    return {"text": repr(text[:24])} if inside else None


@of_model
def shifted(file: ResultFile, model: str) -> Hits:
    if model in ("adapter", "adapted"):
        plain, later = (
            sum(pair.matched for pair in answer_pairs.pairs_of(file, model, file.target, way))
            for way in ("", "shifted")
        )
        if later > 2 * max(plain, 1):
            yield hit(file.of(model), matched=plain, matched_shifted=later)


@of_file
def acceptance_rows(file: ResultFile) -> Hits:
    for names in RATES:
        rates, matches, compared = (file.by_row(name) for name in names)
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
    """By row with ids, the match counts that they allow: by position or as a prefix, with or
    without the prompt, and one more for a begin-of-text id, which has its own rule."""
    counts: dict[str, set[int]] = {}
    cut = {record.path for record in file.corrected if "sliced" in record.marks}
    for draft in answer_pairs.drafts(file):
        for mended in (False, True):
            for mine, other in answer_pairs.matched(file, draft, file.target, mended):
                if mine.ids and other.ids and not cut & {mine.path, other.path}:
                    pair = Pair(mine.sample, mine.ids, other.ids)
                    for number in (pair.matched, pair.prefix):
                        counts.setdefault(mine.row, set()).update({number, number + 1})
    return counts
