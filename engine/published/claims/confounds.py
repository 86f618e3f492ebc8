"""Short notes on what makes a ratio of two models' times hard to interpret.

Boundary: a ResultFile in, notes for the table of claims out; the file's findings say more.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.analysis.acceptance import amount
from engine.published.claims.waterfall import waterfall
from engine.published.read import lengths
from engine.published.read.record_types import EOS, NAMES, ResultFile
from engine.published.read.who_answered import KEY_FAMILY, shown

ONE_IMAGE = (636, 637)  # contexts
SAME_FROM = 3  # answers
PER_TOKEN = (
    "Time per token is the decoding time divided by all N tokens of an answer. If a file counts "
    "the first token to the prefill, it is divided by the N - 1 other tokens."
)
LIMITS = ("max_new_tokens", "max_tokens")


def confounds(file: ResultFile, name: str, corrected: bool) -> tuple[str, ...]:
    """Notes on a claim ("overall", "decoding" or "loading") for a file with rows of both models."""
    found = _who(file)
    if file.group.fixed_length and name != "loading":
        found.append("both models decoded a fixed small number of tokens")
    if name != "loading":
        found += _lengths(file, corrected)
    if any(record.context in ONE_IMAGE for record in file.of(file.draft)):
        found.append("EventGPT got one event image")
    if name != "loading":
        for model in (file.draft, file.target):
            found += _same(file, model, corrected) + _cut(file, model, corrected)
    return (*found, *_failed(file))


def of_means(file: ResultFile, tokens: Sequence[float | None], ratio: float) -> tuple[str, ...]:
    """Notes on a file with means only.  tokens: mean token counts of target and EventGPT; ratio: of
    their decoding times."""
    found = [f"computed from the file's means over {amount(file.samples, file.clips)}: the file "
             "has no rows of EventGPT"]  # fmt: skip
    theirs, mine = tokens
    if theirs and mine:
        found.append(_ratios(file, theirs / mine, ratio / (theirs / mine)))
    limit = next((file.config[key] for key in LIMITS if key in file.config), None)
    if mine and mine == limit:  # a mean that is the most there can be
        found.append(f"{NAMES['eventgpt']}: {_all_at(mine)}")
    if theirs and theirs == limit:
        found.append(f"{NAMES['video_llava']}: {_all_at(theirs)}")
    else:
        found += _cut(file, "baseline", corrected=True)
    return (*found, *_failed(file))


def _all_at(tokens: float) -> str:
    return f"all answers stopped at {tokens:,.0f} tokens"


def _who(file: ResultFile) -> list[str]:
    found, identity = [], file.identities[file.target]
    if identity.agrees is False:
        found.append(f"labelled {identity.claimed}, but {shown(identity)} answered")
    if KEY_FAMILY.get(file.draft) != "eventgpt":
        found.append(f"the draft is {file.draft}, not EventGPT")
    return found


def _lengths(file: ResultFile, corrected: bool) -> list[str]:
    """The ratio of token counts and of times per token."""
    fall = waterfall(file, corrected)
    if fall is not None and fall.tokens_ratio and fall.per_token_ratio:
        note = _ratios(file, fall.tokens_ratio, fall.per_token_ratio)
        return [f"{note}, which is not plausible: see the findings" if fall.nonsense else note]
    work = lengths.work(file, corrected)
    return [_ratios(file, work.tokens, work.per_token)] if work else []


def _ratios(file: ResultFile, tokens: float, per_token: float) -> str:
    after = " after the first" if lengths.divides_by_less(file) else ""
    return f"{tokens:.2f}x the tokens at {per_token:.2f}x the time per token{after}"


def _same(file: ResultFile, model: str, corrected: bool) -> list[str]:
    """A note if the model gave the same answer to every sample."""
    texts = [record.text for record in file.of(model) if record.text is not None]
    if len(texts) < SAME_FROM or len(set(texts)) > 1:
        return []
    return [f"{_name(file, model, corrected)} gave the same answer to all {len(texts):,}"]


def _cut(file: ResultFile, model: str, corrected: bool) -> list[str]:
    if model not in file.models:
        return []
    name = _name(file, model, corrected)
    if found := lengths.cut(file, model):
        cut = len(found.records)
        note = _all_at(found.tokens)
        if cut < found.answers:
            note = f"{cut:,} of {found.answers:,} answers stopped at {found.tokens:,} tokens"
        return [f"{name}: {note}"]
    ends = [record.ids[-1] == EOS for record in file.of(model, corrected=True) if record.ids]
    return [f"{name}: no answer has an end-of-text id"] if ends and not any(ends) else []


def _name(file: ResultFile, model: str, corrected: bool) -> str:
    return shown(file.identities[model], corrected)


def _failed(file: ResultFile) -> list[str]:
    failed = len(file.failures)
    return [f"{failed:,} of {file.samples + failed:,} samples failed"] if failed else []
