"""Rules about tokens: what was counted, what was cut off, what never was an answer's.

Boundary: each function yields what it found and says nothing otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.audit.finding import Found, name_of, share
from engine.records import comparing, correct
from engine.records.identity import CLIP_ID, IMAGE_ID
from engine.records.types import BOS, EOS, Record, ResultFile

PLACEHOLDERS = {IMAGE_ID, CLIP_ID, -200}
MANY_PLACEHOLDERS = 100
CAPPED_FROM = 3
SHIFT_GAIN = 2.0
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
                f"{name_of(file, model)}: {share(len(found), len(records))} answers lack the "
                f"beginning of their token ids; one counts {worst.tokens:.0f} tokens for a text "
                f"of {words} words.",
                found,
                {"tokens": float(worst.tokens or 0), "words": float(words)},
                "60 tokens were added to their counts; their ids stay out of acceptance."
                if not file.own
                else "",
                model,
            )


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
        mended = [r.tokens for r in file.of(model, corrected=True) if r.tokens is not None]
        before = [r.tokens for r in records if r.tokens is not None]
        figures = {"prompt_ids": float(max(cut)), "tokens_recorded": _mean(before)}
        text = f"{_mean(before):.1f} tokens on average"
        if all(cut):
            figures["tokens_corrected"] = _mean(mended)
            text += f" are {_mean(mended):.1f} new ones"
        yield Found(
            f"{name_of(file, model)}: the prompt is counted as output in "
            f"{share(len(found), len(records))} answers; {text}.",
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
    for model in file.models:
        found = []
        for record in file.of(model):
            limit = _limit(record, file)
            if _holds_prompt(record):
                continue  # said once
            if limit and record.tokens is not None and record.tokens > limit:
                found.append((record, limit))
        if found:
            record, limit = max(found, key=lambda pair: pair[0].tokens or 0)
            yield Found(
                f"{name_of(file, model)}: {len(found):,} answers have more tokens than the limit; "
                f"one counts {record.tokens:,.0f} where {limit:,.0f} were allowed.",
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
                f"{name_of(file, model)}: {len(found):,} answers state another count than they "
                f"have ids; the first says {one.tokens:,.0f} and has {len(one.ids or ()):,}.",
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
                f"{name_of(file, model)}: {share(len(found), len(records))} answers begin with the "
                "begin-of-text id, which no model produced.",
                found,
                {"first_id": float(BOS)},
                model=model,
            )


def bos_matched(file: ResultFile) -> Iterator[Found]:
    """A file's matched tokens are one more per sample than its ids allow."""
    stated = {f.sample: f.value for f in file.figures if f.name == "acceptance.matched_tokens"}
    totals = {f.sample: f.value for f in file.figures if f.name == "acceptance.total_tokens"}
    if not stated or not totals:
        return
    pairs = [p for p in comparing.pairs_of(file, file.draft, file.target) if p.sample in stated]
    real = sum(pair.matched for pair in pairs)
    recorded = sum(stated[pair.sample] for pair in pairs)
    compared = sum(totals.values())
    counted = all(stated[pair.sample] == pair.matched + 1 for pair in pairs)
    if pairs and counted and compared > len(pairs):
        rate = comparing.acceptance(file)
        ours = rate.rate.value if rate and rate.rate else 0.0
        yield Found(
            f"The file's token-level acceptance of {recorded / compared:.1%} counts the "
            f"begin-of-text id as a match in every sample: {recorded:.0f} matches are {real}.",
            figures={
                "stated_matched": recorded,
                "matched": float(real),
                "stated_rate": recorded / compared,
                "rate_without_bos": real / (compared - len(pairs)),
                "position_rate": ours,
            },
            correction=f"Without it {real / (compared - len(pairs)):.1%} are left.",
            paths=tuple(f.path for f in file.figures if f.name == "acceptance.matched_tokens"),
        )


def capped(file: ResultFile) -> Iterator[Found]:
    """Every answer has the same length and none ends by itself."""
    for model in file.models:
        records = [r for r in file.of(model, corrected=True) if r.ids]
        lengths = {len(record.ids or ()) for record in records}
        ended = sum(1 for record in records if record.ids and record.ids[-1] == EOS)
        if len(records) < CAPPED_FROM or len(lengths) != 1 or ended:
            continue
        if file.own and all("stop:length" in record.marks for record in records):
            continue  # our rows say so themselves
        yield Found(
            f"{name_of(file, model)}: every answer stops at {lengths.copy().pop()} tokens without "
            "an end: its lengths and times are the limit's, not the model's.",
            records,
            {"tokens": float(lengths.pop()), "ended": 0.0},
            model=model,
        )


def first_token_missing(file: ResultFile) -> Iterator[Found]:
    """Texts begin inside a sentence, or a draft fits the target only one id later."""
    for model in file.models:
        records = [record for record in file.of(model) if record.text and record.text.strip()]
        found = [record for record in records if _begins_inside(str(record.text).strip())]
        if len(found) >= max(3, 0.8 * len(records)) and not file.own:
            yield Found(
                f"{name_of(file, model)}: {share(len(found), len(records))} answers begin in the "
                f"middle of a sentence ({str(found[0].text).strip()[:24]!r}): the first token is "
                "missing.",
                found,
                {"answers": float(len(found))},
                model=model,
            )
    yield from _shifted(file)


def _begins_inside(text: str) -> bool:
    """Lower case first although the text begins its later sentences with capitals."""
    later = [part.lstrip()[:1] for part in text.split(". ")[1:]]
    return text[0].islower() and any(letter.isupper() for letter in later)


def _shifted(file: ResultFile) -> Iterator[Found]:
    for model in file.models:
        if model not in ("adapter", "adapted"):
            continue
        plain, later = (
            sum(pair.matched for pair in comparing.pairs_of(file, model, file.target, shift=shift))
            for shift in (0, 1)
        )
        if later > SHIFT_GAIN * max(plain, 1):
            yield Found(
                f"{name_of(file, model)}: its ids match the target {later:,} times from the "
                f"target's second id and {plain:,} times from the first: its first token is "
                "missing.",
                file.of(model),
                {"matched": float(plain), "matched_shifted": float(later)},
                "The shifted comparison is shown beside the plain one.",
                model,
            )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
