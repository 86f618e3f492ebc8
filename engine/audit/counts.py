"""Rules about tokens: what was counted, what was cut off, what never was an answer's.

Boundary: each function yields what it found and says nothing otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.acceptance import Pair
from engine.audit.finding import Found, many, name_of, share, verb
from engine.records import comparing, correct
from engine.records.identity import CLIP_ID, IMAGE_ID
from engine.records.types import BOS, Record, ResultFile

PLACEHOLDERS = {IMAGE_ID, CLIP_ID, -200}
MANY_PLACEHOLDERS = 100
BOS_SHARE = 0.9
MATCHED, COMPARED = "acceptance.matched_tokens", "acceptance.total_tokens"
WORDS = correct.WORDS


def sliced(file: ResultFile) -> Iterator[Found]:
    """Fewer tokens than words: ids were cut off an answer."""
    for model in file.models:
        records = file.of(model)
        found = [record for record in records if _is_sliced(record, file)]
        if found:
            worst = min(found, key=lambda record: record.tokens or 0)
            words = len((worst.text or "").split())
            yield Found(
                f"{name_of(file, model)}: {share(len(found), len(records), 'answer')} "
                f"{verb(len(found), 'lacks', 'lack')} the first token ids; one counts "
                f"{many(int(worst.tokens or 0), 'token')} for a text of {many(words, 'word')}.",
                found,
                {"tokens": float(worst.tokens or 0), "words": float(words)},
                "" if file.own else _mended(file, model),
                model,
            )


def _mended(file: ResultFile, model: str) -> str:
    """What is done about slices, and what acceptance is with and without the answers cut."""
    text = f"{correct.SLICE} tokens were added to each such count; the ids cannot be restored"
    every = comparing.variants(file)
    kept, whole = every.get("main"), every.get("without_sliced")
    if model != file.draft or kept is None or kept.rate is None:
        return f"{text}."
    text += f" and are compared as they are: {kept.rate.value:.1%} of the ids match by position"
    if whole is None or whole.rate is None:
        return f"{text}, and no pair is left without these answers."
    return f"{text}, {whole.rate.value:.1%} in the {many(whole.pairs, 'pair')} without them."


def _is_sliced(record: Record, file: ResultFile) -> bool:
    if not file.own:
        return correct.is_sliced(record)
    if record.tokens is None or not record.text:
        return False
    return record.tokens < WORDS * len(record.text.split())


def prompt_counted(file: ResultFile) -> Iterator[Found]:
    """The prompt's ids stand in front of the answer's."""
    for model in file.models:
        records = file.of(model)
        found = [record for record in records if _holds_prompt(record)]
        if not found:
            continue
        cut = [correct.prompt_ids(record.ids) for record in found]
        paths = {record.path for record in found}
        before, mended = (
            [r.tokens for r in file.of(model, after) if r.path in paths and r.tokens is not None]
            for after in (False, True)
        )
        figures = {"prompt_ids": float(max(cut)), "tokens_recorded": _mean(before)}
        text = f"{_mean(before):.1f} tokens on average"
        if all(cut):
            figures["tokens_corrected"] = _mean(mended)
            text += f" are {_mean(mended):.1f} new ones"
        yield Found(
            f"{name_of(file, model)}: the prompt is counted as output in "
            f"{share(len(found), len(records), 'answer')}; {text}.",
            found,
            figures,
            f"The first {max(cut)} ids were taken off." if all(cut) else "",
            model,
        )


def _holds_prompt(record: Record) -> bool:
    if record.ids is None:
        return False
    if correct.prompt_ids(record.ids):
        return True
    return sum(map(record.ids.count, PLACEHOLDERS)) >= MANY_PLACEHOLDERS


def beyond_limit(file: ResultFile) -> Iterator[Found]:
    """More new tokens than the run was allowed to make."""
    prompted = {record.path for record in file.corrected if "prompt" in record.marks}
    for model in file.models:
        found = []
        for record in file.of(model):
            limit = _limit(record, file)
            if _holds_prompt(record) or record.path in prompted:
                continue  # said once
            if limit and record.tokens is not None and record.tokens > limit:
                found.append((record, limit))
        if found:
            record, limit = max(found, key=lambda pair: pair[0].tokens or 0)
            yield Found(
                f"{name_of(file, model)}: {many(len(found), 'answer')} "
                f"{verb(len(found), 'has', 'have')} more tokens than the limit; one counts "
                f"{record.tokens:,.0f} where {limit:,.0f} were allowed.",
                [one for one, _ in found],
                {"tokens": float(record.tokens or 0), "max_new_tokens": limit},
                model=model,
            )


def _limit(record: Record, file: ResultFile) -> float | None:
    if "max_new_tokens" in record.sizes:
        return record.sizes["max_new_tokens"]
    for key in ("max_new_tokens", "max_tokens"):
        value = file.config.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    return None


def count_and_ids(file: ResultFile) -> Iterator[Found]:
    """The stated count is not the number of ids."""
    for model in file.models:
        found = [
            record
            for record in file.of(model)
            if record.ids is not None and record.tokens is not None
            and len(record.ids) != record.tokens
        ]  # fmt: skip
        if found:
            one = found[0]
            yield Found(
                f"{name_of(file, model)}: {many(len(found), 'answer')} "
                f"{verb(len(found), 'states', 'state')} another count than there are ids; the "
                f"first says {one.tokens:,.0f} and has {len(one.ids or ()):,}.",
                found,
                {"stated": float(one.tokens or 0), "ids": float(len(one.ids or ()))},
                model=model,
            )


def begins_with_bos(file: ResultFile) -> Iterator[Found]:
    """The begin-of-text id stands in an answer, where every pair matches it."""
    for model in file.models:
        records = [record for record in file.of(model) if record.ids]
        found = [r for r in records if r.ids and r.ids[0] == BOS and not _holds_prompt(r)]
        if found:
            yield Found(
                f"{name_of(file, model)}: {share(len(found), len(records), 'answer')} "
                f"{verb(len(found), 'begins', 'begin')} with the begin-of-text id, which no model "
                "produced.",
                found,
                {"first_id": float(BOS)},
                model=model,
            )


def bos_matched(file: ResultFile) -> Iterator[Found]:
    """A file's matched tokens are one more per sample than its ids allow."""
    rows = _stated_matches(file)
    counted = [row for row in rows if row[0] == row[2].matched + 1]
    stated, compared = sum(row[0] for row in rows), sum(row[1] for row in rows)
    if not counted or len(counted) < BOS_SHARE * len(rows) or compared <= len(rows):
        return
    real, left = sum(pair.matched for _, _, pair in rows), compared - len(counted)
    found = comparing.acceptance(file)
    exact = len(counted) == len(rows)
    where = "every sample" if exact else share(len(counted), len(rows), "sample")
    yield Found(
        f"The file's token-level acceptance of {stated / compared:.1%} counts the begin-of-text id "
        f"as a match in {where}: {stated:,.0f} matches are {real:,}.",
        figures={
            "stated_matched": stated,
            "matched": float(real),
            "samples": float(len(rows)),
            "samples_with_bos": float(len(counted)),
            "stated_rate": stated / compared,
            "rate_without_bos": real / left,
            "position_rate": found.rate.value if found and found.rate else 0.0,
        },
        correction=f"Without it {real / left:.1%} are left.",
        paths=tuple(f.path for f in file.figures if f.name == MATCHED),
    )


def _stated_matches(file: ResultFile) -> list[tuple[float, float, Pair]]:
    """(stated matches, stated comparisons, its ids) of each row that has all three.

    By the row, not by its sample's name: a sample may stand there twice.
    """
    stated, totals = (
        {_row(figure.path): figure.value for figure in file.figures if figure.name == name}
        for name in (MATCHED, COMPARED)
    )
    drafts, targets = (
        {_row(record.path): record.ids for record in file.of(model, True) if record.ids is not None}
        for model in (file.draft, file.target)
    )
    return [
        (stated[row], totals[row], Pair(row, drafts[row], targets[row]))
        for row in stated
        if row in totals and row in drafts and row in targets
    ]


def _row(path: str) -> str:
    """ "results[3" of "results[3].eventgpt", the same for all that stands in one row."""
    return path.partition("].")[0]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
