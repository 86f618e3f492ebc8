"""Rules that find wrong numbers, in published result files and in this project's own runs.

Each rule is a small function that takes a ResultFile and yields what it found; a rule that finds
nothing says nothing.  RULES names them all, in the order in which findings are shown.

Boundary: reads the common form of engine.published.read and changes nothing; corrections are made
there.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.published.audit import (
    accepted,
    answering_models,
    comparisons,
    counts,
    ends,
    omissions,
    rates,
    ratios,
    times,
    units,
)
from engine.published.audit.finding import SEVERITIES, Finding, Rule, Severity
from engine.published.read import own_rows
from engine.published.read.record_types import ResultFile
from engine.storage.result_rows import AnswerRow

__all__ = ["RULES", "SEVERITIES", "Finding", "Rule", "Severity", "audit", "audit_rows"]

RULES: tuple[Rule, ...] = (
    Rule(
        "label", "The evidence names another model than the label.", "error", answering_models.label
    ),
    Rule("prompt_counted", "The prompt is counted as output.", "error", counts.prompt_counted),
    Rule("sliced_tokens", "New tokens were cut off the count.", "error", counts.sliced),
    Rule("beyond_limit", "More tokens than the run allowed.", "error", counts.beyond_limit),
    Rule("count_and_ids", "The count is not the number of ids.", "error", counts.count_and_ids),
    Rule("bos", "The begin-of-text id stands in answers.", "error", counts.begins_with_bos),
    Rule("bos_matched", "The begin-of-text id counts as accepted.", "error", counts.bos_matched),
    Rule(
        "one_image", "EventGPT saw one event image of several.", "error", answering_models.one_image
    ),
    Rule(
        "doubled_context",
        "Visual tokens are counted twice.",
        "error",
        answering_models.doubled_context,
    ),
    Rule("totals", "Totals are not the sum of their stages.", "error", times.totals),
    Rule("left_out", "A stated total leaves stages out.", "error", omissions.left_out),
    Rule("per_token", "A rate per token is not of the decoding.", "error", rates.per_token),
    Rule("summaries", "The summary contradicts its rows.", "error", times.summaries),
    Rule("speedup", "A speed-up divides by the wrong time.", "error", ratios.speedups),
    Rule("impossible", "A speed-up leaves measured stages out.", "error", rates.impossible),
    Rule("cost_ratio", "A cost ratio is of whole answers.", "error", ratios.cost_ratios),
    Rule("equality", "Sampled outputs are called equal.", "error", comparisons.equality),
    Rule("units", "Seconds and milliseconds are mixed.", "error", units.units),
    Rule("implausible", "A model's times are in another unit.", "error", units.implausible),
    Rule("flags", "Answers match, or not, and rows say not.", "error", comparisons.flags),
    Rule("acceptance_rows", "Rows state another acceptance.", "error", accepted.rows),
    Rule("lossless", "Speculation changed the answers.", "warning", comparisons.lossless),
    Rule("estimate", "An acceptance is not of tokens.", "warning", comparisons.estimates),
    Rule("warm_up", "A warm-up stands in the mean.", "warning", times.warm_up),
    Rule("placeholder", "A stage was never measured.", "warning", times.placeholder),
    Rule("degenerate", "Answers are no answers.", "warning", answering_models.degenerate),
    Rule("capped", "Answers stop at a limit.", "warning", ends.capped),
    Rule("first_token", "First tokens are missing.", "warning", ends.first_token_missing),
    Rule(
        "beyond_window", "A context exceeds the model's.", "warning", answering_models.beyond_window
    ),
    Rule("unusable", "Values could not be used.", "warning", answering_models.unusable),
    Rule("duplicates", "Samples stand there twice.", "warning", answering_models.duplicates),
    Rule("one_sided", "A model lacks answers of the other.", "warning", answering_models.one_sided),
    Rule("failures", "Samples failed.", "note", answering_models.failures),
    Rule("unequal", "Answers of different length are compared.", "note", ratios.unequal),
    Rule("chance", "Shuffled pairs match as often.", "note", comparisons.chance),
)


def audit(file: ResultFile) -> tuple[Finding, ...]:
    """Everything that the rules find, errors first, each rule's in its own order."""
    found = [finding for rule in RULES for finding in rule.apply(file)]
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))


def audit_rows(rows: Sequence[AnswerRow], name: str = "own runs") -> tuple[Finding, ...]:
    """The same rules over the project's own result rows."""
    return audit(own_rows.from_rows(rows, name))
