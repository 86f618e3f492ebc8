"""Rules about token counts and ids: prompts, missing and begin-of-text ids, limits, acceptance."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from engine.analysis.acceptance import Pair
from engine.published.audit.finding import (
    AuditFinding,
    each_model,
    each_record,
    name_of,
    paths_of,
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
Values = Mapping[str, float | str]


def _without_prompt(file: ResultFile, model: str) -> list[AnswerRecord]:
    records = file.of(model)
    prompted = any(answer_tokens.prompt_ids(record.ids) for record in records)
    return [answer_tokens.stripped(record, prompted) for record in records]


def _sliced_correction(file: ResultFile, model: str, found: Sequence[AnswerRecord]) -> str:
    """What was corrected, and the acceptance with and without these answers."""
    text = f"{SLICE} tokens, the number that these scripts cut off, were added to each such count"
    lost = {r.path for r in file.of(model, True) if "sliced" in r.marks and r.tokens is None}
    left = [record for record in found if record.path in lost]
    if left:
        text = f"{text} except {len(left):,}" if len(left) < len(found) else "Nothing was added"
        text += f": {_why_uncorrected(left[0], file)}; such counts are left out"
    text += ". The ids cannot be restored"
    every = answer_pairs.variants(file)
    kept, whole = every.get("main"), every.get("without_sliced")
    if model != file.draft or kept is None or kept.rate is None:
        return f"{text}."
    text += f" and are compared as recorded: {kept.rate.value:.1%} of the ids match by position"
    if whole is None or whole.rate is None:
        return f"{text}. Without these answers no pair is left."
    return f"{text}, {whole.rate.value:.1%} in the {count(whole.pairs, 'pair')} without them."


def _why_uncorrected(record: AnswerRecord, file: ResultFile) -> str:
    """Why adding 60 would not correct this count."""
    if not answer_tokens.is_of_the_scripts(record, file.identities.get(record.model)):
        return "the number of missing ids is unknown"
    whole = count(int(record.tokens or 0) + SLICE, "token")
    words = count(answer_tokens.words(record), "word")
    return f"{SLICE} more, the number that these scripts cut off, would give {whole} for {words}"


@each_record(
    "{share} {lacks|lack} the first token ids; one {text}.",
    of=_without_prompt,
    worst=lambda values: -values["tokens"],
    correction=_sliced_correction,
)
def sliced(_file: ResultFile, record: AnswerRecord) -> Values | None:
    """An answer has fewer tokens than words: its first ids are missing."""
    if not answer_tokens.is_sliced(record):
        return None
    tokens, words = record.tokens or 0.0, answer_tokens.words(record)
    stated = any(record.sizes.get(key) == tokens for key in COUNTS)
    counted = f"{'states' if stated else 'has'} {count(int(tokens), 'token')}"
    return {"tokens": tokens, "words": words, "text": f"{counted} for a text of "
            f"{count(words, 'word')}"}  # fmt: skip


def prompt_counted(file: ResultFile, model: str) -> Iterator[AuditFinding]:
    """The ids of an answer begin with the prompt."""
    records = file.of(model)
    found = [record for record in records if answer_tokens.prompt_ids(record.ids)]
    if not found:
        return
    most = max(answer_tokens.prompt_ids(record.ids) for record in found)
    paths = set(paths_of(found))
    before, after = (
        _mean([r.tokens for r in some if r.path in paths and r.tokens is not None])
        for some in (records, _without_prompt(file, model))
    )
    where = ""
    if any(answer_tokens.is_open(record.ids) for record in found):
        where = (
            ', up to the last image placeholder (no "ASSISTANT:" marks the start of the answer),'
        )
    yield AuditFinding(
        f"the prompt is counted as output in {share(len(found), len(records), 'answer')}; "
        f"{before:.1f} tokens on average, of which {after:.1f} are new.",
        paths_of(found),
        {"prompt_ids": float(most), "tokens_recorded": before, "tokens_corrected": after},
        f"The first {most} ids{where} were removed.",
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


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
def count_and_ids(_file: ResultFile, record: AnswerRecord) -> Values | None:
    """The stated token count is not the number of ids."""
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


def bos_matched(file: ResultFile) -> Iterator[AuditFinding]:
    """The matched tokens are one more per sample than the ids give."""
    rows = _stated_matches(file)
    counted = [row for row in rows if row[0] == row[2].matched + 1]
    stated, compared = sum(row[0] for row in rows), sum(row[1] for row in rows)
    if not counted or len(counted) < BOS_SHARE * len(rows) or compared <= len(rows):
        return
    real, left = sum(pair.matched for _, _, pair in rows), compared - len(counted)
    found = answer_pairs.acceptance(file)
    exact = len(counted) == len(rows)
    where = "every sample" if exact else share(len(counted), len(rows), "sample")
    yield AuditFinding(
        f"The token-level matches of the rows, {stated:,.0f} of {compared:,.0f} or "
        f"{stated / compared:.1%} in all, include the begin-of-text id of {where}. "
        f"Without it {real:,} match.",
        tuple(figure.path for figure in file.figures if figure.name == MATCHED),
        {
            "stated_matched": stated,
            "matched": float(real),
            "samples": float(len(rows)),
            "samples_with_bos": float(len(counted)),
            "stated_rate": stated / compared,
            "rate_without_bos": real / left,
            "position_rate": found.rate.value if found and found.rate else 0.0,
        },
        f"The rate without it is {real / left:.1%}.",
    )


def _stated_matches(file: ResultFile) -> list[tuple[float, float, Pair]]:
    """(stated matches, stated comparisons, its ids) of each row that has all three.

    Matched by row, not by sample name: a sample may appear twice.
    """
    stated, totals = (
        {row_of(figure.path): figure.value for figure in file.figures if figure.name == name}
        for name in (MATCHED, COMPARED)
    )
    drafts, targets = (
        {row_of(r.path): r.ids for r in file.of(model, True) if r.ids is not None}
        for model in (file.draft, file.target)
    )
    return [
        (stated[row], totals[row], Pair(row, drafts[row], targets[row]))
        for row in stated
        if row in totals and row in drafts and row in targets
    ]


def capped(file: ResultFile) -> Iterator[AuditFinding]:
    """Many answers stop at the same maximum length without an end-of-text id."""
    cuts: dict[tuple[int, int, int, str], list[tuple[str, lengths.LengthCut]]] = {}
    for model in file.models:
        found = lengths.cut(file, model)
        if found:
            key = found.tokens, len(found.records), found.answers, found.named
            cuts.setdefault(key, []).append((model, found))
    for group in cuts.values():
        for some in [group] if len(group) >= SAME_FROM else [[one] for one in group]:
            yield _capped(file, [model for model, _ in some], [cut for _, cut in some])


def _capped(
    file: ResultFile, models: Sequence[str], cuts: Sequence[lengths.LengthCut]
) -> AuditFinding:
    cut, alone = cuts[0], len(models) == 1
    at = f"{cut.tokens:,} tokens" + (f", the limit of {cut.named}," if cut.named else "")
    end = "without an end-of-text id" if cut.ended else "and the file has no ids to show an end"
    several = f"{len(models)} models ({', '.join(models[:2])}, ...), each"
    stopped = len(cut.records)
    return AuditFinding(
        f"{name_of(file, models[0]) if alone else several}: "
        f"{share(stopped, cut.answers, 'answer')} stop at {at} {end}. Their lengths and times "
        "depend on the limit, not on the model.",
        paths_of(record for one in cuts for record in one.records),
        {
            "tokens": float(cut.tokens),
            "answers": float(cut.answers),
            "share": stopped / cut.answers,
        },
        model=models[0] if alone else "",
    )


def _with_text(file: ResultFile, model: str) -> list[AnswerRecord]:
    return [record for record in file.of(model) if record.text and record.text.strip()]


@each_record(
    "{share} begin in the middle of a sentence ({text}): the first token is missing.",
    of=_with_text,
    least=lambda records: max(3, 0.8 * records),
)
def begins_inside(_file: ResultFile, record: AnswerRecord) -> Values | None:
    """The text begins in lower case and later sentences begin with capitals."""
    text = (record.text or "").strip()
    later = [part.lstrip()[:1] for part in text.split(". ")[1:]]
    inside = text[:1].islower() and any(letter.isupper() for letter in later)
    return {"text": repr(text[:24])} if inside else None


def shifted(file: ResultFile, model: str) -> Iterator[AuditFinding]:
    """An adapter's draft matches the target better from its second id."""
    if model not in ("adapter", "adapted"):
        return
    plain, later = (
        sum(pair.matched for pair in answer_pairs.pairs_of(file, model, file.target, shift=by))
        for by in (0, 1)
    )
    if later > SHIFT_GAIN * max(plain, 1):
        yield AuditFinding(
            f"its ids match the target {count(later, 'time')} from the target's second id and "
            f"{count(plain, 'time')} from the first: its first token is missing.",
            paths_of(file.of(model)),
            {"matched": float(plain), "matched_shifted": float(later)},
            "The shifted comparison is shown beside the plain one.",
        )


def first_token(file: ResultFile) -> Iterator[AuditFinding]:
    yield from each_model(begins_inside)(file)
    yield from each_model(shifted)(file)


def acceptance_rows(file: ResultFile) -> Iterator[AuditFinding]:
    """A row's rate is not matches / comparisons, or its matches do not follow from its ids."""
    every = _rows(file)
    possible = _possible(file) if every else {}
    wrong = {
        row: reason
        for row, (rate, matched, compared) in every.items()
        if (reason := _contradiction(rate, matched, compared, possible.get(row)))
    }
    if wrong:
        row = next(iter(wrong))
        rate, matched, compared = every[row]
        yield AuditFinding(
            f"{share(len(wrong), len(every), 'row')} {verb(len(wrong), 'states', 'state')} "
            f"an acceptance that contradicts {verb(len(wrong), 'its', 'their')} own counts or ids; "
            f"the first {wrong[row]}. The summary's acceptance is not checked against such rows.",
            tuple(every[row][0].path for row in wrong),
            {"rows": float(len(wrong)), "stated_rate": rate.value,
             "matched": matched.value, "compared": compared.value},
        )  # fmt: skip


def judged(file: ResultFile, path: str) -> bool:
    """Whether a summary's figure can be checked against the rows.  An acceptance cannot if the
    rows' own acceptance is wrong."""
    key = path.rsplit(".", 1)[-1].lower()
    return not re.search("accept|match", key) or not any(acceptance_rows(file))


def _rows(file: ResultFile) -> dict[str, tuple[SampleFigure, SampleFigure, SampleFigure]]:
    """(rate, matches, comparisons) of each row that has all three, by the row's path."""
    by_name: dict[str, dict[str, SampleFigure]] = {}
    for figure in file.figures:
        by_name.setdefault(figure.name, {})[row_of(figure.path)] = figure
    for names in NAMES:
        rates, *counts = (by_name.get(name, {}) for name in names)
        found = {row: (rate, counts[0][row], counts[1][row]) for row, rate in rates.items()
                 if all(row in count for count in counts)}  # fmt: skip
        if found:
            return found
    return {}


def row_of(path: str) -> str:
    """ "results[3" for "results[3].eventgpt": the same for all values of one row."""
    return path.partition("]")[0]


def _contradiction(
    rate: SampleFigure, matched: SampleFigure, compared: SampleFigure, possible: set[int] | None
) -> str | None:
    if compared.value > 0 and abs(rate.value - matched.value / compared.value) > SLACK:
        counts = f"{matched.value:,.0f} of {compared.value:,.0f}"
        right = matched.value / compared.value
        return f"states {rate.value:.1%} for {counts}, which is {right:.1%}"
    if possible is not None and matched.value not in possible:
        most = max(possible) - 1  # the highest count includes the begin-of-text id
        return f"counts {matched.value:,.0f} matches, but its ids give {most:,}"
    return None


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
