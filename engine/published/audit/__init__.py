"""Rules that find wrong numbers, in published result files and in this project's own runs.

Each rule is a small function that takes a ResultFile and yields its findings.  RULES lists them in
the order in which findings are shown.

Boundary: reads the common form of engine.published.read and changes nothing; corrections are made
there.
"""

from __future__ import annotations

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
from engine.published.audit.finding import SEVERITIES, AuditFinding, Rule, Severity
from engine.published.read.record_types import ResultFile

__all__ = ["RULES", "SEVERITIES", "AuditFinding", "Rule", "Severity", "audit"]

RULES: tuple[Rule, ...] = (
    Rule("label", "The evidence contradicts the model label.", "error", answering_models.label),
    Rule("prompt_counted", "The prompt is counted as output.", "error", counts.prompt_counted),
    Rule("sliced_tokens", "Answer tokens are missing from the count.", "error", counts.sliced),
    Rule("beyond_limit", "An answer has more tokens than the limit.", "error", counts.beyond_limit),
    Rule(
        "count_and_ids", "The token count is not the number of ids.", "error", counts.count_and_ids
    ),
    Rule("bos", "Answers contain the begin-of-text id.", "error", counts.begins_with_bos),
    Rule(
        "bos_matched", "The begin-of-text id is counted as accepted.", "error", counts.bos_matched
    ),
    Rule(
        "one_image",
        "EventGPT got one event image, not several.",
        "error",
        answering_models.one_image,
    ),
    Rule(
        "doubled_context",
        "Visual tokens are counted twice.",
        "error",
        answering_models.doubled_context,
    ),
    Rule("totals", "Totals are not the sum of their stages.", "error", times.totals),
    Rule("left_out", "A stated total does not include all stages.", "error", omissions.left_out),
    Rule("per_token", "A rate per token does not fit the decoding.", "error", rates.per_token),
    Rule("summaries", "The summary contradicts its rows.", "error", times.summaries),
    Rule("speedup", "A speed-up divides by the wrong time.", "error", ratios.speedups),
    Rule("impossible", "A speed-up does not include all stages.", "error", rates.impossible),
    Rule("cost_ratio", "A cost ratio is per answer, not per token.", "error", ratios.cost_ratios),
    Rule("equality", "Sampled outputs are compared for equality.", "error", comparisons.equality),
    Rule("units", "Seconds and milliseconds are mixed.", "error", units.units),
    Rule("implausible", "A model's times are in another unit.", "error", units.implausible),
    Rule("flags", "Rows contradict their answers.", "error", comparisons.flags),
    Rule("acceptance_rows", "Rows state a wrong acceptance.", "error", accepted.rows),
    Rule("lossless", "Speculation changed the answers.", "warning", comparisons.lossless),
    Rule("estimate", "An acceptance was not measured on tokens.", "warning", comparisons.estimates),
    Rule("warm_up", "The mean includes a warm-up.", "warning", times.warm_up),
    Rule("placeholder", "A stage was never measured.", "warning", times.placeholder),
    Rule("degenerate", "Answers are empty or repetitive.", "warning", answering_models.degenerate),
    Rule("capped", "Answers stop at a limit.", "warning", ends.capped),
    Rule("first_token", "First tokens are missing.", "warning", ends.first_token_missing),
    Rule(
        "beyond_window",
        "A context is longer than the model supports.",
        "warning",
        answering_models.beyond_window,
    ),
    Rule("unusable", "Values could not be used.", "warning", answering_models.unusable),
    Rule("duplicates", "Samples appear more than once.", "warning", answering_models.duplicates),
    Rule(
        "one_sided",
        "Only one of the models answered some samples.",
        "warning",
        answering_models.one_sided,
    ),
    Rule("failures", "Samples failed.", "note", answering_models.failures),
    Rule("unequal", "Answers of different length are compared.", "note", ratios.unequal),
    Rule("chance", "Shuffled pairs match equally often.", "note", comparisons.chance),
)


def audit(file: ResultFile) -> tuple[AuditFinding, ...]:
    """The findings of all rules, errors first."""
    found = [finding for rule in RULES for finding in rule.apply(file)]
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))
