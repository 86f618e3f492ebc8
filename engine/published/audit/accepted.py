"""The rule about acceptance rates of rows: checked by the rows' own counts and token ids.

Boundary: each rule yields its findings, or nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from engine.analysis.acceptance import Pair
from engine.published.audit.finding import CheckResult, share, verb
from engine.published.read import answer_pairs
from engine.published.read.record_types import ResultFile, SampleFigure

# what a row calls its rate, its matches and its comparisons
NAMES = (
    ("acceptance.acceptance_rate", "acceptance.matched_tokens", "acceptance.total_tokens"),
    ("acceptance.rate", "acceptance.matched", "acceptance.compared"),
    ("acceptance_rate", "accepted_tokens", "total_compared"),
    ("acceptance_rate", "matched_tokens", "compared_tokens"),
    ("acceptance_rate", "matched_tokens", "total_tokens"),
    ("acceptance_rate", "total_matches", "total_tokens"),
)
SLACK = 0.005  # of a rate: files round it to two digits
_RATE = re.compile(r"accept|match", re.IGNORECASE)


def rows(file: ResultFile) -> Iterator[CheckResult]:
    """A row's rate is not matches / comparisons, or its matches do not follow from its ids."""
    every = _rows(file)
    if file.own or not every:
        return
    possible = _possible(file)
    wrong = {
        row: reason
        for row, (rate, matched, compared) in every.items()
        if (reason := _contradiction(rate, matched, compared, possible.get(row)))
    }
    if wrong:
        row = next(iter(wrong))
        rate, matched, compared = every[row]
        yield CheckResult(
            f"{share(len(wrong), len(every), 'row')} {verb(len(wrong), 'states', 'state')} "
            f"an acceptance that contradicts {verb(len(wrong), 'its', 'their')} own counts or ids; "
            f"the first {wrong[row]}. The summary's acceptance is not checked against such rows.",
            figures={"rows": float(len(wrong)), "stated_rate": rate.value,
                     "matched": matched.value, "compared": compared.value},
            paths=tuple(every[row][0].path for row in wrong),
        )  # fmt: skip


def judged(file: ResultFile, path: str) -> bool:
    """Whether a summary's figure can be checked against the rows.  An acceptance cannot if the
    rows' own acceptance is wrong."""
    return not _RATE.search(path.rsplit(".", 1)[-1]) or not any(rows(file))


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
    rate: SampleFigure,
    matched: SampleFigure,
    compared: SampleFigure,
    possible: frozenset[int] | None,
) -> str | None:
    if compared.value > 0 and abs(rate.value - matched.value / compared.value) > SLACK:
        counts = f"{matched.value:,.0f} of {compared.value:,.0f}"
        right = matched.value / compared.value
        return f"states {rate.value:.1%} for {counts}, which is {right:.1%}"
    if possible is not None and matched.value not in possible:
        most = max(possible) - 1  # the highest count includes the begin-of-text id
        return f"counts {matched.value:,.0f} matches, but its ids give {most:,}"
    return None


def _possible(file: ResultFile) -> Mapping[str, frozenset[int]]:
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
                    counts = pair.matched, pair.prefix
                    both = {*counts, *(count + 1 for count in counts)}
                    found.setdefault(row_of(mine.path), set()).update(both)
    return {path: frozenset(counts) for path, counts in found.items()}
