"""What stands in the way of reading a ratio of two models' times as it is, in short phrases.

Boundary: a ResultFile in, phrases for the "to know" column of the claims out; each is a fact that
the file's findings state at length.
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
    "Time per token is decoding time over all N tokens of an answer; over the N - 1 after the "
    "first where a file counts the first to the prefill."
)
LIMITS = ("max_new_tokens", "max_tokens")


def confounds(file: ResultFile, name: str, corrected: bool) -> tuple[str, ...]:
    """For the claim named ("overall", "decoding", "loading"), of a file with rows of both."""
    found = _who(file)
    if file.group.fixed_length and name != "loading":
        found.append("both decoded a few tokens of a fixed number")
    if name != "loading":
        found += _lengths(file, corrected)
    if any(record.context in ONE_IMAGE for record in file.of(file.draft)):
        found.append("EventGPT saw one event image")
    if name != "loading":
        for model in (file.draft, file.target):
            found += _same(file, model, corrected) + _cut(file, model, corrected)
    return (*found, *_failed(file))


def of_means(file: ResultFile, tokens: Sequence[float | None], ratio: float) -> tuple[str, ...]:
    """Of a file with means alone (G).  tokens: on average, the target's and EventGPT's; ratio: of
    their decoding times."""
    found = [f"from the file's own means over {amount(file.samples, file.clips)}: it has no rows "
             "of EventGPT"]  # fmt: skip
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
    return f"all answers cut at {tokens:,.0f} tokens"


def _who(file: ResultFile) -> list[str]:
    found, identity = [], file.identities[file.target]
    if identity.agrees is False:
        found.append(f"labelled {identity.claimed}, but {shown(identity)} answered")
    if KEY_FAMILY.get(file.draft) != "eventgpt":
        found.append(f"the draft is {file.draft}, not EventGPT")
    return found


def _lengths(file: ResultFile, corrected: bool) -> list[str]:
    """How much of a ratio is the number of tokens, and how much the time for each."""
    fall = waterfall(file, corrected)
    if fall is not None and fall.tokens_ratio and fall.per_token_ratio:
        told = _ratios(file, fall.tokens_ratio, fall.per_token_ratio)
        return [f"{told}, which makes no sense: see the findings" if fall.nonsense else told]
    work = lengths.work(file, corrected)
    return [_ratios(file, work.tokens, work.per_token)] if work else []


def _ratios(file: ResultFile, tokens: float, per_token: float) -> str:
    after = " after the first" if lengths.divides_by_less(file) else ""
    return f"{tokens:.2f}x the tokens at {per_token:.2f}x the time per token{after}"


def _same(file: ResultFile, model: str, corrected: bool) -> list[str]:
    """A loop that repeats itself is no answer, whatever was asked."""
    texts = [record.text for record in file.of(model) if record.text is not None]
    if len(texts) < SAME_FROM or len(set(texts)) > 1:
        return []
    return [f"{_name(file, model, corrected)} gave one and the same answer to all {len(texts):,}"]


def _cut(file: ResultFile, model: str, corrected: bool) -> list[str]:
    if model not in file.models:
        return []
    name = _name(file, model, corrected)
    if found := lengths.cut(file, model):
        cut = len(found.records)
        told = _all_at(found.tokens)
        if cut < found.answers:
            told = f"{cut:,} of {found.answers:,} answers cut at {found.tokens:,} tokens"
        return [f"{name}: {told}"]
    ends = [record.ids[-1] == EOS for record in file.of(model, corrected=True) if record.ids]
    return [f"{name}: no answer has an end of its own"] if ends and not any(ends) else []


def _name(file: ResultFile, model: str, corrected: bool) -> str:
    return shown(file.identities[model], corrected)


def _failed(file: ResultFile) -> list[str]:
    failed = len(file.failures)
    return [f"{failed:,} of {file.samples + failed:,} samples failed"] if failed else []
