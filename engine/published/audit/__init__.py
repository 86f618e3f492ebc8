"""Rules that find wrong numbers in published result files; corrections are made in reading."""

from __future__ import annotations

from dataclasses import replace

from engine.published.audit import answer_rules as answers
from engine.published.audit import ratio_rules as ratios
from engine.published.audit import time_rules as times
from engine.published.audit import token_rules as tokens
from engine.published.audit.finding import SEVERITIES, AuditFinding, Rule, Severity
from engine.published.read.record_types import ResultFile

__all__ = ["RULES", "SEVERITIES", "AuditFinding", "Rule", "Severity", "audit"]

# in the order in which findings are shown
RULES: tuple[Rule, ...] = (
    Rule("label", "error", "The evidence contradicts the model label.", answers.label),
    Rule("prompt_counted", "error", "The prompt is counted as output.", tokens.prompt_counted),
    Rule("sliced_tokens", "error", "Answer tokens are missing from the count.", tokens.sliced),
    Rule("beyond_limit", "error", "An answer has more tokens than the limit.", tokens.beyond_limit),
    Rule("count_and_ids", "error", "The token count is not the number of ids.", tokens.uncounted),
    Rule("bos", "error", "Answers contain the begin-of-text id.", tokens.begins_with_bos),
    Rule("bos_matched", "error", "The begin-of-text id is counted as accepted.",
         tokens.bos_matched),
    Rule("one_image", "error", "EventGPT got one event image, not several.", answers.one_image),
    Rule("doubled_context", "error", "Visual tokens are counted twice.", answers.doubled_context),
    Rule("totals", "error", "Totals are not the sum of their stages.", times.totals),
    Rule("left_out", "error", "A stated total does not include all stages.", times.left_out),
    Rule("per_token", "error", "A rate per token does not fit the decoding.", ratios.per_token),
    Rule("summaries", "error", "The summary contradicts its rows.", times.summaries),
    Rule("speedup", "error", "A speed-up divides by the wrong time.", ratios.speedups),
    Rule("impossible", "error", "A speed-up does not include all stages.", ratios.impossible),
    Rule("cost_ratio", "error", "A cost ratio is per answer, not per token.", ratios.cost_ratios),
    Rule("equality", "error", "Sampled outputs are compared for equality.", answers.equality),
    Rule("units", "error", "Seconds and milliseconds are mixed.", times.units),
    Rule("implausible", "error", "A model's times are in another unit.", times.implausible),
    Rule("flags", "error", "Rows contradict their answers.", answers.flags),
    Rule("acceptance_rows", "error", "Rows state a wrong acceptance.", tokens.acceptance_rows),
    Rule("lossless", "warning", "Speculation changed the answers.", answers.lossless),
    Rule("estimate", "warning", "An acceptance was not measured on tokens.", answers.estimates),
    Rule("warm_up", "warning", "The mean includes a warm-up.", times.warm_up),
    Rule("placeholder", "warning", "A stage was never measured.", times.placeholder),
    Rule("degenerate", "warning", "Answers are empty or repetitive.", answers.degenerate),
    Rule("capped", "warning", "Answers stop at a limit.", tokens.capped),
    Rule("first_token", "warning", "First tokens are missing.", tokens.first_token),
    Rule("beyond_window", "warning", "A context is longer than the model supports.",
         answers.beyond_window),
    Rule("unusable", "warning", "Values could not be used.", answers.unusable),
    Rule("duplicates", "warning", "Samples appear more than once.", answers.duplicates),
    Rule("one_sided", "warning", "Only one of the models answered some samples.",
         answers.one_sided),
    Rule("failures", "note", "Samples failed.", answers.failures),
    Rule("unequal", "note", "Answers of different length are compared.", ratios.unequal),
    Rule("chance", "note", "Shuffled pairs match equally often.", answers.chance),
)  # fmt: skip


def audit(file: ResultFile) -> tuple[AuditFinding, ...]:
    """The findings of all rules, errors first."""
    return tuple(
        replace(found, rule=rule.name, severity=rule.severity)
        for rule in RULES
        for found in rule.check(file)
    )
