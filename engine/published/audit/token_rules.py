"""Rules about token counts and ids: prompts, missing and begin-of-text ids, limits, acceptance."""

from __future__ import annotations

from collections.abc import Sequence

from engine.analysis.acceptance import Pair
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
from engine.published.read import answer_pairs, answer_tokens, lengths
from engine.published.read.answer_tokens import SLICE
from engine.published.read.file_reading import COUNTS
from engine.published.read.record_types import BOS, AnswerRecord, ResultFile, SampleFigure
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


def _sliced_correction(file: ResultFile, model: str, found: Sequence[AnswerRecord]) -> str:
    """What was corrected, and the acceptance with and without these answers."""
    text = f"{SLICE} tokens, the number that these scripts cut off, were added to each such count"
    lost = {r.path for r in file.of(model, True) if "sliced" in r.marks and r.tokens is None}
    if left := [record for record in found if record.path in lost]:
        why = "the number of missing ids is unknown"
        if answer_tokens.is_of_the_scripts(left[0], file.identities[model]):
            whole = count(int(left[0].tokens or 0) + SLICE, "token")
            words = count(answer_tokens.words(left[0]), "word")
            why = f"{SLICE} more, the number that these scripts cut off, would give {whole} for "
            why += words
        text = f"{text} except {len(left):,}" if len(left) < len(found) else "Nothing was added"
        text += f": {why}; such counts are left out"
    text += ". The ids cannot be restored"
    every = answer_pairs.variants(file)
    kept, complete = every.get("main"), every.get("without_sliced")
    if model != file.draft or kept is None or kept.rate is None:
        return f"{text}."
    text += f" and are compared as recorded: {kept.rate.value:.1%} of the ids match by position"
    if complete is None or complete.rate is None:
        return f"{text}. Without these answers no pair is left."
    pairs = count(complete.pairs, "pair")
    return f"{text}, {complete.rate.value:.1%} in the {pairs} without them."


@each_record(
    "{share} {lacks|lack} the first token ids; one {text}.",
    of=_without_prompt,
    worst=lambda values: -values["tokens"],
    correction=_sliced_correction,
)
def sliced(_file: ResultFile, record: AnswerRecord) -> Values | None:
    """An answer has fewer tokens than words."""
    if not answer_tokens.is_sliced(record):
        return None
    tokens, words = record.tokens or 0.0, answer_tokens.words(record)
    states = "states" if any(record.sizes.get(key) == tokens for key in COUNTS) else "has"
    text = f"{states} {count(int(tokens), 'token')} for a text of {count(words, 'word')}"
    return {"tokens": tokens, "words": words, "text": text}


@each_model
def prompt_counted(file: ResultFile, model: str) -> Findings:
    """The ids of an answer begin with the prompt."""
    records = file.of(model)
    found = [record for record in records if answer_tokens.prompt_ids(record.ids)]
    if not found:
        return
    most = max(answer_tokens.prompt_ids(record.ids) for record in found)
    paths = {record.path for record in found}
    means = []
    for every in (records, _without_prompt(file, model)):
        counts = [r.tokens for r in every if r.path in paths and r.tokens is not None]
        means.append(sum(counts) / len(counts) if counts else 0.0)
    where = ""
    if any(answer_tokens.is_open(record.ids) for record in found):
        where = (
            ', up to the last image placeholder (no "ASSISTANT:" marks the start of the answer),'
        )
    yield finding(
        f"the prompt is counted as output in {share(len(found), len(records), 'answer')}; "
        f"{means[0]:.1f} tokens on average, of which {means[1]:.1f} are new.",
        found,
        f"The first {most} ids{where} were removed.",
        figures={"prompt_ids": most, "tokens_recorded": means[0], "tokens_corrected": means[1]},
    )


@each_record(
    "{count} {has|have} more{new} tokens than the limit; one has {tokens:,.0f}, and the limit is "
    "{max_new_tokens:,.0f}.",
    of=_without_prompt,
    worst=lambda values: values["tokens"],
)
def beyond_limit(file: ResultFile, record: AnswerRecord) -> Values | None:
    """An answer has more new tokens than the limit (without a prompt, which has its own rule)."""
    limits = [file.config.get(key) for key in ("max_new_tokens", "max_tokens")]
    numbers = (float(limit) for limit in limits
               if isinstance(limit, (int, float)) and not isinstance(limit, bool))  # fmt: skip
    limit = record.sizes.get("max_new_tokens", next(numbers, 0.0))
    if not limit or record.tokens is None or record.tokens <= limit:
        return None
    new = " new" if "prompt" in record.marks else ""
    return {"tokens": record.tokens, "max_new_tokens": limit, "new": new}


@each_record(
    "{count} {states|state} a token count that is not the number of ids; the first states "
    "{stated:,.0f} and has {ids:,} ids."
)
def uncounted(_file: ResultFile, record: AnswerRecord) -> Values | None:
    if record.ids is None or record.tokens is None or len(record.ids) == record.tokens:
        return None
    return {"stated": record.tokens, "ids": len(record.ids)}


@each_record(
    "{share} {begins|begin} with the begin-of-text id, which the model did not generate.",
    of=lambda file, model: [record for record in file.of(model) if record.ids],
)
def begins_with_bos(_file: ResultFile, record: AnswerRecord) -> Values | None:
    """An answer begins with the begin-of-text id, which every pair matches."""
    begins = record.ids and record.ids[0] == BOS and not answer_tokens.prompt_ids(record.ids)
    return {"first_id": BOS} if begins else None


def bos_matched(file: ResultFile) -> Findings:
    """The matched tokens are one more per sample than the ids give.

    Rows are matched by place, not by sample name: a sample may appear twice.
    """
    named, totals = (
        {row_of(figure.path): figure.value for figure in file.figures if figure.name == name}
        for name in (MATCHED, COMPARED)
    )
    drafts, targets = (
        {row_of(r.path): r.ids for r in file.of(model, True) if r.ids is not None}
        for model in (file.draft, file.target)
    )
    rows = [
        (named[row], totals[row], Pair(row, drafts[row], targets[row]).matched)
        for row in named
        if row in totals and row in drafts and row in targets
    ]
    counted = sum(matched == real + 1 for matched, _, real in rows)
    stated, compared = sum(row[0] for row in rows), sum(row[1] for row in rows)
    if not counted or counted < BOS_SHARE * len(rows) or compared <= len(rows):
        return
    real, left = sum(row[2] for row in rows), compared - counted
    found = answer_pairs.acceptance(file)
    where = "every sample" if counted == len(rows) else share(counted, len(rows), "sample")
    yield finding(
        f"The token-level matches of the rows, {stated:,.0f} of {compared:,.0f} or "
        f"{stated / compared:.1%} in all, include the begin-of-text id of {where}. "
        f"Without it {real:,} match.",
        [figure for figure in file.figures if figure.name == MATCHED],
        f"The rate without it is {real / left:.1%}.",
        figures={
            "stated_matched": stated,
            "matched": real,
            "samples": len(rows),
            "samples_with_bos": counted,
            "stated_rate": stated / compared,
            "rate_without_bos": real / left,
            "position_rate": found.rate.value if found and found.rate else 0.0,
        },
    )


def capped(file: ResultFile) -> Findings:
    """Many answers stop at the same maximum length without an end-of-text id."""
    groups: dict[tuple[int, int, int, str], list[tuple[str, lengths.LengthCut]]] = {}
    for model in file.models:
        if found := lengths.cut(file, model):
            key = found.tokens, len(found.records), found.answers, found.named
            groups.setdefault(key, []).append((model, found))
    every = (
        some
        for group in groups.values()
        for some in ([group] if len(group) >= SAME_FROM else [[one] for one in group])
    )
    for cuts in every:
        (model, cut), alone = cuts[0], len(cuts) == 1
        models = ", ".join(name for name, _ in cuts[:2])
        who = name_of(file, model) if alone else f"{len(cuts)} models ({models}, ...), each"
        at = f"{cut.tokens:,} tokens" + (f", the limit of {cut.named}," if cut.named else "")
        end = "without an end-of-text id" if cut.ended else "and the file has no ids to show an end"
        stopped = len(cut.records)
        yield finding(
            f"{who}: {share(stopped, cut.answers, 'answer')} stop at {at} {end}. Their lengths and "
            "times depend on the limit, not on the model.",
            [record for _, one in cuts for record in one.records],
            model=model if alone else "",
            figures={"tokens": cut.tokens, "answers": cut.answers, "share": stopped / cut.answers},
        )


@each_record(
    "{share} begin in the middle of a sentence ({text}): the first token is missing.",
    of=lambda file, model: [r for r in file.of(model) if r.text and r.text.strip()],
    least=lambda records: max(3, 0.8 * records),
)
def begins_inside(_file: ResultFile, record: AnswerRecord) -> Values | None:
    """The text begins in lower case and later sentences begin with capitals."""
    text = (record.text or "").strip()
    later = [part.lstrip()[:1] for part in text.split(". ")[1:]]
    inside = text[:1].islower() and any(letter.isupper() for letter in later)
    return {"text": repr(text[:24])} if inside else None


@each_model
def shifted(file: ResultFile, model: str) -> Findings:
    """An adapter's draft matches the target better from its second id."""
    if model not in ("adapter", "adapted"):
        return
    plain, later = (
        sum(pair.matched for pair in answer_pairs.pairs_of(file, model, file.target, shift=by))
        for by in (0, 1)
    )
    if later > SHIFT_GAIN * max(plain, 1):
        yield finding(
            f"its ids match the target {count(later, 'time')} from the target's second id and "
            f"{count(plain, 'time')} from the first: its first token is missing.",
            file.of(model),
            "The shifted comparison is shown beside the plain one.",
            figures={"matched": plain, "matched_shifted": later},
        )


def first_token(file: ResultFile) -> Findings:
    yield from begins_inside(file)
    yield from shifted(file)


def acceptance_rows(file: ResultFile) -> Findings:
    """A row's rate is not matches / comparisons, or its matches do not follow from its ids."""
    by_name: dict[str, dict[str, SampleFigure]] = {}
    for figure in file.figures:
        by_name.setdefault(figure.name, {})[row_of(figure.path)] = figure
    for names in NAMES:
        rates, *counts = (by_name.get(name, {}) for name in names)
        every = {row: (rate, counts[0][row], counts[1][row]) for row, rate in rates.items()
                 if all(row in count for count in counts)}  # fmt: skip
        if every:
            break
    else:
        return
    possible = _possible(file)
    wrong = {}
    for row, (rate, matched, compared) in every.items():
        right = matched.value / compared.value if compared.value > 0 else None
        if right is not None and abs(rate.value - right) > SLACK:
            of = f"{matched.value:,.0f} of {compared.value:,.0f}"
            wrong[row] = f"states {rate.value:.1%} for {of}, which is {right:.1%}"
        elif row in possible and matched.value not in possible[row]:
            most = max(possible[row]) - 1  # the highest count includes the begin-of-text id
            wrong[row] = f"counts {matched.value:,.0f} matches, but its ids give {most:,}"
    if wrong:
        row = next(iter(wrong))
        rate, matched, compared = every[row]
        yield finding(
            f"{share(len(wrong), len(every), 'row')} {verb(len(wrong), 'states', 'state')} "
            f"an acceptance that contradicts {verb(len(wrong), 'its', 'their')} own counts or ids; "
            f"the first {wrong[row]}. The summary's acceptance is not checked against such rows.",
            [every[row][0] for row in wrong],
            figures={"rows": len(wrong), "stated_rate": rate.value,
                     "matched": matched.value, "compared": compared.value},
        )  # fmt: skip


def row_of(path: str) -> str:
    """ "results[3" for "results[3].eventgpt": the same for all values of one row."""
    return path.partition("]")[0]


def _possible(file: ResultFile) -> dict[str, set[int]]:
    """By row, the match counts that its ids allow: by position or as a prefix, with or without the
    prompt, and one more for a begin-of-text id (which has its own rule).  Rows without ids are
    left out."""
    found: dict[str, set[int]] = {}
    cut = {record.path for record in file.corrected if "sliced" in record.marks}
    for draft in answer_pairs.drafts(file):
        for corrected in (False, True):
            for mine, other in answer_pairs.matched(file, draft, file.target, corrected):
                if mine.ids and other.ids and not cut & {mine.path, other.path}:
                    pair = Pair(mine.sample, mine.ids, other.ids)
                    for number in (pair.matched, pair.prefix):
                        found.setdefault(row_of(mine.path), set()).update({number, number + 1})
    return found
