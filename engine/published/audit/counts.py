"""Rules about token counts: missing tokens, counted prompts, begin-of-text ids.

Boundary: each rule yields its findings, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.analysis.acceptance import Pair
from engine.analysis.number_text import count
from engine.published.audit.accepted import row_of
from engine.published.audit.finding import CheckResult, name_of, share, verb
from engine.published.read import answer_pairs, answer_tokens
from engine.published.read.answer_tokens import SLICE
from engine.published.read.file_reading import COUNTS
from engine.published.read.record_types import BOS, AnswerRecord, ResultFile

BOS_SHARE = 0.9
MATCHED, COMPARED = "acceptance.matched_tokens", "acceptance.total_tokens"


def sliced(file: ResultFile) -> Iterator[CheckResult]:
    """An answer has fewer tokens than words: its first ids are missing."""
    for model in file.models:
        records = _without_prompt(file, model)
        found = [record for record in records if answer_tokens.is_sliced(record)]
        if found:
            worst = min(found, key=lambda record: record.tokens or 0)
            words = answer_tokens.words(worst)
            yield CheckResult(
                f"{name_of(file, model)}: {share(len(found), len(records), 'answer')} "
                f"{verb(len(found), 'lacks', 'lack')} the first token ids; one "
                f"{_counted(worst)} for a text of {count(words, 'word')}.",
                found,
                {"tokens": float(worst.tokens or 0), "words": float(words)},
                "" if file.own else _correction(file, model, found),
                model,
            )


def _counted(record: AnswerRecord) -> str:
    """The token count that the file states, otherwise the number of ids."""
    stated = any(record.sizes.get(key) == record.tokens for key in COUNTS)
    return f"{'states' if stated else 'has'} {count(int(record.tokens or 0), 'token')}"


def _without_prompt(file: ResultFile, model: str) -> list[AnswerRecord]:
    records = file.of(model)
    if file.own:
        return list(records)
    prompted = any(answer_tokens.prompt_ids(record.ids) for record in records)
    return [answer_tokens.stripped(record, prompted) for record in records]


def _correction(file: ResultFile, model: str, found: list[AnswerRecord]) -> str:
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


def prompt_counted(file: ResultFile) -> Iterator[CheckResult]:
    """The ids of an answer begin with the prompt."""
    for model in file.models:
        records = file.of(model)
        found = [record for record in records if answer_tokens.prompt_ids(record.ids)]
        if found:
            yield _prompt_counted(file, model, found, len(records))


def _prompt_counted(
    file: ResultFile, model: str, found: list[AnswerRecord], every: int
) -> CheckResult:
    most = max(answer_tokens.prompt_ids(record.ids) for record in found)
    paths = {record.path for record in found}
    before, after = (
        [r.tokens for r in records if r.path in paths and r.tokens is not None]
        for records in (file.of(model), _without_prompt(file, model))
    )
    figures = {"prompt_ids": float(most), "tokens_recorded": _mean(before)}
    text = f"{_mean(before):.1f} tokens on average"
    if not file.own:
        figures["tokens_corrected"] = _mean(after)
        text += f", of which {_mean(after):.1f} are new"
    where = ""
    if any(answer_tokens.is_open(record.ids) for record in found):
        where = (
            ', up to the last image placeholder (no "ASSISTANT:" marks the start of the answer),'
        )
    return CheckResult(
        f"{name_of(file, model)}: the prompt is counted as output in "
        f"{share(len(found), every, 'answer')}; {text}.",
        found,
        figures,
        "" if file.own else f"The first {most} ids{where} were removed.",
        model,
    )


def beyond_limit(file: ResultFile) -> Iterator[CheckResult]:
    """An answer has more new tokens than the limit (without a prompt, which has its own rule)."""
    for model in file.models:
        found = []
        for record in _without_prompt(file, model):
            limit = _limit(record, file)
            hidden = file.own and answer_tokens.prompt_ids(record.ids)
            if limit and not hidden and record.tokens is not None and record.tokens > limit:
                found.append((record, limit))
        if found:
            record, limit = max(found, key=lambda pair: pair[0].tokens or 0)
            new = " new" if "prompt" in record.marks else ""
            yield CheckResult(
                f"{name_of(file, model)}: {count(len(found), 'answer')} "
                f"{verb(len(found), 'has', 'have')} more{new} tokens than the limit; one has "
                f"{record.tokens:,.0f}, and the limit is {limit:,.0f}.",
                [record for record, _ in found],
                {"tokens": float(record.tokens or 0), "max_new_tokens": limit},
                model=model,
            )


def _limit(record: AnswerRecord, file: ResultFile) -> float | None:
    if "max_new_tokens" in record.sizes:
        return record.sizes["max_new_tokens"]
    for key in ("max_new_tokens", "max_tokens"):
        value = file.config.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    return None


def count_and_ids(file: ResultFile) -> Iterator[CheckResult]:
    """The stated token count is not the number of ids."""
    for model in file.models:
        found = [
            record
            for record in file.of(model)
            if record.ids is not None and record.tokens is not None
            and len(record.ids) != record.tokens
        ]  # fmt: skip
        if found:
            one = found[0]
            yield CheckResult(
                f"{name_of(file, model)}: {count(len(found), 'answer')} "
                f"{verb(len(found), 'states', 'state')} a token count that is not the number of "
                f"ids; the first states {one.tokens:,.0f} and has {len(one.ids or ()):,} ids.",
                found,
                {"stated": float(one.tokens or 0), "ids": float(len(one.ids or ()))},
                model=model,
            )


def begins_with_bos(file: ResultFile) -> Iterator[CheckResult]:
    """An answer begins with the begin-of-text id, which every pair matches."""
    for model in file.models:
        records = [record for record in file.of(model) if record.ids]
        found = [
            r for r in records if r.ids and r.ids[0] == BOS and not answer_tokens.prompt_ids(r.ids)
        ]
        if found:
            yield CheckResult(
                f"{name_of(file, model)}: {share(len(found), len(records), 'answer')} "
                f"{verb(len(found), 'begins', 'begin')} with the begin-of-text id, which the "
                "model did not generate.",
                found,
                {"first_id": float(BOS)},
                model=model,
            )


def bos_matched(file: ResultFile) -> Iterator[CheckResult]:
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
    yield CheckResult(
        f"The token-level matches of the rows, {stated:,.0f} of {compared:,.0f} or "
        f"{stated / compared:.1%} in all, include the begin-of-text id of {where}. "
        f"Without it {real:,} match.",
        figures={
            "stated_matched": stated,
            "matched": float(real),
            "samples": float(len(rows)),
            "samples_with_bos": float(len(counted)),
            "stated_rate": stated / compared,
            "rate_without_bos": real / left,
            "position_rate": found.rate.value if found and found.rate else 0.0,
        },
        correction=f"The rate without it is {real / left:.1%}.",
        paths=tuple(f.path for f in file.figures if f.name == MATCHED),
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
        {
            row_of(record.path): record.ids
            for record in file.of(model, True)
            if record.ids is not None
        }
        for model in (file.draft, file.target)
    )
    return [
        (stated[row], totals[row], Pair(row, drafts[row], targets[row]))
        for row in stated
        if row in totals and row in drafts and row in targets
    ]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
